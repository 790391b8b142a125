// The name that this program was started by. `flopinj report` and the other commands of traces
// become this program, which then says `flopinj` of itself as all of the project does. A machine
// that has this program alone starts it as `flopreduce`.
#pragma once
#include <string>
#include <string_view>

namespace flopinj::reduce {

inline std::string_view program_name = "flopreduce";  // set before all else, by main()

// A command as people type it, from the words behind `flopinj`: "flopinj tables KEY", or
// "flopreduce tables KEY"; "flopinj report TRACE", or "flopreduce TRACE".
inline std::string typed(std::string_view words) {
  constexpr std::string_view kReport = "report ";
  if (program_name != "flopinj" && words.starts_with(kReport)) words.remove_prefix(kReport.size());
  return std::string(program_name) + ' ' + std::string(words);
}

}  // namespace flopinj::reduce
