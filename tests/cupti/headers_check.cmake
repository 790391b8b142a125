# Compiles headers_check.cpp against the headers of one CUPTI: COMPILER, HEADERS, CUDA, CRT, ROOT.
if(NOT EXISTS ${HEADERS}/cupti_version.h)
  message("SKIPPED: no headers of this CUPTI; `tools/dev cupti-matrix` brings them")
  return()
endif()
execute_process(
  COMMAND ${COMPILER} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -isystem ${HEADERS}
          -isystem ${CUDA} -isystem ${CRT} -I ${ROOT} ${ROOT}/tests/cupti/headers_check.cpp
  RESULT_VARIABLE _failed)
if(_failed)
  message(FATAL_ERROR "the headers in ${HEADERS} are not as the library takes them to be")
endif()
