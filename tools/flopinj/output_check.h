// What can be seen of an output before a program starts: hours later it is too late to mend it.
#pragma once
#include <cstdint>
#include <string>

namespace flopinj {

// What is wrong with writing a trace under this name (absolute_output_name()), as one sentence that
// says what to do; empty if nothing is. Names are filled in as far as they are known here: host,
// variables, rank.
std::string output_problem(const std::string& name, bool force);

// A moment that is later than every file of that folder, and no later than those made from now on:
// in nanoseconds since 1970, by the clock of the folder's file system, which may be another
// machine's. Waits for that clock's next tick: some milliseconds.
int64_t output_clock_ns(const std::string& name);

}  // namespace flopinj
