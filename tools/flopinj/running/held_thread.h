// A thread of another process that this program stops and lets go on, by ptrace.
//
// The end of this program at any moment, by SIGKILL too, lets the thread go on as if it had never
// been stopped: no breakpoint is set, and a stop is looked at without taking its code away
// (WNOWAIT). The kernel itself then delivers a signal that came meanwhile.
#pragma once
#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace flopinj {

using Moment = std::chrono::steady_clock::time_point;

class HeldThread {
 public:
  enum class Stop {
    kRefused,     // the kernel does not let this program hold the thread
    kEnded,       // the thread has ended
    kLate,        // the time is over; the thread runs
    kAsked,       // where stop() has stopped it
    kSystemCall,  // it begins or ends a system call
    kProcess      // the whole process is stopped, by SIGSTOP for instance
  };

  // It runs on.
  explicit HeldThread(pid_t tid);
  // Lets go of it. One that was stopped goes on, one in a stopped process stays stopped.
  ~HeldThread();
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  // Stops it where it is, or goes on from a stop to where it would leave the kernel. The registers
  // of a thread that waited in a system call say how the kernel would go on with that call.
  Stop stop(Moment until);
  // From a stop to where it next begins or ends a system call. Signals reach it meanwhile.
  Stop go_to_system_call(Moment until);

  // While it is stopped. False: it has ended.
  bool read(user_regs_struct&) const;
  bool write(const user_regs_struct&) const;
  bool read_blocked_signals(uint64_t&) const;
  // All other registers, as the instruction XSAVE writes them. Empty where the kernel does not say.
  std::vector<std::byte> extended_registers() const;

 private:
  Stop wait(Moment until);
  Stop resume_and_wait(Moment until, bool to_system_call);

  pid_t tid_;
  bool held_ = false;     // this program is the thread's tracer
  bool stopped_ = false;  // and it is stopped
  int signal_ = 0;        // that it is about to be given
};

}  // namespace flopinj
