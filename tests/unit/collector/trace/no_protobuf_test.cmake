# The injected library must not contain the protobuf runtime: no symbol of it in the collector.
execute_process(COMMAND ${NM} -C ${LIBRARY} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed
  ERROR_QUIET)
if(failed)
  message(FATAL_ERROR "${NM} ${LIBRARY}: ${failed}")
endif()
string(FIND "${symbols}" "flopinj::TraceWriter::flush" control)
if(control EQUAL -1)
  message(FATAL_ERROR "nm lists no symbol of the trace writer: this test looks at the wrong file")
endif()
if(symbols MATCHES "google::protobuf|descriptor_table")
  message(FATAL_ERROR "${LIBRARY} refers to the protobuf runtime")
endif()
