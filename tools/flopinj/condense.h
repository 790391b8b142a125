// `flopinj run --summary`: the program as a child, and at its end a summary in the place of each
// trace.
//
// Without it `flopinj run` becomes the program, so that nothing of ours outlives it; a scheduler
// may end a job's processes as soon as the program has gone. To make summaries then, it
// stays the program's parent: it hands signals on, and ends as the program did.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "watch.h"

namespace flopinj {

struct Condensing {
  std::filesystem::path reducer;  // flopreduce
  bool force = false;             // replace summaries that are there
  bool quiet = false;             // say only what went wrong
};

// Starts `become_program` in a child, whose exit code is what it returns. When the program has
// ended, and the processes of the run have said so to the socket, their traces are condensed: a
// trace is removed when its summary is whole, and else is kept. The program's exit code; a signal
// that ended it ends this process, too.
int run_and_condense(RunSocket socket, const std::function<int()>& become_program,
                     const Condensing& how);

// "job/rank0.sum" of "job/rank0.pb".
std::string summary_name(const std::string& trace);

}  // namespace flopinj
