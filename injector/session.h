// The one process-wide object: it owns everything else, starts it, stops it, and stands still after
// a fork.
//
//   first NVTX call or cuInit   the session is made: range tables only, nothing opened, no thread
//   InitializeInjection         start(): CUPTI, trace file, callbacks, activity, writer thread
//   exit                        stop(kExit): windows closed, times flushed, trace closed
//   fork                        parent: nothing changes; child: a recording session is dropped
//
// It is never destroyed: callbacks of other threads may be inside it when the process ends.
#pragma once
#include <collector/identity/recording.h>

namespace flopinj {

// Starts recording. True when it does, or did already. False, after one line on stderr, when it
// cannot.
bool start_session() noexcept;
void stop_session(EndReason) noexcept;

}  // namespace flopinj
