# simgpu_add_kernels(target SOURCES file.cpp... OUTPUT path [INSTALL])
#
# Compiles kernel sources (simgpu/kernel.h) into the module <OUTPUT>.simgpu, a shared object that
# simgpu's cuModuleLoad takes. OUTPUT is relative to FLOPINJ_PRIVATE_DIR, or absolute. With INSTALL
# the module is installed at the same place under FLOPINJ_INSTALL_PRIVATE_DIR.
#
# Where nvcc is found and SIMGPU_FATBINS is on, the same sources also become <OUTPUT>.fatbin for a
# real GPU, with -fmad=false so that a*b+c stays two operations on both sides.
option(SIMGPU_FATBINS "Also compile kernel sources for real GPUs, where nvcc is found" ON)
set(SIMGPU_CUDA_ARCHS "80;90" CACHE STRING
    "Architectures of the fat binaries; the last also as PTX")
if(SIMGPU_FATBINS)
  find_program(SIMGPU_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
endif()

function(simgpu_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL" "OUTPUT" "SOURCES")
  if(NOT arg_SOURCES OR NOT arg_OUTPUT OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "usage: simgpu_add_kernels(target SOURCES file... OUTPUT path [INSTALL])")
  endif()
  cmake_path(ABSOLUTE_PATH arg_OUTPUT BASE_DIRECTORY ${FLOPINJ_PRIVATE_DIR} OUTPUT_VARIABLE output)
  cmake_path(GET output PARENT_PATH folder)
  cmake_path(GET output FILENAME name)

  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE simgpu_kernel flopinj_warnings)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX .simgpu OUTPUT_NAME ${name}
                        LIBRARY_OUTPUT_DIRECTORY ${folder})
  # Counting is exact only when the compiler keeps every operation as it is written: no contraction.
  # Index arithmetic mixes CUDA's unsigned indices with int in every kernel, so sign conversion is
  # no warning here.
  target_compile_options(${target} PRIVATE -O2 -ffp-contract=off -fno-math-errno
    -Wno-sign-conversion
                         $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE -Wl,--as-needed)
  if(NOT FLOPINJ_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined)
  endif()

  set(products $<TARGET_FILE:${target}>)
  if(SIMGPU_FATBINS AND SIMGPU_NVCC)
    set(archs)
    foreach(arch ${SIMGPU_CUDA_ARCHS})
      list(APPEND archs -gencode arch=compute_${arch},code=sm_${arch})
    endforeach()
    list(GET SIMGPU_CUDA_ARCHS -1 last)
    list(APPEND archs -gencode arch=compute_${last},code=compute_${last})
    list(LENGTH arg_SOURCES source_count)
    if(source_count EQUAL 1)
      cmake_path(ABSOLUTE_PATH arg_SOURCES BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
        OUTPUT_VARIABLE source)
      add_custom_command(
        OUTPUT ${output}.fatbin
        COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
        COMMAND ${SIMGPU_NVCC} -fatbin -x cu -std=c++17 -fmad=false -O3
        -I${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include ${archs}
                -MD -MT ${output}.fatbin -MF ${CMAKE_CURRENT_BINARY_DIR}/${target}.d
                -o ${output}.fatbin ${source}
        DEPENDS ${source} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include/simgpu/kernel.h
        DEPFILE ${CMAKE_CURRENT_BINARY_DIR}/${target}.d
        COMMENT "Building CUDA fat binary ${name}.fatbin")
      add_custom_target(${target}_fatbin ALL DEPENDS ${output}.fatbin)
      list(APPEND products ${output}.fatbin)
    else()
      message(STATUS "${target}: several sources, so no fat binary")
    endif()
  endif()

  if(arg_INSTALL)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${FLOPINJ_PRIVATE_DIR} OUTPUT_VARIABLE place)
    install(FILES ${products} DESTINATION ${FLOPINJ_INSTALL_PRIVATE_DIR}/${place})
  endif()
endfunction()
