# Turns an enumeration of cupti_*_cbid.h into SIMGPU_CALLBACK(number, name) lines.
function(simgpu_generate_callback_names header prefix output)
  file(STRINGS ${header} lines REGEX "${prefix}_CBID_[A-Za-z0-9_]+ *= *[0-9]+,")
  set(text "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*${prefix}_CBID_([A-Za-z0-9_]+) *= *([0-9]+),.*"
           "SIMGPU_CALLBACK(\\2, \\1)\n" item "${line}")
    if(NOT item MATCHES ", SIZE\\)")
      string(APPEND text "${item}")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "${text}" @ONLY)
endfunction()
