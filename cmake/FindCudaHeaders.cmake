# Finds the headers of CUPTI (12.6 or later, for the range profiler), the CUDA driver API and NVTX 3.
# Only headers: the libraries are taken at run time from the process.
#
# Looked for in this order: CUPTI_ROOT (variable or environment), a CUDA toolkit (CUDAToolkit_ROOT, CUDA_HOME,
# CUDA_PATH, /usr/local/cuda*), then the Python wheels nvidia-cuda-cupti, nvidia-cuda-runtime and nvidia-nvtx of
# the python3 on PATH or in FLOPINJ_PYTHON.
#
# Defines flopinj::cuda_headers, CUDA_HEADERS_CUPTI_VERSION.
set(_roots ${CUPTI_ROOT} $ENV{CUPTI_ROOT} ${CUDAToolkit_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
file(GLOB _versioned /usr/local/cuda-*)
list(SORT _versioned COMPARE NATURAL ORDER DESCENDING)
list(APPEND _roots ${_versioned})

set(FLOPINJ_PYTHON python3 CACHE STRING "Python whose nvidia wheels are searched for headers")
execute_process(
  COMMAND ${FLOPINJ_PYTHON} -c "import nvidia; print(';'.join(nvidia.__path__))"
  OUTPUT_VARIABLE _wheels OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
foreach(_wheel ${_wheels})
  file(GLOB _more ${_wheel}/cu1[2-9] ${_wheel}/cuda_cupti ${_wheel}/cuda_runtime ${_wheel}/nvtx)
  list(APPEND _roots ${_more})
endforeach()

set(_suffixes include extras/CUPTI/include targets/x86_64-linux/include)
find_path(CUDA_HEADERS_CUPTI_DIR cupti_range_profiler.h PATHS ${_roots} PATH_SUFFIXES ${_suffixes} NO_DEFAULT_PATH)
find_path(CUDA_HEADERS_CUPTI_DIR cupti_range_profiler.h)
find_path(CUDA_HEADERS_CUDA_DIR cuda.h PATHS ${_roots} PATH_SUFFIXES ${_suffixes} NO_DEFAULT_PATH)
find_path(CUDA_HEADERS_CUDA_DIR cuda.h)
find_path(CUDA_HEADERS_NVTX_DIR nvtx3/nvToolsExt.h PATHS ${_roots} PATH_SUFFIXES ${_suffixes} NO_DEFAULT_PATH)
find_path(CUDA_HEADERS_NVTX_DIR nvtx3/nvToolsExt.h)

if(CUDA_HEADERS_CUPTI_DIR)
  file(STRINGS ${CUDA_HEADERS_CUPTI_DIR}/cupti_version.h _line REGEX "#define CUPTI_API_VERSION")
  string(REGEX REPLACE ".*CUPTI_API_VERSION +([0-9]+).*" "\\1" CUDA_HEADERS_CUPTI_VERSION "${_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaHeaders
  REQUIRED_VARS CUDA_HEADERS_CUPTI_DIR CUDA_HEADERS_CUDA_DIR CUDA_HEADERS_NVTX_DIR
  REASON_FAILURE_MESSAGE "\
Headers of CUPTI 12.6+, CUDA and NVTX are needed. Install a CUDA toolkit, set CUPTI_ROOT, or run: \
python3 -m pip install nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-nvtx==13.0.85")

if(CudaHeaders_FOUND AND NOT TARGET flopinj::cuda_headers)
  add_library(flopinj::cuda_headers INTERFACE IMPORTED)
  set(_dirs ${CUDA_HEADERS_CUPTI_DIR} ${CUDA_HEADERS_CUDA_DIR} ${CUDA_HEADERS_NVTX_DIR})
  list(REMOVE_DUPLICATES _dirs)
  target_include_directories(flopinj::cuda_headers SYSTEM INTERFACE ${_dirs})
endif()
mark_as_advanced(CUDA_HEADERS_CUPTI_DIR CUDA_HEADERS_CUDA_DIR CUDA_HEADERS_NVTX_DIR)
