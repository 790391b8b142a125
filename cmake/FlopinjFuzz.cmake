# flopinj_add_fuzzer(name SOURCES a.cpp ... [LIBS target ...])
#
# A libFuzzer program, LLVMFuzzerTestOneInput() in its sources, in the build folder's fuzz-bin;
# `tools/dev fuzz` runs it. First inputs are in tests/fuzz/corpus/name. With FLOPINJ_FUZZ_SECONDS it
# is the test fuzz.name too, which runs it that long. Where only tests are built, with any compiler,
# the test replays these inputs: what a fuzzer once found stays mended.
function(flopinj_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  set(wanted ON)
  if(NOT FLOPINJ_FUZZ)
    flopinj_takes_long(fuzz.${name} wanted)
  endif()
  set(exclude "")
  # The thread sanitizer's run covers the tests with threads.
  if(NOT wanted OR FLOPINJ_SANITIZE MATCHES "thread")
    set(exclude EXCLUDE_FROM_ALL)
  endif()
  add_executable(${name} ${exclude} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE flopinj_warnings ${arg_LIBS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(FLOPINJ_FUZZ)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
      ${PROJECT_BINARY_DIR}/fuzz-bin)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    # All of them, and nothing else: a library alone has no fuzzer to link with.
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${name})
    if(FLOPINJ_FUZZ_SECONDS)
      flopinj_fuzz_briefly(${name})
    endif()
  else()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
      ${PROJECT_BINARY_DIR}/test-bin)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cpp)
    if(wanted)
      add_test(NAME fuzz.${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
      set_tests_properties(fuzz.${name} PROPERTIES LABELS unit TIMEOUT 900 COST 20)
    endif()
  endif()
endfunction()

# The test fuzz.name. New inputs are not kept, but one that fails is: its path is in what the test
# prints. Within the memory and the time for one input that a machine full of other tests has.
function(flopinj_fuzz_briefly name)
  set(found ${PROJECT_SOURCE_DIR}/build/fuzz-corpus)
  file(MAKE_DIRECTORY ${found})
  file(GLOB corpus CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}/*)
  list(JOIN corpus "," inputs)
  # Without weights for rare features (-entropic): keeping them takes seconds at the start, where an
  # input has many thousands.
  add_test(NAME fuzz.${name} COMMAND ${name} -max_total_time=${FLOPINJ_FUZZ_SECONDS} -seed=1
    -entropic=0 -rss_limit_mb=1024 -timeout=20
           -artifact_prefix=${found}/${name}- -seed_inputs=${inputs})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 600)
endfunction()
