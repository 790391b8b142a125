#include "running/remote_call.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <elf.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>
#include <string_view>
#include <thread>

#include "process.h"
#include "running/process_image.h"

namespace flopinj {
namespace {

// Of the stack below a function's frame the ABI gives it this much without a word.
constexpr uint64_t kRedZone = 128;
// The loader takes less than 32 KiB for the library and all that it needs.
constexpr uint64_t kRoom = uint64_t{256} << 10;

// How the kernel begins a system call again that it has left, as include/linux/errno.h has it.
constexpr int64_t kRestartSys = -512, kRestartNoInterrupt = -513, kRestartNoHandler = -514,
                  kRestartBlock = -516;

// What the kernel reads at rt_sigreturn: struct ucontext of the kernel's, which is not the C
// library's.
struct SignalFrame {
  uint64_t flags, link, stack, stack_flags, stack_size;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, cpu_flags;
  uint16_t cs, gs, fs, ss;
  uint64_t error, trap, old_mask, fault, extended, reserved[8];
  uint64_t blocked;
};
static_assert(offsetof(SignalFrame, blocked) == 296);
// With extended registers; the stack segment is given, and taken as it is.
constexpr uint64_t kFrameFlags = 1 | 2 | 4;
// Of no kind that there is: the kernel then leaves the thread's alternate stack as it is.
constexpr uint64_t kKeepAlternateStack = 7;

SignalFrame frame_of(const user_regs_struct& r, uint64_t blocked, uint64_t extended) {
  SignalFrame frame{};
  frame.flags = kFrameFlags;
  frame.stack_flags = kKeepAlternateStack;
  frame.r8 = r.r8, frame.r9 = r.r9, frame.r10 = r.r10, frame.r11 = r.r11;
  frame.r12 = r.r12, frame.r13 = r.r13, frame.r14 = r.r14, frame.r15 = r.r15;
  frame.di = r.rdi, frame.si = r.rsi, frame.bp = r.rbp, frame.bx = r.rbx;
  frame.dx = r.rdx, frame.ax = r.rax, frame.cx = r.rcx, frame.sp = r.rsp, frame.ip = r.rip;
  frame.cpu_flags = r.eflags;
  frame.cs = static_cast<uint16_t>(r.cs), frame.ss = static_cast<uint16_t>(r.ss);
  frame.extended = extended;
  frame.blocked = blocked;
  return frame;
}

// The extended registers in a signal frame: the area of XSAVE, in whose unused bytes the kernel
// wants a description (struct _fpx_sw_bytes), and a mark behind it.
std::vector<std::byte> extended_frame(std::vector<std::byte> area) {
  constexpr size_t kDescription = 464, kUsed = 512, kFixed = 576;
  constexpr uint32_t kMark = 0x46505853, kEndMark = 0x46505845;
  if (area.size() < kFixed) return {};
  uint64_t used = 0;
  std::memcpy(&used, area.data() + kUsed, sizeof used);
  size_t size = kFixed;
  for (unsigned part = 2; part < 63; ++part) {
    if (((used >> part) & 1) == 0) continue;
    unsigned bytes = 0, offset = 0, c = 0, d = 0;
    __cpuid_count(0xd, part, bytes, offset, c, d);
    size = std::max(size, size_t{offset} + bytes);
  }
  if (size > area.size()) return {};
  area.resize(size);
  struct {
    uint32_t mark, whole_size;
    uint64_t parts;
    uint32_t size, unused[7];
  } const description{
      kMark, static_cast<uint32_t>(size + sizeof kEndMark), used, static_cast<uint32_t>(size), {}};
  static_assert(sizeof description == 48);
  std::memcpy(area.data() + kDescription, &description, sizeof description);
  const auto end_mark = std::as_bytes(std::span(&kEndMark, 1));
  area.insert(area.end(), end_mark.begin(), end_mark.end());
  return area;
}

// --- A thread that is held -----------------------------------------------------------------------

using namespace std::chrono_literals;

// Of a stop's code, as the kernel documents them with ptrace: the signal, and what the stop is for.
constexpr int kSystemCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
int signal_of(int code) { return code & 0xff; }
bool is_event(int code) { return code >> 8 == PTRACE_EVENT_STOP; }

void* as_data(uintptr_t value) { return reinterpret_cast<void*>(value); }

// A thread of another process that this program stops and lets go on, by ptrace.
//
// The end of this program at any moment, by SIGKILL too, lets the thread go on as if it had never
// been stopped: no breakpoint is set, and a stop is looked at without taking its code away
// (WNOWAIT). The kernel itself then delivers a signal that came meanwhile.
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
  explicit HeldThread(pid_t tid) : tid_(tid) {
    held_ = ptrace(PTRACE_SEIZE, tid, nullptr, as_data(PTRACE_O_TRACESYSGOOD)) == 0;
  }
  // Lets go of it. One that was stopped goes on, one in a stopped process stays stopped.
  ~HeldThread() {
    // A thread that has not stopped yet does not run meanwhile: it is inside the kernel, or waits
    // for a processor. Left behind, it would stop later and wait for the end of this program.
    constexpr auto kPatience = 20s;
    if (held_ && !stopped_) stop(std::chrono::steady_clock::now() + kPatience);
    if (held_ && stopped_)
      ptrace(PTRACE_DETACH, tid_, nullptr, as_data(static_cast<uintptr_t>(signal_)));
  }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  // Stops it where it is, or goes on from a stop to where it would leave the kernel. The registers
  // of a thread that waited in a system call say how the kernel would go on with that call.
  Stop stop(Moment until) {
    if (!held_) return Stop::kRefused;
    if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return Stop::kEnded;
    Stop stop = stopped_ ? resume_and_wait(until, false) : wait(until);
    while (stop == Stop::kAsked && signal_ != 0) stop = resume_and_wait(until, false);
    return stop;
  }
  // From a stop to where it next begins or ends a system call. Signals reach it meanwhile.
  Stop go_to_system_call(Moment until) {
    Stop stop = resume_and_wait(until, true);
    while (stop == Stop::kAsked) stop = resume_and_wait(until, true);
    return stop;
  }

  // While it is stopped. False: it has ended.
  bool read(user_regs_struct& registers) const {
    iovec vector{&registers, sizeof registers};
    return ptrace(PTRACE_GETREGSET, tid_, as_data(NT_PRSTATUS), &vector) == 0 &&
           vector.iov_len == sizeof registers;
  }
  bool write(const user_regs_struct& registers) const {
    user_regs_struct copy = registers;
    iovec vector{&copy, sizeof copy};
    return ptrace(PTRACE_SETREGSET, tid_, as_data(NT_PRSTATUS), &vector) == 0;
  }
  bool read_blocked_signals(uint64_t& mask) const {
    return ptrace(PTRACE_GETSIGMASK, tid_, as_data(sizeof mask), &mask) == 0;
  }
  // All other registers, as the instruction XSAVE writes them. Empty where the kernel does not say.
  std::vector<std::byte> extended_registers() const {
    constexpr size_t kMost = size_t{64} << 10;  // of every CPU so far: 11 KiB
    std::vector<std::byte> bytes(kMost);
    iovec vector{bytes.data(), bytes.size()};
    if (ptrace(PTRACE_GETREGSET, tid_, as_data(NT_X86_XSTATE), &vector) != 0) return {};
    bytes.resize(vector.iov_len);
    return bytes;
  }

 private:
  Stop wait(Moment until) {
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
  Stop resume_and_wait(Moment until, bool to_system_call) {
    if (!held_ || !stopped_) return Stop::kEnded;
    if (ptrace(to_system_call ? PTRACE_SYSCALL : PTRACE_CONT, tid_, nullptr,
               as_data(static_cast<uintptr_t>(signal_))) != 0)
      return Stop::kEnded;
    stopped_ = false;
    signal_ = 0;
    return wait(until);
  }

  pid_t tid_;
  bool held_ = false;     // this program is the thread's tracer
  bool stopped_ = false;  // and it is stopped
  int signal_ = 0;        // that it is about to be given
};

// --- Where a thread may be entered ---------------------------------------------------------------

// Neither allocators nor the loader wait in these with a lock held. pthread_cond_wait, sem_wait and
// pthread_join use FUTEX_WAIT_BITSET; a lock that is taken uses FUTEX_WAIT. The kernel itself makes
// each of these again that is left: not so epoll_wait, nor recv with a limit of time, which would
// end with EINTR.
bool is_wait(uint64_t call, uint64_t second_argument) {
  switch (call) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_restart_syscall:
      return true;
    case SYS_futex:
      return (second_argument & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    default:
      return false;
  }
}

// The instruction that makes a system call.
using SystemCallCode = std::array<unsigned char, 2>;
constexpr SystemCallCode kSystemCall{0x0f, 0x05};

// A wait that was interrupted before, by a debugger for instance, goes on in restart_syscall. Which
// it is the code of C libraries before 2.41 says: mov $number, %eax; syscall.
uint64_t call_behind(pid_t pid, uint64_t call, uint64_t next_instruction) {
  if (call != SYS_restart_syscall) return call;
  struct Code {
    unsigned char move, number[4], call[2];
  };
  static_assert(sizeof(Code) == 7);
  const auto code = read_value<Code>(pid, next_instruction - sizeof(Code));
  if (!code || code->move != 0xb8 || !std::ranges::equal(code->call, kSystemCall)) return call;
  uint32_t number = 0;
  std::memcpy(&number, code->number, sizeof number);
  return number;
}

bool is_for_ever(uint64_t call, const std::array<uint64_t, 6>& arguments) {
  switch (call) {
    case SYS_poll:
      return static_cast<int32_t>(arguments[2]) < 0;
    case SYS_nanosleep:
    case SYS_restart_syscall:  // it may be
      return false;
    case SYS_clock_nanosleep:
      return arguments[1] != 0;  // until a time of the clock
    default:
      return true;  // what is left of the time is known to the caller, or the kernel
  }
}

// What the process has that a call needs, found once for each try.
struct Place {
  std::vector<Mapping> mappings;
  // Where handlers return to: mov $15, %rax; syscall. Older C libraries have it twice.
  std::vector<uint64_t> signal_returns;
  Symbol raw_call;  // syscall(): allocators wait for their own locks by it
};

bool is_c_library(const Mapping* mapping) {
  constexpr std::string_view kNames[] = {"libc.so.6", "libc-2", "libpthread"};
  return mapping != nullptr && std::ranges::any_of(kNames, [&](std::string_view name) {
           return mapping->file().starts_with(name);
         });
}

std::optional<Place> place_of(pid_t pid) {
  constexpr std::array<unsigned char, 9> kReturn{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
  // The code of a C library is 2 MiB, in one mapping or two.
  constexpr uint64_t kMostCode = uint64_t{16} << 20;
  constexpr int kMostSearched = 8;
  Place place;
  place.mappings = mappings_of(pid);
  int searched = 0;
  for (const Mapping& mapping : place.mappings) {
    if (!mapping.executable || !is_c_library(&mapping)) continue;
    if (mapping.end - mapping.begin > kMostCode) continue;  // no C library, whatever its name
    if (++searched > kMostSearched) break;
    std::vector<std::byte> code(mapping.end - mapping.begin);
    if (!read_memory(pid, mapping.begin, code)) continue;
    const auto wanted = std::as_bytes(std::span(kReturn));
    const auto found = std::search(code.begin(), code.end(), wanted.begin(), wanted.end());
    if (found == code.end()) continue;
    place.signal_returns.push_back(mapping.begin + static_cast<uint64_t>(found - code.begin()));
    if (const auto raw = function_of(pid, place.mappings, mapping.name, "syscall"))
      place.raw_call = *raw;
  }
  if (place.signal_returns.empty() || place.raw_call.size == 0) return std::nullopt;
  return place;
}

struct Stack {
  uint64_t low = 0, high = 0;
};

// The stack that the C library made for a thread, or that a program gave it: its descriptor, at
// `descriptor`, has the address and the size in turn. Which of its words they are differs between
// versions; no other two words describe memory around the descriptor itself.
std::optional<Stack> thread_stack(pid_t pid, const Place& place, uint64_t descriptor) {
  constexpr uint64_t kMostDescriptor = 4'096, kLeastStack = 16'384, kMostStack = uint64_t{1} << 36;
  const Mapping* const mapping = mapping_at(place.mappings, descriptor);
  if (mapping == nullptr) return std::nullopt;
  std::vector<uint64_t> words(std::min(kMostDescriptor, mapping->end - descriptor) / 8);
  if (!read_memory(pid, descriptor, std::as_writable_bytes(std::span(words)))) return std::nullopt;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const uint64_t low = words[i], size = words[i + 1];
    if (size >= kLeastStack && size <= kMostStack && low < descriptor && low + size > descriptor &&
        low + size - descriptor <= kMostDescriptor)
      return Stack{std::max(low, mapping->begin), descriptor};
  }
  return std::nullopt;
}

std::optional<Stack> main_stack(pid_t pid, const Place& place, uint64_t pointer) {
  const Mapping* const mapping = mapping_at(place.mappings, pointer);
  if (mapping == nullptr || mapping->name != "[stack]") return std::nullopt;
  // It grows as it is used, to its limit or to where another mapping is near.
  uint64_t most = 0;
  if (!(std::istringstream(std::string(value_of(proc_text(pid, "limits"), "Max stack size"))) >>
        most))
    most = uint64_t{8} << 20;  // unlimited
  constexpr uint64_t kGap = uint64_t{1} << 20;
  uint64_t low = mapping->end > most ? mapping->end - most : 0;
  if (mapping != place.mappings.data()) low = std::max(low, (mapping - 1)->end + kGap);
  return Stack{low, mapping->end};
}

// Whether there is room below, and no signal handler above: one may have interrupted the allocator,
// or be on a small stack of its own.
bool is_ordinary_stack(pid_t pid, const Place& place, const user_regs_struct& registers) {
  const bool is_main = mapping_at(place.mappings, registers.rsp) != nullptr &&
                       mapping_at(place.mappings, registers.rsp)->name == "[stack]";
  const auto stack =
      is_main ? main_stack(pid, place, registers.rsp) : thread_stack(pid, place, registers.fs_base);
  // More than most programs have of a stack, let alone use of it.
  constexpr uint64_t kMostLooked = uint64_t{64} << 20;
  if (!stack || registers.rsp >= stack->high || registers.rsp < stack->low + kRoom ||
      stack->high - registers.rsp > kMostLooked)
    return false;
  std::vector<uint64_t> words((stack->high - registers.rsp) / 8);
  if (!read_memory(pid, registers.rsp, std::as_writable_bytes(std::span(words)))) return false;
  return std::ranges::find_first_of(words, place.signal_returns) == words.end();
}

// The thread is in a wait that may be made again: not begun, or left in a way that loses nothing.
struct Entry {
  user_regs_struct was{};    // how it is left in the end
  user_regs_struct again{};  // the same for a thread on its own: its system call is made again
  bool begins = false;       // its system call has not been made yet
};

std::optional<Entry> entry_of(pid_t pid, const Place& place, const user_regs_struct& registers) {
  const std::array<uint64_t, 6> arguments{registers.rdi, registers.rsi, registers.rdx,
                                          registers.r10, registers.r8,  registers.r9};
  const uint64_t call = call_behind(pid, registers.orig_rax, registers.rip);
  if (!is_wait(call, arguments[1]) || !is_c_library(mapping_at(place.mappings, registers.rip)) ||
      place.raw_call.holds(registers.rip) || !is_ordinary_stack(pid, place, registers))
    return std::nullopt;
  const uint64_t instruction = registers.rip - kSystemCall.size();
  if (read_value<SystemCallCode>(pid, instruction) != kSystemCall) return std::nullopt;
  Entry entry{registers, registers};
  const auto result = static_cast<int64_t>(registers.rax);
  const bool goes_on = registers.orig_rax == SYS_restart_syscall && result == -ENOSYS;
  if ((result == kRestartBlock || goes_on) && !is_for_ever(call, arguments)) return std::nullopt;
  entry.was.orig_rax = call;
  if (result == kRestartBlock) entry.was.rax = static_cast<uint64_t>(kRestartNoHandler);
  const bool is_left = result == kRestartBlock || result == kRestartSys ||
                       result == kRestartNoInterrupt || result == kRestartNoHandler;
  if (is_left || result == -ENOSYS) {
    entry.again.rip = instruction;
    entry.again.rax = call;
  }
  return entry;
}

// --- The call ------------------------------------------------------------------------------------

// Until this call of rt_sigreturn has ended. The kernel reads a frame where the stack pointer is.
HeldThread::Stop go_to_return(HeldThread& thread, uint64_t frame, Moment until) {
  bool returning = false;
  for (;;) {
    const HeldThread::Stop stop = thread.go_to_system_call(until);
    user_regs_struct registers;
    if (stop != HeldThread::Stop::kSystemCall || returning) return stop;
    if (!thread.read(registers)) return HeldThread::Stop::kEnded;
    returning = registers.orig_rax == SYS_rt_sigreturn && registers.rsp == frame;
  }
}

CallEnd do_call(pid_t pid, HeldThread& thread, const Place& place, const Entry& entry,
                uint64_t blocked, const RemoteCall& call, Moment until) {
  constexpr uint64_t kAlignment = 64;
  const std::vector<std::byte> extended = extended_frame(thread.extended_registers());
  if (extended.empty()) return CallEnd::kNotNow;
  const auto down = [](uint64_t address) { return address & ~(kAlignment - 1); };
  const uint64_t high = down(entry.was.rsp - kRedZone);
  const uint64_t text = down(high - call.text.size() - 1);
  const uint64_t registers = down(text - extended.size());
  const uint64_t last = down(registers - sizeof(SignalFrame));
  const uint64_t return_address = last - sizeof(uint64_t);
  const uint64_t first = down(return_address - sizeof(SignalFrame));

  user_regs_struct begin = entry.again;
  begin.rip = call.function;
  begin.rsp = return_address;
  begin.rdi = call.text.empty() ? call.first : text;
  begin.rsi = call.second;
  begin.rax = 0;
  std::vector<std::byte> bytes(high - first);
  const auto put = [&](uint64_t address, const void* from, size_t size) {
    std::memcpy(bytes.data() + (address - first), from, size);
  };
  const SignalFrame begins = frame_of(begin, ~uint64_t{0}, 0);
  const SignalFrame ends = frame_of(entry.again, blocked, registers);
  put(first, &begins, sizeof begins);
  put(return_address, &place.signal_returns.front(), sizeof(uint64_t));
  put(last, &ends, sizeof ends);
  put(registers, extended.data(), extended.size());
  put(text, call.text.c_str(), call.text.size() + 1);
  if (!write_memory(pid, first, bytes)) return CallEnd::kNotNow;

  user_regs_struct go = entry.again;
  go.rsp = first;
  if (entry.begins) {
    // Its system call becomes this one. To leave it out, as number -1, may be forbidden to it.
    go.orig_rax = SYS_rt_sigreturn;
  } else {
    go.rip = place.signal_returns.front();
    go.orig_rax = ~uint64_t{0};  // no system call is to be made again
  }
  if (!thread.write(go)) return CallEnd::kNotNow;
  switch (go_to_return(thread, last, until)) {
    case HeldThread::Stop::kSystemCall:
      return CallEnd::kDone;
    case HeldThread::Stop::kProcess:
      return CallEnd::kStopped;
    case HeldThread::Stop::kEnded:
      return CallEnd::kEnded;
    default:
      return CallEnd::kLate;
  }
}

// What dlerror() would next say to the thread, which dlopen() takes away. C libraries from 2.34 on
// keep it behind one pointer: while that is null there is nothing to take.
class PendingError {
 public:
  PendingError(pid_t pid, const Place& place, uint64_t thread_pointer) : pid_(pid) {
    for (const std::string& library : libraries_of(place.mappings, "libc.so.6"))
      if (!place_)
        place_ =
            thread_variable(pid, place.mappings, library, "__libc_dlerror_result", thread_pointer);
    const auto pointer = place_ ? read_value<uint64_t>(pid, *place_) : std::nullopt;
    if (pointer && *pointer != 0 && write(0)) pointer_ = *pointer;
  }
  // The thread is where it was.
  void give_back() const {
    if (pointer_ != 0) write(pointer_);
  }

 private:
  bool write(uint64_t pointer) const {
    return write_memory(pid_, *place_, std::as_bytes(std::span(&pointer, 1)));
  }

  pid_t pid_;
  std::optional<uint64_t> place_;
  uint64_t pointer_ = 0;
};

// Where a signal came meanwhile for which the program has a handler, its system call is to end.
void give_state_back(HeldThread& thread, const Entry& entry, Moment until) {
  user_regs_struct now;
  if (entry.again.rip != entry.was.rip && static_cast<int64_t>(entry.was.rax) != -ENOSYS &&
      thread.stop(until) == HeldThread::Stop::kAsked && thread.read(now) &&
      now.rip == entry.again.rip && now.rsp == entry.again.rsp)
    thread.write(entry.was);
}

}  // namespace

bool can_call_remotely() { return true; }

std::vector<WaitingThread> waiting_threads(pid_t pid) {
  std::vector<WaitingThread> threads;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(proc_path(pid, "task"), error)) {
    const pid_t tid = std::atoi(task.path().filename().c_str());
    std::istringstream words(proc_text(pid, "task/" + std::to_string(tid) + "/syscall"));
    uint64_t call = 0;
    std::array<uint64_t, 6> arguments{};
    if (!(words >> call)) continue;  // it runs
    words >> std::hex;
    uint64_t stack = 0, next_instruction = 0;
    for (uint64_t& argument : arguments) words >> argument;
    words >> stack >> next_instruction;
    call = call_behind(pid, call, next_instruction);
    if (is_wait(call, arguments[1])) threads.push_back({tid, is_for_ever(call, arguments)});
  }
  std::ranges::stable_sort(threads, [](const WaitingThread& a, const WaitingThread& b) {
    return a.for_ever && !b.for_ever;
  });
  return threads;
}

CallEnd call_in_thread(pid_t pid, WaitingThread waiting, Moment entered_by, Moment until,
                       const std::function<std::optional<RemoteCall>()>& next) {
  using Stop = HeldThread::Stop;
  HeldThread thread(waiting.tid);
  const auto place = place_of(pid);
  if (!place) return CallEnd::kNotNow;
  std::optional<Entry> entry;
  Stop stop = thread.stop(entered_by);
  for (bool begins = false;; begins = !begins) {
    user_regs_struct registers;
    if (stop == Stop::kProcess) return CallEnd::kStopped;
    if (stop != Stop::kAsked && stop != Stop::kSystemCall) return CallEnd::kNotNow;
    if (!thread.read(registers)) return CallEnd::kNotNow;
    if (stop == Stop::kAsked || begins) entry = entry_of(pid, *place, registers);
    if (entry) {
      entry->begins = begins;
      break;
    }
    // A sleep is over soon: the next one is met before it begins.
    if (waiting.for_ever) return CallEnd::kNotNow;
    stop = thread.go_to_system_call(entered_by);
  }
  uint64_t blocked = 0;
  if (!thread.read_blocked_signals(blocked)) return CallEnd::kNotNow;
  const PendingError error(pid, *place, entry->was.fs_base);
  CallEnd end = CallEnd::kNotNow;
  while (const auto call = next()) {
    end = do_call(pid, thread, *place, *entry, blocked, *call, until);
    if (end != CallEnd::kDone) break;
    entry->begins = false;
  }
  if (end == CallEnd::kDone || end == CallEnd::kNotNow) error.give_back();
  if (end == CallEnd::kDone) give_state_back(thread, *entry, until);
  return end;
}

}  // namespace flopinj

#else

namespace flopinj {

bool can_call_remotely() { return false; }
std::vector<WaitingThread> waiting_threads(pid_t) { return {}; }
CallEnd call_in_thread(pid_t, WaitingThread, Moment, Moment,
                       const std::function<std::optional<RemoteCall>()>&) {
  return CallEnd::kNotNow;
}

}  // namespace flopinj

#endif
