# The Python packages that tests use are in build/venv, where tools/dev puts them.
if(NOT DEFINED Python3_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# The environment of tests in Python. Compiled modules are kept, since tests start many programs;
# numpy's threads, which no test uses, would look for work when they begin.
set(FLOPINJ_PYTHON_ENVIRONMENT FLOPINJ_BUILD=${PROJECT_BINARY_DIR} PYTHONDONTWRITEBYTECODE=
    OPENBLAS_NUM_THREADS=1)

# Catch2's main is compiled once and shared by all test programs.
if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
  add_library(flopinj_catch2_main INTERFACE)
  target_link_libraries(flopinj_catch2_main INTERFACE Catch2::Catch2WithMain flopinj_catch2)
else()
  file(WRITE ${PROJECT_BINARY_DIR}/catch2_main.cpp
       "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
  add_library(flopinj_catch2_main STATIC ${PROJECT_BINARY_DIR}/catch2_main.cpp)
  target_link_libraries(flopinj_catch2_main PUBLIC flopinj_catch2)
endif()

# flopinj_takes_long(name result): sets `result` to whether the test is wanted. The names of those
# that are not are in the build folder's tests-left-out.txt, for tools/dev test.
function(flopinj_takes_long name result)
  set(${result} ${FLOPINJ_ALL_TESTS} PARENT_SCOPE)
  if(NOT FLOPINJ_ALL_TESTS)
    set_property(GLOBAL APPEND_STRING PROPERTY flopinj_left_out "${name}\n")
  endif()
endfunction()

# flopinj_add_test(name SOURCES a.cpp ... [LIBS target ...] [LABELS label ...] [TIMEOUT seconds]
# [COST seconds] [TOGETHER files])
#
# One Catch2 program that CTest runs as one test, from its own build folder. LABELS is `unit` unless
# given; add `threads` to what the thread sanitizer run must cover. `#include "catch.h"` finds the
# header for either version of Catch2. COST, about how long it takes, is for what takes more than a
# few seconds: CTest starts with these, so that none is left for last. TOGETHER: so many files of
# tests are compiled as one, since their headers take the compiler longer than the tests; names in
# them must differ. Sources of the product, named by their full path, are compiled together by
# folder, as in the product. Other tests: add_test(), with one of the labels unit, integration and
# golden. `no_sanitizers` keeps a test out of the sanitizer runs, for where a program that is not
# ours has to load ours. Test cases with the tag [fork] are not of the thread sanitizer's run: its
# own locks are no more free in a child of a process with threads.
function(flopinj_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;COST;TOGETHER" "SOURCES;LIBS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR
            "flopinj_add_test(${name}): SOURCES missing, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(FLOPINJ_SANITIZE)  # which make some tests several times slower
    math(EXPR arg_TIMEOUT "3 * ${arg_TIMEOUT}")
  elseif(CMAKE_CROSSCOMPILING)  # an emulator more so
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
  endif()
  # The thread sanitizer's run covers the tests with threads; the others are not even built there.
  set(exclude "")
  if(FLOPINJ_SANITIZE MATCHES "thread" AND NOT "threads" IN_LIST arg_LABELS)
    set(exclude EXCLUDE_FROM_ALL)
  endif()
  add_executable(${name} ${exclude} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test-bin)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE flopinj_warnings flopinj_catch2_main ${arg_LIBS})
  # Of Catch2's macros -O1 takes a third longer to compile; -Og takes no longer than -O0, and its
  # tests run in a third of the time.
  target_compile_options(${name} PRIVATE -Og)
  set(tested ${arg_SOURCES})
  list(FILTER tested INCLUDE REGEX "^/")
  flopinj_group_by_folder(${tested})
  if(arg_TOGETHER)
    set(index 0)
    list(REMOVE_ITEM arg_SOURCES ${tested})
    foreach(source ${arg_SOURCES})
      math(EXPR group "${index} / ${arg_TOGETHER}")
      math(EXPR index "${index} + 1")
      set_property(SOURCE ${source} PROPERTY UNITY_GROUP tests_${group})
    endforeach()
  endif()
  flopinj_compile_groups(${name})
  set(cases "")
  if(FLOPINJ_SANITIZE MATCHES "thread")
    set(cases "~[fork]~[.]")  # nor hidden ones, which a list of tests would ask for
  endif()
  add_test(NAME ${name} COMMAND ${name} ${cases})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
endfunction()
