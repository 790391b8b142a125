# Compiler options for every target, and output folders that mirror the installed tree, so that
# programs find each other by the same relative paths in a build folder and after `cmake --install`.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/archive)
# Simgpu, trainer: not on anyone's path.
set(FLOPINJ_PRIVATE_DIR ${PROJECT_BINARY_DIR}/lib/flopinj)
set(FLOPINJ_INSTALL_PRIVATE_DIR lib/flopinj)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# Everything we compile ourselves links this; generated and third-party code does not.
add_library(flopinj_warnings INTERFACE)
if(NOT FLOPINJ_QUICK)  # to look for them takes the compiler time, too
  target_compile_options(flopinj_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow
                         $<$<BOOL:${FLOPINJ_WERROR}>:-Werror>)
endif()
# What GCC finds by following sizes through inlined code is often not there (GCC 12: in vectors that
# grow), and differs from one optimization level to the next: developers see it and it fails no
# build; users do not see it. Whether it is there the address sanitizer's run says.
if(FLOPINJ_WERROR)
  set(_despite_doubt no-error=)
else()
  set(_despite_doubt no-)
endif()
if(NOT FLOPINJ_SANITIZE MATCHES "address")
  foreach(_warning array-bounds stringop-overflow stringop-overread maybe-uninitialized restrict
    free-nonheap-object)
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-W${_despite_doubt}${_warning}>)
  endforeach()
endif()

if(FLOPINJ_SANITIZE)
  add_compile_options(-fsanitize=${FLOPINJ_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${FLOPINJ_SANITIZE})
  # Instrumented code confuses GCC's flow analysis: it warns of libstdc++'s <regex>.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(FLOPINJ_FUZZ)  # every target tells the fuzzer what it covers
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# flopinj_compile_together(target [folder...]): what the target has in a folder, and below it, is
# compiled as one translation unit: most files take the compiler less time than the headers that
# they need. What is in the named folders is of the unit of files that are in no folder. Names in
# the unnamed namespaces of a unit must differ; a file still includes what it uses.
# A file that is to be alone has SKIP_UNITY_BUILD_INCLUSION. Of targets that share sources the one
# with the most comes last: it says which of them are together in all.
function(flopinj_compile_together target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    string(REGEX MATCH "^[^/]+/" folder ${source})
    string(REPLACE "/" "_" folder "${folder}")
    foreach(together ${ARGN})
      if(folder STREQUAL "${together}_")
        set(folder "")
      endif()
    endforeach()
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP "${folder}of_${target}")
  endforeach()
  flopinj_compile_groups(${target})
  flopinj_precompiled_headers(${target})
endfunction()

# flopinj_group_by_folder(source...): the same for sources named by their full path, of any target
# that has flopinj_compile_groups().
function(flopinj_group_by_folder)
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${folder})
  endforeach()
endfunction()

# flopinj_compile_groups(target): each UNITY_GROUP of its sources is one translation unit.
function(flopinj_compile_groups target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes a class of one source for one of a header that several include.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# For those who build once, the headers that many files of libraries need are read once, and then
# taken from a file. (ccache does not keep what is compiled with such a file.)
function(flopinj_precompiled_headers target)
  get_target_property(type ${target} TYPE)
  if(FLOPINJ_QUICK AND NOT type STREQUAL "EXECUTABLE")  # whose code is no library's
    target_precompile_headers(${target} REUSE_FROM flopinj_common_headers)
  endif()
endfunction()
if(FLOPINJ_QUICK)
  file(WRITE ${PROJECT_BINARY_DIR}/none.cpp "")
  add_library(flopinj_common_headers OBJECT ${PROJECT_BINARY_DIR}/none.cpp)
  target_precompile_headers(flopinj_common_headers PRIVATE <algorithm> <array> <atomic> <charconv>
    <chrono> <cstring> <filesystem> <functional> <map> <memory> <mutex> <optional> <set> <span>
    <string> <string_view> <thread> <unordered_map> <vector>
    <google/protobuf/generated_message_reflection.h> <google/protobuf/repeated_field.h>
    <google/protobuf/unknown_field_set.h> <nlohmann/json.hpp>)
  target_link_libraries(flopinj_common_headers PRIVATE nlohmann_json::nlohmann_json
    protobuf::libprotobuf)
endif()

# flopinj_run_rarely(target): what is shipped of it is optimized less, as it takes the optimizer
# long (JSON, CLI11) and runs for an instant.
function(flopinj_run_rarely target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Linked by what is shipped: the C++ runtime comes along, so that any machine with a glibc will do
# and a host program's older one does not matter. The sanitizers intercept the shared runtime, so
# they keep it.
add_library(flopinj_static_runtime INTERFACE)
if(NOT FLOPINJ_SANITIZE)
  target_link_options(flopinj_static_runtime INTERFACE -static-libstdc++ -static-libgcc)
  include(FlopinjOldGlibc)
endif()
