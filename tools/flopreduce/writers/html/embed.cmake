# Puts style and scripts into the page and writes it as C++: cmake -DOUT=page.cpp -P embed.cmake
#
# The page's policy admits exactly this style and this script, by their SHA-256.
set(styles page charts)
set(scripts dom format data state tips table plot roofline rate ranks lost steps layers tree flame
    contents page)
cmake_policy(SET CMP0053 NEW)

# Base64 of a hexadecimal number of 64 digits (RFC 4648): three digits are two characters.
function(base64_of_sha256 hex result)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  foreach(at RANGE 0 60 3)
    string(SUBSTRING "${hex}00" ${at} 3 digits)
    math(EXPR high "0x${digits} / 64")
    math(EXPR low "0x${digits} % 64")
    string(SUBSTRING "${alphabet}" ${high} 1 first)
    string(SUBSTRING "${alphabet}" ${low} 1 second)
    string(APPEND text "${first}${second}")
  endforeach()
  # The last digit of 64 has a group of its own: four bits, two of padding, and "=" to fill it.
  string(SUBSTRING "${hex}" 63 1 digit)
  math(EXPR last "0x${digit} * 4")
  string(SUBSTRING "${alphabet}" ${last} 1 character)
  set(${result} "${text}${character}=" PARENT_SCOPE)
endfunction()

function(policy_hash text result)
  string(SHA256 hex "${text}")
  base64_of_sha256(${hex} base64)
  set(${result} "sha256-${base64}" PARENT_SCOPE)
endfunction()

file(READ "${CMAKE_CURRENT_LIST_DIR}/page.html" page)
set(style "")
foreach(name IN LISTS styles)
  file(READ "${CMAKE_CURRENT_LIST_DIR}/${name}.css" text)
  string(APPEND style "${text}")
endforeach()
set(script "\"use strict\";\n(() => {\n")
foreach(name IN LISTS scripts)
  file(READ "${CMAKE_CURRENT_LIST_DIR}/${name}.js" text)
  string(APPEND script "${text}")
endforeach()
string(APPEND script "})();\n")

policy_hash("${style}" style_hash)
policy_hash("${script}" script_hash)
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")

string(FIND "${page}" "@DATA@" at)
string(SUBSTRING "${page}" 0 ${at} before)
math(EXPR at "${at} + 6")
string(SUBSTRING "${page}" ${at} -1 after)
file(WRITE "${OUT}" "// Made by writers/html/embed.cmake from the files beside it.
#include <string_view>
namespace flopinj::reduce {
extern const std::string_view kPageBeforeData, kPageAfterData;
const std::string_view kPageBeforeData = R\"PAGE(${before})PAGE\";
const std::string_view kPageAfterData = R\"PAGE(${after})PAGE\";
}  // namespace flopinj::reduce
")
