// A program that is entered while it runs: enter_client CASE. Its first thread waits again and
// again in the way that the case names, and looks at what has become of the wait. A second thread
// does what lines on stdin say; it is in no place to be entered in. At the end of stdin the program
// prints "right", or what was wrong, and the number of signals that it was given.
#include <alloca.h>
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace std::chrono_literals;

std::atomic<int> g_signals{0};
std::atomic<bool> g_ends{false}, g_leaves_handler{false}, g_loads{false};
std::atomic<const char*> g_wrong{nullptr};
int g_wake[2];              // a pipe: a byte ends the waits on it
int g_load[2], g_leave[2];  // and one lets libraries be loaded, and places be left
std::mutex g_mutex;
std::condition_variable g_condition;
sem_t g_semaphore;

void expect(bool right, const char* what) {
  if (!right) g_wrong = what;
}

void on_signal(int) { ++g_signals; }

void handle_all_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (int number = 1; number < 65; ++number)
    if (number != SIGKILL && number != SIGSTOP && number != 32 && number != 33)
      sigaction(number, &action, nullptr);
}

// Whether a wait ended as it should: before its time only by a signal that has a handler.
template <typename Wait>
void wait_once(std::chrono::nanoseconds least, const Wait& wait) {
  const int signals = g_signals;
  const auto began = std::chrono::steady_clock::now();
  const bool ended = wait();
  if (signals != g_signals) return;
  expect(ended, "a wait ended with an error");
  expect(std::chrono::steady_clock::now() - began >= least || g_ends, "a wait was too short");
}

void sleep_once(std::chrono::nanoseconds time = 2ms) {
  wait_once(time, [&] {
    const timespec wanted{0, static_cast<long>(time.count())};
    return nanosleep(&wanted, nullptr) == 0;
  });
}

// To read is no wait in which a thread is entered.
void wait_to_leave() {
  for (char byte = 0; !g_leaves_handler;) (void)!read(g_leave[0], &byte, 1);
}

bool is_woken(short events) { return (events & POLLIN) != 0; }

// --- One wait of each kind -----------------------------------------------------------------------

void poll_for_ever() {
  wait_once(0ns, [] {
    pollfd polled{g_wake[0], POLLIN, 0};
    return poll(&polled, 1, -1) == 1 && is_woken(polled.revents);
  });
}
void poll_for_a_while() {
  wait_once(20ms, [] { return poll(nullptr, 0, 20) == 0; });
}
void ppoll_for_ever() {
  wait_once(0ns, [] {
    sigset_t none;
    sigemptyset(&none);
    pollfd polled{g_wake[0], POLLIN, 0};
    return ppoll(&polled, 1, nullptr, &none) == 1 && is_woken(polled.revents);
  });
}
void select_for_a_while() {
  wait_once(20ms, [] {
    timeval time{0, 20'000};
    return select(0, nullptr, nullptr, nullptr, &time) == 0;
  });
}
// The kernel ends it with EINTR for any thread that is stopped.
void epoll() {
  static const int all = [] {
    const int made = epoll_create1(0);
    epoll_event event{EPOLLIN, {}};
    epoll_ctl(made, EPOLL_CTL_ADD, g_wake[0], &event);
    return made;
  }();
  if (g_leaves_handler) return sleep_once();
  epoll_event event{};
  expect(epoll_wait(all, &event, 1, 50) == 0, "epoll_wait ended with an error");
}
void sleep_for_a_while() { sleep_once(20ms); }
void sleep_for_long() { sleep_once(900ms); }
void sleep_until_a_time() {
  wait_once(20ms, [] {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += 20'000'000;
    if (time.tv_nsec >= 1'000'000'000) ++time.tv_sec, time.tv_nsec -= 1'000'000'000;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == 0;
  });
}
void condition_for_ever() {
  std::unique_lock lock(g_mutex);
  g_condition.wait(lock, [] { return g_ends.load(); });
}
void condition_for_a_while() {
  std::unique_lock lock(g_mutex);
  wait_once(20ms, [&] {
    return !g_condition.wait_for(lock, 20ms, [] { return g_ends.load(); }) || g_ends;
  });
}
void semaphore() {
  wait_once(0ns, [] { return sem_wait(&g_semaphore) == 0; });
}

#if defined(__x86_64__)
// Vector registers and the rounding mode, which a function of the C library does not use here.
__attribute__((target("avx"))) bool registers_are_kept() {
  alignas(32) static uint8_t before[16][32], after[16][32];
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 32; ++j) before[i][j] = static_cast<uint8_t>(i * 32 + j + 1);
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x6000);  // towards 0
  pollfd polled{g_wake[0], POLLIN, 0};
  pollfd* const first = &polled;
  long result = 0;
  asm volatile(
      "vmovaps 0(%[from]), %%ymm0\n vmovaps 32(%[from]), %%ymm1\n"
      "vmovaps 64(%[from]), %%ymm2\n vmovaps 96(%[from]), %%ymm3\n"
      "vmovaps 480(%[from]), %%ymm15\n"
      "mov %[fds], %%rdi\n mov $1, %%esi\n mov $-1, %%edx\n"
      "mov %%rsp, %%rbx\n and $-16, %%rsp\n sub $256, %%rsp\n call *%[poll]\n mov %%rbx, %%rsp\n"
      "vmovaps %%ymm0, 0(%[to])\n vmovaps %%ymm1, 32(%[to])\n"
      "vmovaps %%ymm2, 64(%[to])\n vmovaps %%ymm3, 96(%[to])\n"
      "vmovaps %%ymm15, 480(%[to])\n"
      : "=&a"(result)
      : [from] "r"(before), [to] "r"(after), [fds] "r"(first), [poll] "r"(&poll)
      : "rbx", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15");
  const bool same_mode = _mm_getcsr() == (mode | 0x6000);
  _mm_setcsr(mode);
  bool same = same_mode && static_cast<int>(result) == 1;
  for (const unsigned i : {0U, 1U, 2U, 3U, 15U}) same &= memcmp(before[i], after[i], 32) == 0;
  return same;
}
void registers() {
  if (__builtin_cpu_supports("avx"))
    expect(registers_are_kept(), "registers have changed");
  else
    poll_for_ever();
}
#else
void registers() { poll_for_ever(); }
#endif

// --- Places that are not to be entered -----------------------------------------------------------

// With known bytes around a small stack.
struct SmallStack {
  static constexpr size_t kAround = 1 << 19;
  explicit SmallStack(size_t size) : size_(size), bytes_(size + 2 * kAround, 0x5a) {}
  char* begin() { return bytes_.data() + kAround; }
  size_t size() const { return size_; }
  bool is_alone() const {
    for (size_t i = 0; i < kAround; ++i)
      if (bytes_[i] != 0x5a || bytes_[kAround + size_ + i] != 0x5a) return false;
    return true;
  }

 private:
  size_t size_;
  std::vector<char> bytes_;
};

void in_handler(int) {
  while (!g_leaves_handler) {
    const timespec time{0, 1'000'000};
    nanosleep(&time, nullptr);
  }
}

void handle_on(char* stack, size_t size) {
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = size;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = in_handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  stack_t now{};
  sigaltstack(nullptr, &now);
  expect(now.ss_sp == stack && now.ss_size == size, "the alternate stack is another");
}

void alternate_stack() {
  static SmallStack stack(8'192);
  if (!g_leaves_handler) handle_on(stack.begin(), stack.size());
  expect(stack.is_alone(), "bytes below an alternate stack have changed");
  sleep_once();
}

// In the frame of a function, with frames of later ones below it.
__attribute__((noinline)) void handle_on_own_stack() {
  char stack[8'192];
  handle_on(stack, sizeof stack);
}

void alternate_stack_on_stack() {
  if (!g_leaves_handler) handle_on_own_stack();
  sleep_once();
}

void handler() {
  static bool first = true;
  if (first) {
    first = false;
    signal(SIGUSR1, in_handler);
    raise(SIGUSR1);
  }
  sleep_once();
}

// A thread on a stack that the program gives it sleeps; the first one does not, until it may.
void small_thread() {
  static SmallStack stack(65'536);
  static const pthread_t thread = [] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack.begin(), stack.size());
    pthread_t made{};
    pthread_create(
        &made, &attributes,
        [](void*) -> void* {
          while (!g_leaves_handler) sleep_once();
          return nullptr;
        },
        nullptr);
    return made;
  }();
  (void)thread;
  wait_to_leave();
  expect(stack.is_alone(), "bytes around a thread's stack have changed");
  sleep_once();
}

// openat ends the process.
void forbid_open() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::exit(3);
}

void filtered_thread() {
  static const bool once = [] {
    std::thread([] {
      forbid_open();
      while (!g_leaves_handler) sleep_once();
    }).detach();
    return true;
  }();
  (void)once;
  wait_to_leave();
  sleep_once();
}

void filtered() {
  static const bool once = (forbid_open(), true);
  (void)once;
  sleep_once();
}

// Another thread has the loader's lock until "load": whoever loads a library waits.
void loader() {
  static const bool once = [] {
    std::thread([] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      const auto wait = [](dl_phdr_info*, size_t, void*) {
        g_loads = true;
        char byte = 0;
        expect(read(g_load[0], &byte, 1) == 1, "the pipe is closed");
        return 1;
      };
      dl_iterate_phdr(wait, nullptr);
    }).detach();
    while (!g_loads) sched_yield();
    return true;
  }();
  (void)once;
  sleep_once();
}

// A stack that is used so far that nobody can look through it.
void deep_thread() {
  static const pthread_t thread = [] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{256} << 20);
    pthread_t made{};
    pthread_create(
        &made, &attributes,
        [](void*) -> void* {
          auto* const frame = static_cast<volatile char*>(alloca(size_t{128} << 20));
          frame[0] = 'x';
          while (!g_leaves_handler) sleep_once();
          expect(frame[0] == 'x', "a frame has changed");
          return nullptr;
        },
        nullptr);
    return made;
  }();
  (void)thread;
  wait_to_leave();
  sleep_once();
}

// --- What is there to be read --------------------------------------------------------------------

// Before the C library, in the order of addresses, there is a file of its name with 8 GiB of code,
// whose table of symbols has a chain without end.
void forged_library() {
  static const bool once = [] {
    struct Image {
      Elf64_Ehdr header;
      Elf64_Phdr part;
      Elf64_Dyn dynamic[4];
      struct {
        uint32_t buckets, first_symbol, bloom_words, bloom_shift, bloom[2], bucket[1], chain[1];
      } hash;
    } image{};
    std::memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_phnum = 1;
    image.header.e_phoff = offsetof(Image, part);
    image.part.p_type = PT_DYNAMIC;
    image.part.p_vaddr = offsetof(Image, dynamic);
    const Elf64_Dyn entries[] = {{DT_SYMTAB, {sizeof image}},
                                 {DT_STRTAB, {sizeof image}},
                                 {DT_GNU_HASH, {offsetof(Image, hash)}}};
    std::memcpy(image.dynamic, entries, sizeof entries);
    image.hash.buckets = image.hash.bloom_words = 1;
    char folder[] = "/tmp/enter_client-XXXXXX";
    if (mkdtemp(folder) == nullptr) std::exit(3);
    const std::string file = std::string(folder) + "/libc.so.6";
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    constexpr size_t kSize = size_t{8} << 30;
    const bool there = write(fd, &image, sizeof image) == sizeof image && ftruncate(fd, kSize) == 0;
    const void* const code = mmap(nullptr, kSize, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    if (!there || code == MAP_FAILED || code > reinterpret_cast<void*>(&std::puts)) std::exit(3);
    unlink(file.c_str());
    rmdir(folder);
    return true;
  }();
  (void)once;
  sleep_once();
}

// An error that the program has not asked about yet.
void pending_error() {
  static const bool once = [] {
    dlopen("/nowhere/that.so", RTLD_NOW);
    return true;
  }();
  (void)once;
  poll_for_ever();
  const char* const error = dlerror();
  expect(error != nullptr && std::strstr(error, "/nowhere/that.so") != nullptr,
         "the thread's error of the loader is lost");
}

// --- Processes -----------------------------------------------------------------------------------

void vforks() {
  char sleeps[] = "sleep", time[] = "0.05";
  char* arguments[] = {sleeps, time, nullptr};
  const pid_t child = vfork();
  if (child == 0) {
    const timespec while_stopped{0, 20'000'000};
    nanosleep(&while_stopped, nullptr);
    execvp(sleeps, arguments);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  expect(status == 0, "a child ended otherwise");
}

void forks() {
  const pid_t child = fork();
  if (child == 0) {
    const timespec time{0, 1'000'000};
    nanosleep(&time, nullptr);
    _exit(7);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child ended otherwise");
  sleep_once(1ms);
}

// The program runs itself by exec, for some seconds.
void execs(char** arguments) {
  const int left = std::atoi(arguments[2]) - 1;
  if (left <= 0) {
    std::puts("right 0");
    return;
  }
  sleep_once();
  const std::string number = std::to_string(left);
  char* next[] = {arguments[0], arguments[1], const_cast<char*>(number.c_str()), nullptr};
  execv("/proc/self/exe", next);
}

const std::map<std::string, void (*)()> kCases{
    {"poll_for_ever", poll_for_ever},
    {"poll_for_a_while", poll_for_a_while},
    {"ppoll_for_ever", ppoll_for_ever},
    {"select_for_a_while", select_for_a_while},
    {"epoll", epoll},
    {"sleep_for_a_while", sleep_for_a_while},
    {"sleep_for_long", sleep_for_long},
    {"sleep_until_a_time", sleep_until_a_time},
    {"condition_for_ever", condition_for_ever},
    {"condition_for_a_while", condition_for_a_while},
    {"semaphore", semaphore},
    {"registers", registers},
    {"alternate_stack", alternate_stack},
    {"alternate_stack_on_stack", alternate_stack_on_stack},
    {"handler", handler},
    {"small_thread", small_thread},
    {"filtered_thread", filtered_thread},
    {"deep_thread", deep_thread},
    {"forged_library", forged_library},
    {"pending_error", pending_error},
    {"filtered", filtered},
    {"loader", loader},
    {"vforks", vforks},
    {"forks", forks},
    {"sleep", [] { sleep_once(); }},
};

void let_leave() {
  g_leaves_handler = true;
  expect(write(g_leave[1], "x", 1) == 1, "the pipe is closed");
}
void let_load() { expect(write(g_load[1], "x", 1) == 1, "the pipe is closed"); }

void read_lines() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "go on") let_leave();
    if (line == "load") let_load();
    std::printf("%d\n", g_signals.load());
    std::fflush(stdout);
  }
  let_leave();
  let_load();
  {
    const std::lock_guard lock(g_mutex);
    g_ends = true;
  }
  g_condition.notify_all();
  sem_post(&g_semaphore);
  expect(write(g_wake[1], "x", 1) == 1, "the pipe is closed");
}

}  // namespace

int main(int argc, char** argv) {
  int version = 0;
  cuDriverGetVersion(&version);  // the driver is there
  if (argc == 3 && std::string(argv[1]) == "execs") {
    execs(argv);
    return 0;
  }
  const auto found = kCases.find(argc > 1 ? argv[1] : "");
  if (found == kCases.end() || pipe(g_wake) != 0 || pipe(g_load) != 0 || pipe(g_leave) != 0 ||
      sem_init(&g_semaphore, 0, 0) != 0)
    return 2;
  handle_all_signals();
  sigset_t blocked, now;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGWINCH);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  std::thread reading(read_lines);
  std::puts("ready");
  std::fflush(stdout);
  while (!g_ends) found->second();
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  expect(memcmp(&blocked, &now, 8) == 0, "other signals are blocked");
  reading.join();
  std::printf("%s %d\n", g_wrong != nullptr ? g_wrong.load() : "right", g_signals.load());
  return 0;
}
