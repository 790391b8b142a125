# protoc --decode reads a written trace.
execute_process(COMMAND ${WRITER} ${OUT} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${WRITER} failed: ${failed}")
endif()
execute_process(
  COMMAND ${PROTOC} --proto_path=${PROTO_DIR} --decode=flopinj.trace.Trace flop_trace.proto
  INPUT_FILE ${OUT} OUTPUT_VARIABLE text ERROR_VARIABLE errors RESULT_VARIABLE failed)
if(failed OR errors)
  message(FATAL_ERROR "protoc: ${failed} ${errors}")
endif()
foreach(expected "hostname: \"sample-host\"" "name: \"Sample GPU\"" "value: \"sample_kernel\""
                 "value: \"forward\""
                 "first_start_ns: 1000" "gap_ns: 983" "duration_delta_ns: 17" "recorded: 3"
                 "code: \"sample.code\""
                 "packets: ")
  string(FIND "${text}" "${expected}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "not in protoc's output: ${expected}\n${text}")
  endif()
endforeach()
if(text MATCHES "\n *[0-9]+: ")
  message(FATAL_ERROR "a field that the schema does not know:\n${text}")
endif()
