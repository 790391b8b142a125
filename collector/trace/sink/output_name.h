// Output name patterns: %p process id, %h host name, %r rank (0 where there is none), %q{ENV} an
// environment variable, %% a percent sign.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace flopinj {

struct OutputNameContext {
  uint32_t pid = 0;
  std::string host;
  int32_t rank = -1;
  const char* (*environment)(const char* name) = nullptr;  // null result: not set
};
struct OutputName {
  std::string name;
  std::string error;        // non-empty: the pattern is wrong, with the place and what to do
  bool of_process = false;  // it holds the process id
  bool of_rank = false;     // or the rank, or a variable, which may differ between the ranks
};
OutputName expand_output_name(std::string_view pattern, const OutputNameContext&);

// "flop-17.pb" as "flop-17.2.pb": `part` before what follows the last dot of the file's name.
std::string extended_output_name(std::string_view name, std::string_view part);

}  // namespace flopinj
