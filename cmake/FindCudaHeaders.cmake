# Finds the headers of CUPTI (12.6 or later, for the range profiler), the CUDA driver API and NVTX
# 3. Only headers: the libraries are taken at run time from the process.
#
# Looked for in this order: CUPTI_ROOT (variable or environment), a CUDA toolkit (CUDAToolkit_ROOT,
# CUDA_HOME, CUDA_PATH, /usr/local/cuda*, /usr), then the Python wheels of cuda-headers.txt in
# FLOPINJ_PYTHON, build/venv or the python3 on PATH. What stands beside CUPTI's headers is
# preferred, so that versions are not mixed.
#
# Defines flopinj::cuda_headers, CUDA_HEADERS_CUPTI_VERSION.
set(_roots ${CUPTI_ROOT} $ENV{CUPTI_ROOT} ${CUDAToolkit_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH}
  /usr/local/cuda)
file(GLOB _versioned /usr/local/cuda-*)
list(SORT _versioned COMPARE NATURAL ORDER DESCENDING)
list(APPEND _roots ${_versioned} /usr/local /usr)

set(FLOPINJ_PYTHON "" CACHE STRING
    "Python whose nvidia wheels are searched for headers, before build/venv")
set(_wheel_roots "")
foreach(_python ${FLOPINJ_PYTHON} ${PROJECT_SOURCE_DIR}/build/venv/bin/python python3)
  execute_process(
    COMMAND ${_python} -c "import nvidia; print(';'.join(nvidia.__path__))"
    OUTPUT_VARIABLE _wheels OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
  if(NOT _failed)
    foreach(_wheel ${_wheels})
      # From CUDA 13 on, all wheels share a folder; before, each has its own, and cuda_nvcc carries
      # crt.
      file(GLOB _unversioned ${_wheel}/cu1[3-9])
      list(SORT _unversioned COMPARE NATURAL ORDER DESCENDING)
      list(APPEND _wheel_roots ${_unversioned} ${_wheel}/cuda_cupti ${_wheel}/cuda_runtime
        ${_wheel}/cuda_nvcc
           ${_wheel}/nvtx)
    endforeach()
  endif()
endforeach()

set(_suffixes include extras/CUPTI/include targets/x86_64-linux/include)
function(_flopinj_find_header variable header)
  set(_beside "")
  if(CUDA_HEADERS_CUPTI_DIR)
    set(_beside ${CUDA_HEADERS_CUPTI_DIR} ${CUDA_HEADERS_CUPTI_DIR}/../../../include)
  endif()
  find_path(${variable} ${header} HINTS ${_beside} PATHS ${_roots} ${_wheel_roots} PATH_SUFFIXES
    ${_suffixes}
            NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  mark_as_advanced(${variable})
endfunction()
_flopinj_find_header(CUDA_HEADERS_CUPTI_DIR cupti_range_profiler.h)
_flopinj_find_header(CUDA_HEADERS_CUDA_DIR cuda.h)
_flopinj_find_header(CUDA_HEADERS_CRT_DIR crt/host_defines.h)
_flopinj_find_header(CUDA_HEADERS_NVTX_DIR nvtx3/nvToolsExt.h)

if(CUDA_HEADERS_CUPTI_DIR)
  file(STRINGS ${CUDA_HEADERS_CUPTI_DIR}/cupti_version.h _line REGEX "#define CUPTI_API_VERSION")
  string(REGEX REPLACE ".*CUPTI_API_VERSION +([0-9]+).*" "\\1" CUDA_HEADERS_CUPTI_VERSION
         "${_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaHeaders
  REQUIRED_VARS CUDA_HEADERS_CUPTI_DIR CUDA_HEADERS_CUDA_DIR CUDA_HEADERS_CRT_DIR
  CUDA_HEADERS_NVTX_DIR
  VERSION_VAR CUDA_HEADERS_CUPTI_VERSION
  REASON_FAILURE_MESSAGE "\
Headers of CUPTI 12.6 or later, the CUDA driver API and NVTX are needed. Install a CUDA toolkit, set
CUPTI_ROOT, or run:
  python3 -m venv build/venv && build/venv/bin/pip install -r cmake/cuda-headers.txt
")

if(CudaHeaders_FOUND AND NOT TARGET flopinj::cuda_headers)
  add_library(flopinj::cuda_headers INTERFACE IMPORTED)
  set(_dirs ${CUDA_HEADERS_CUPTI_DIR} ${CUDA_HEADERS_CUDA_DIR} ${CUDA_HEADERS_CRT_DIR}
    ${CUDA_HEADERS_NVTX_DIR})
  list(REMOVE_DUPLICATES _dirs)
  target_include_directories(flopinj::cuda_headers SYSTEM INTERFACE ${_dirs})
endif()
