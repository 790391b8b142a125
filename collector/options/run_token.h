// What `flopinj run` says to the processes of its run, in FLOPINJ_RUN: "NANOSECONDS:ID:SOCKET".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flopinj {

struct RunToken {
  // By the clock of the traces' file system, since 1970. 0: not known, and not needed.
  int64_t started_ns = 0;
  uint64_t id = 0;     // of the run, the same for all its processes; in the text hexadecimal
  std::string socket;  // "NAME:SECRET" of the run's watcher (run_notice.h); empty: there is none

  std::string text() const;
  // Nothing for text that is no token.
  static std::optional<RunToken> parse(std::string_view text);
};

}  // namespace flopinj
