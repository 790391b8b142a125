#include "running/held_thread.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <array>
#include <thread>

namespace flopinj {
namespace {

using namespace std::chrono_literals;

// Of a stop's code, as the kernel documents them with ptrace: the signal, and what the stop is for.
constexpr int kSystemCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
int signal_of(int code) { return code & 0xff; }
bool is_event(int code) { return code >> 8 == PTRACE_EVENT_STOP; }

void* as_data(uintptr_t value) { return reinterpret_cast<void*>(value); }

}  // namespace

HeldThread::HeldThread(pid_t tid) : tid_(tid) {
  held_ = ptrace(PTRACE_SEIZE, tid, nullptr, as_data(PTRACE_O_TRACESYSGOOD)) == 0;
}

HeldThread::~HeldThread() {
  // A thread that has not stopped yet does not run meanwhile: it is inside the kernel, or waits for
  // a processor. Left behind, it would stop later and wait for the end of this program.
  constexpr auto kPatience = 20s;
  if (held_ && !stopped_) stop(std::chrono::steady_clock::now() + kPatience);
  if (held_ && stopped_)
    ptrace(PTRACE_DETACH, tid_, nullptr, as_data(static_cast<uintptr_t>(signal_)));
}

HeldThread::Stop HeldThread::stop(Moment until) {
  if (!held_) return Stop::kRefused;
  if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return Stop::kEnded;
  Stop stop = stopped_ ? resume_and_wait(until, false) : wait(until);
  while (stop == Stop::kAsked && signal_ != 0) stop = resume_and_wait(until, false);
  return stop;
}

HeldThread::Stop HeldThread::go_to_system_call(Moment until) {
  Stop stop = resume_and_wait(until, true);
  while (stop == Stop::kAsked) stop = resume_and_wait(until, true);
  return stop;
}

HeldThread::Stop HeldThread::resume_and_wait(Moment until, bool to_system_call) {
  if (!held_ || !stopped_) return Stop::kEnded;
  if (ptrace(to_system_call ? PTRACE_SYSCALL : PTRACE_CONT, tid_, nullptr,
             as_data(static_cast<uintptr_t>(signal_))) != 0)
    return Stop::kEnded;
  stopped_ = false;
  signal_ = 0;
  return wait(until);
}

HeldThread::Stop HeldThread::wait(Moment until) {
  constexpr auto kPause = 200us;
  for (;;) {
    siginfo_t info{};
    const auto id = static_cast<id_t>(tid_);
    if (waitid(P_PID, id, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 ||
        (info.si_pid != 0 && info.si_code != CLD_TRAPPED)) {
      // exec in another thread waits until this one is taken away.
      waitid(P_PID, id, &info, WEXITED | WNOHANG | __WALL);
      held_ = false;
      return Stop::kEnded;
    }
    if (info.si_pid != 0) {
      stopped_ = true;
      const int code = info.si_status;
      if (code == kSystemCallStop) return Stop::kSystemCall;
      if (is_event(code)) return signal_of(code) == SIGTRAP ? Stop::kAsked : Stop::kProcess;
      signal_ = signal_of(code);
      return Stop::kAsked;
    }
    if (std::chrono::steady_clock::now() > until) return Stop::kLate;
    std::this_thread::sleep_for(kPause);
  }
}

bool HeldThread::read(user_regs_struct& registers) const {
  iovec vector{&registers, sizeof registers};
  return ptrace(PTRACE_GETREGSET, tid_, as_data(NT_PRSTATUS), &vector) == 0 &&
         vector.iov_len == sizeof registers;
}

bool HeldThread::write(const user_regs_struct& registers) const {
  user_regs_struct copy = registers;
  iovec vector{&copy, sizeof copy};
  return ptrace(PTRACE_SETREGSET, tid_, as_data(NT_PRSTATUS), &vector) == 0;
}

bool HeldThread::read_blocked_signals(uint64_t& mask) const {
  return ptrace(PTRACE_GETSIGMASK, tid_, as_data(sizeof mask), &mask) == 0;
}

std::vector<std::byte> HeldThread::extended_registers() const {
#if defined(__x86_64__)
  constexpr size_t kMost = size_t{64} << 10;  // of every CPU so far: 11 KiB
  std::vector<std::byte> bytes(kMost);
  iovec vector{bytes.data(), bytes.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, as_data(NT_X86_XSTATE), &vector) != 0) return {};
  bytes.resize(vector.iov_len);
  return bytes;
#else
  return {};
#endif
}

}  // namespace flopinj
