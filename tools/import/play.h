// Plays a time line: opens and closes its ranges and makes its launches in the order of time, on
// the collector's own tables, as a process under the recorder does it. So ranges, steps, sequence
// numbers and names are decided by the same rules, and the packets are written by the same code.
#pragma once
#include <collector/trace/sink/sink.h>
#include <import/timeline.h>

#include <string>

namespace flopinj::import {

struct Played {
  uint64_t launches = 0;
  std::string error;  // empty: the trace is whole
};

// Sorts the lists of `timeline`. The sink stays open.
Played play(Timeline& timeline, Sink& sink);

}  // namespace flopinj::import
