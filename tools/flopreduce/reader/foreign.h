// What is said of a file that is no trace, or none that this program reads.
#pragma once
#include <cstdint>
#include <string>

#include "flop_trace.pb.h"
#include "reader/input.h"

namespace flopinj::reduce {

// The format versions this reader knows.
inline constexpr uint32_t kFormatMajor = 1;

// Whether a summary's header replaces one that is lost: then it says nothing of the process.
inline bool stands_for_lost(const trace::Header& header) {
  return header.summary() && header.pid() == 0 && header.hostname().empty() &&
         header.producer().empty();
}

// Of one without a single packet, as far as its first bytes say.
std::string not_a_trace(Input& input);
// Of one with another major version of the format.
std::string other_version(uint32_t format_major);

}  // namespace flopinj::reduce
