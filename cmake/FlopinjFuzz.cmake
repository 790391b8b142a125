# flopinj_add_fuzzer(name SOURCES a.cpp ... [LIBS target ...])
#
# A libFuzzer program, LLVMFuzzerTestOneInput() in its sources, in the build folder's fuzz-bin; `tools/dev fuzz` runs it. First inputs
# are in tests/fuzz/corpus/name. Where only tests are built, with any compiler, it becomes the test fuzz.name, which
# replays these inputs: what a fuzzer once found stays mended.
function(flopinj_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  set(exclude "")
  if(FLOPINJ_SANITIZE MATCHES "thread")  # whose run covers the tests with threads
    set(exclude EXCLUDE_FROM_ALL)
  endif()
  add_executable(${name} ${exclude} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE flopinj_warnings ${arg_LIBS})
  if(FLOPINJ_FUZZ)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz-bin)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzzers)  # all of them, and nothing else: a library alone has no fuzzer to link with
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${name})
  else()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test-bin)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cpp)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    add_test(NAME fuzz.${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS unit TIMEOUT 900 COST 20)
  endif()
endfunction()
