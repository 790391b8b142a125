// Begins and ends recordings. What it knows of them is in the process's one object
// (process/process_state.h). After a fork the parent's recording goes on, and the child begins
// anew.
//
//   first NVTX call or cuInit   a recording is made: range tables only, nothing opened, no thread
//   InitializeInjection         start_session(): CUPTI, trace file, callbacks, activity, threads;
//                               with FLOPINJ_DORMANT=1 only the control socket
//   requests                    stop_recording(), start_recording(): any number of times
//   exit                        stop_session(): windows closed, times flushed, trace closed;
//                               none begins any more, and one that begins or ends is waited for
//   fork                        parent: nothing changes; child: what was recording is dropped
//
// A recording that was stopped is freed once no thread of the program is inside it. One that the
// program ends with never is: callbacks of other threads may be inside it.
#pragma once
#include <collector/identity/recording.h>

#include <cstdint>
#include <span>
#include <string>

namespace flopinj {

// Sees to it that a forked child begins anew (process/process_state.h): before all else, since the
// child of a fork that comes earlier may wait for ever. False: there is no memory for that.
bool handle_forks() noexcept;
// Starts what the environment asks for. One line on stderr where it cannot.
void start_session() noexcept;
// Nothing is recorded until it is asked for, whatever the environment says. For a program that runs
// already. False: no request can come.
bool listen_session() noexcept;
void stop_session() noexcept;

// Of a request made while the program runs.
struct Outcome {
  bool done = false;
  std::string text;     // done: the trace's name; else one line that says why and what to do
  bool closed = false;  // the recording has ended, and its trace is whole
};
// kAnother: a process, on a thread of ours. kProgram: the program itself, on a thread of its own.
enum class Asker : uint8_t { kAnother, kProgram };
// `settings` are variables ("FLOPINJ_LEVEL=tally") that go before the environment's. `from_inside`:
// the program says that it is at no capture of a CUDA graph.
Outcome start_recording(std::span<const std::string> settings, bool from_inside, Asker);
Outcome stop_recording(Asker);

// Recordings that begin or end at a time of their own (--start-after, --duration): when the next is
// due, on CLOCK_MONOTONIC (0: none is), and doing what is due. On the control thread.
uint64_t next_session_event_ns() noexcept;
void do_session_events(uint64_t now_ns);

}  // namespace flopinj
