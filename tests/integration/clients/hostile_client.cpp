// Programs that do to a library in them what real programs do: hostile_client CASE [ARGUMENTS].
// Each prints what it found on stdout; without the profiler it prints the same.
#include <cudaProfiler.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client.h"
#include "profiler_calls.h"

// A signal to the process meets each thread of the profiler in its first moment: the program's
// other threads have blocked the signal then, so that the new thread gets it, if it can.
namespace meeting {

bool armed = false;
std::atomic<int> threads{0}, handlers{0};  // of the profiler; run on them
thread_local bool t_profilers = false;

struct Start {
  void* (*main)(void*);
  void* argument;
  std::atomic<bool> others_blocked{false}, met{false};
};

void* first_moment(void* argument) {
  auto* const start = static_cast<Start*>(argument);
  const auto main = start->main;
  void* const of_main = start->argument;
  t_profilers = true;
  while (!start->others_blocked) sched_yield();
  kill(getpid(), SIGUSR1);
  ++threads;
  start->met = true;
  return main(of_main);
}

}  // namespace meeting

using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*), void* argument) {
  auto* const create = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!meeting::armed) return create(thread, attributes, main, argument);
  const bool profilers = client::is_profilers(__builtin_return_address(0));
  meeting::Start start{main, argument};
  sigset_t signal;
  sigset_t previous;
  sigemptyset(&signal);
  sigaddset(&signal, SIGUSR1);
  if (!profilers) pthread_sigmask(SIG_BLOCK, &signal, &previous);
  const int result = profilers ? create(thread, attributes, meeting::first_moment, &start)
                               : create(thread, attributes, main, argument);
  if (profilers) pthread_sigmask(SIG_BLOCK, &signal, &previous);
  start.others_blocked = true;
  while (profilers && result == 0 && !start.met) sched_yield();
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return result;
}

namespace {

using client::check;
using client::Gpu;
using std::chrono::milliseconds;

char* program = nullptr;

// Gives every descriptor from 3 on that is open in the process to FILE, as closing them all and
// opening many files would, and goes on launching.
void takes_descriptors(const std::string& file) {
  const Gpu gpu(program);
  gpu.axpy(100);
  const int own = open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  std::vector<int> taken;
  for (int fd = 3; fd < 65'536; ++fd)
    if (fd != own && fcntl(fd, F_GETFD) >= 0) taken.push_back(fd);
  for (const int fd : taken) dup2(own, fd);
  if (write(own, "mine\n", 5) != 5) std::exit(3);
  for (int i = 0; i < 30; ++i) {
    gpu.axpy(100);
    std::this_thread::sleep_for(milliseconds(20));
  }
}

void launch_many(const Gpu& gpu, int count) {
  gpu.use();
  for (int i = 0; i < count; ++i) gpu.axpy(100);
}

// main() ends before its thread does, which sleeps so long between launches.
void main_ends(int sleep_ms) {
  static const Gpu gpu(program);
  std::thread([sleep_ms] {
    launch_many(gpu, 20);
    std::this_thread::sleep_for(milliseconds(sleep_ms));
    launch_many(gpu, 20);
  }).detach();
  pthread_exit(nullptr);
}

// A timer's signal calls exit(0) after so many microseconds, in the middle of launches and ranges.
void exit_in_handler(int microseconds) {
  const Gpu gpu(program);
  std::signal(SIGALRM, [](int) { std::exit(0); });
  itimerval when{};
  when.it_value.tv_usec = microseconds;
  setitimer(ITIMER_REAL, &when, nullptr);
  for (;;) {
    nvtxRangePushA("step");
    gpu.axpy(100);
    nvtxRangePop();
  }
}

using End = void(int);

void end_in_handler(End* end) {
  static End* ends = nullptr;
  ends = end;
  std::signal(SIGALRM, [](int) { ends(7); });
}

// Strings, lists of them, and pieces of all sizes: in the C library's lists of free pieces, in its
// heap and outside of it.
void allocate_all_the_time() {
  for (size_t i = 1;; ++i) {
    std::vector<std::string> names;
    for (size_t k = 0; k < 40; ++k) names.emplace_back(1 + i * (k + 1) * 131 % 70'000, 'x');
    void* volatile const piece = std::malloc(i * 4'099 % 300'000);
    std::free(piece);
  }
}

// A timer's signal ends the program after so many microseconds, while `threads` threads allocate,
// the one that launches too. One more may be in the loader's list of libraries, and allocate there.
void exit_in_malloc(End* end, int microseconds, int threads, bool lists_libraries) {
  const Gpu gpu(program);
  launch_many(gpu, 10);
  end_in_handler(end);
  for (int i = 1; i < threads; ++i) std::thread(allocate_all_the_time).detach();
  if (lists_libraries)
    std::thread([] {
      for (;;)
        dl_iterate_phdr(
            [](dl_phdr_info*, size_t, void*) {
              const std::vector<std::string> names(20, std::string(5'000, 'x'));
              return names.empty() ? 1 : 0;
            },
            nullptr);
    }).detach();
  itimerval when{};
  when.it_value.tv_usec = microseconds;
  setitimer(ITIMER_REAL, &when, nullptr);
  allocate_all_the_time();
}

// The same at a certain place: an allocation of the program's, or the profiler's first of a range.
// All threads that allocate then wait without end.
void exit_in_locked_malloc(End* end, bool of_profiler) {
  const auto say_what_is_blocked = [] {  // after the profiler's handler, which comes later
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    const bool terminable = sigismember(&blocked, SIGTERM) == 0;
    const std::string_view line = terminable ? "SIGTERM ends it\n" : "deaf to SIGTERM\n";
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
  };
  std::atexit(say_what_is_blocked);
  std::at_quick_exit(say_what_is_blocked);
  const Gpu gpu(program);
  launch_many(gpu, 10);
  end_in_handler(end);
  client::interrupt_next_allocation(SIGALRM, of_profiler);
  nvtxRangePushA("step");
  void* volatile const piece = std::malloc(100);
  std::free(piece);
  std::raise(SIGALRM);  // without a profiler
}

// A signal handler opens and closes ranges while the thread does, with names that are new.
void ranges_in_handler() {
  static std::atomic<long> number{0};
  const Gpu gpu(program);
  gpu.axpy(100);
  // Made ahead: a handler that interrupts malloc and needs memory hangs in any program.
  std::vector<std::string> names;
  for (int i = 0; i < 4'096; ++i) names.push_back("range " + std::to_string(i));
  std::signal(SIGALRM, [](int) {
    char name[] = "handler 00";
    const long n = number.fetch_add(1);
    name[8] = static_cast<char>('0' + n % 10);
    name[9] = static_cast<char>('0' + n / 10 % 10);
    nvtxRangePushA(name);
    nvtxRangePop();
  });
  itimerval every{};
  every.it_value.tv_usec = every.it_interval.tv_usec = 500;
  setitimer(ITIMER_REAL, &every, nullptr);
  const auto end = std::chrono::steady_clock::now() + milliseconds(1'500);
  for (size_t i = 0; std::chrono::steady_clock::now() < end; ++i) {
    nvtxRangePushA(names[i % names.size()].c_str());
    nvtxRangePop();
  }
}

// cuInit on a thread that is already cancelled.
void cancelled_init() {
  pthread_t thread{};
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        pthread_cancel(pthread_self());
        check(cuInit(0), "cuInit");
        pthread_testcancel();
        return nullptr;
      },
      nullptr);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("cancelled %d\n", result == PTHREAD_CANCELED ? 1 : 0);
}

// The writer's, the planner's and the closer's thread each meet a signal in their first moment.
void signals_meet_threads() {
  std::signal(SIGUSR1, [](int) { meeting::handlers += meeting::t_profilers ? 1 : 0; });
  std::signal(SIGALRM, [](int) { std::exit(0); });
  std::atexit([] {  // after the profiler's handler, which comes later
    std::printf("handlers in threads of the profiler: %d\n", meeting::handlers.load());
    std::fprintf(stderr, "threads of the profiler: %d\n", meeting::threads.load());
  });
  meeting::armed = true;
  const Gpu gpu(program);
  gpu.axpy(100);
  std::raise(SIGALRM);
}

// A child made without fork(), so that no handler of fork ran, ends by exit(0).
void raw_fork() {
  const Gpu gpu(program);
  gpu.axpy(100);
  const auto began = std::chrono::steady_clock::now();
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) std::exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  // At its end a recording waits 5 s for a writer, which the child does not have.
  const bool quick = std::chrono::steady_clock::now() - began < milliseconds(4'500);
  std::printf("child %d, at once %d\n", status, quick ? 1 : 0);
}

void read_to_the_end_of_input() {
  while (std::getchar() != EOF) {
  }
}

// Launches, and ends without exit handlers at the end of its input.
void immediate_exit() {
  const Gpu gpu(program);
  gpu.axpy(100);
  read_to_the_end_of_input();
  _exit(0);
}

void quick_end() {
  const Gpu gpu(program);
  gpu.axpy(100);
  std::quick_exit(0);
}

// Runs itself anew, so many times.
void runs_itself(int times) {
  const Gpu gpu(program);
  gpu.axpy(100);
  if (times > 1) {
    const std::string left = std::to_string(times - 1);
    execl(program, program, "runs_itself", left.c_str(), static_cast<char*>(nullptr));
    std::exit(3);
  }
}

// So many threads at once, each with ten launches; the peak of memory, in KiB, is printed.
void many_threads(int count) {
  const Gpu gpu(program);
  pthread_barrier_t all{};
  pthread_barrier_init(&all, nullptr, static_cast<unsigned>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      launch_many(gpu, 10);
      pthread_barrier_wait(&all);
    });
  for (std::thread& thread : threads) thread.join();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%ld\n", usage.ru_maxrss);
}

// `count` threads at once make `rounds` rounds of `launches` launches each, of 40 shapes. Before
// these threads begin, the main thread makes one round alone. After each round the main thread
// prints the number of launches so far and waits for a line. The test sends the line when all of
// these launches are written, since waiting ones take memory, and reads the process's memory.
void thread_memory(int count, int rounds, int launches) {
  const Gpu gpu(program);
  const auto round = [&] {
    gpu.use();
    int n = 1;
    float a = 2;
    void* parameters[] = {&n, &a, const_cast<CUdeviceptr*>(&gpu.x),
                          const_cast<CUdeviceptr*>(&gpu.y)};
    const CUfunction axpy = gpu.function("axpy");
    for (int i = 0; i < launches; ++i)
      check(cuLaunchKernel(axpy, 1 + static_cast<unsigned>(i % 40), 1, 1, 32, 1, 1, 0, nullptr,
                           parameters, nullptr),
            "cuLaunchKernel");
    Gpu::synchronize();
  };
  auto wait_for_line = [made = 0](int more) mutable {
    std::printf("%d\n", made += more);
    std::fflush(stdout);
    while (std::getchar() != '\n') {
    }
  };
  round();  // what all threads share is there
  wait_for_line(launches);
  pthread_barrier_t all{};
  pthread_barrier_init(&all, nullptr, static_cast<unsigned>(count) + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      for (int made = 0; made < rounds; ++made) {
        round();
        pthread_barrier_wait(&all);
        pthread_barrier_wait(&all);
      }
    });
  for (int made = 0; made < rounds; ++made) {
    pthread_barrier_wait(&all);
    wait_for_line(launches * count);
    pthread_barrier_wait(&all);
  }
  for (std::thread& thread : threads) thread.join();
}

// The profiler's allocations fail from the start: the one after `after`, or it and all behind it.
void no_memory(long after, bool onwards) {
  using client::ScarceMemory;
  using Fails = ScarceMemory::Fails;
  const ScarceMemory scarce(after, onwards ? Fails::kAllFromThere : Fails::kOne,
                            ScarceMemory::Of::kAllThreads);
  const Gpu gpu(program);
  launch_many(gpu, 20);
  Gpu::synchronize();
}

// Unloads every library that CUDA has loaded into the program, more often than it was loaded.
void unloads() {
  const Gpu gpu(program);
  launch_many(gpu, 10);
  for (int i = 0; i < 10; ++i) {
    const char* const path = std::getenv("CUDA_INJECTION64_PATH");
    void* const library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    for (int k = 0; library != nullptr && k < 5; ++k) dlclose(library);
    launch_many(gpu, 10);
  }
  Gpu::synchronize();
}

// Takes all keys of the C library, the way it was before first.
void all_keys() {
  std::vector<pthread_key_t> keys;
  pthread_key_t key{};
  while (pthread_key_create(&key, nullptr) == 0) {
    keys.push_back(key);
    pthread_setspecific(key, &keys);
  }
  const Gpu gpu(program);
  launch_many(gpu, 10);
  size_t changed = 0;
  for (const pthread_key_t k : keys) changed += pthread_getspecific(k) != &keys ? 1 : 0;
  std::printf("keys changed %zu\n", changed);
}

// All of a library that is loaded. Empty where none has the name.
std::span<unsigned char> memory_of(std::string_view name) {
  struct Search {
    std::string_view name;
    uintptr_t begin = UINTPTR_MAX, end = 0;
  } search{name};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& out = *static_cast<Search*>(data);
        if (!std::string_view(info->dlpi_name).ends_with(out.name)) return 0;
        for (const auto& part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
          if (part.p_type != PT_LOAD) continue;
          const uintptr_t page = 4'095, begin = info->dlpi_addr + part.p_vaddr;
          out.begin = std::min(out.begin, begin & ~page);
          out.end = std::max(out.end, (begin + part.p_memsz + page) & ~page);
        }
        return 1;
      },
      &search);
  if (search.end == 0) return {};
  return {reinterpret_cast<unsigned char*>(search.begin), search.end - search.begin};
}

// A library with a copy of NVTX is used and closed. Nothing of the program's is in its place then,
// or memory of the program's, which nobody else may write to. Recordings begin and end after that;
// it launches for a while at least, and to the end of its input.
void closes_nvtx(bool mapped_again) {
  constexpr std::string_view kName = "/nvtx_copy.so";
  const Gpu gpu(program);
  gpu.axpy(100);
  const std::string path = program;
  void* const copy = dlopen((path.substr(0, path.rfind('/')) + kName.data()).c_str(), RTLD_NOW);
  if (copy == nullptr) std::exit(3);
  reinterpret_cast<void (*)()>(dlsym(copy, "nvtx_copy_ranges"))();
  const std::span<unsigned char> place = memory_of(kName);
  dlclose(copy);
  if (place.empty() || !memory_of(kName).empty()) std::exit(4);
  constexpr unsigned char kMine = 0x5a;
  if (mapped_again) {
    if (mmap(place.data(), place.size(), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != place.data())
      std::exit(5);
    std::fill(place.begin(), place.end(), kMine);
  }
  const auto launch_while = [&](const auto& condition) {
    do {
      gpu.axpy(100);
      std::this_thread::sleep_for(milliseconds(1));
    } while (condition());
  };
  const auto launch_for = [&](milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    launch_while([&] { return std::chrono::steady_clock::now() < end; });
  };
  std::atomic<bool> input_has_ended{false};
  std::thread reader([&] {
    read_to_the_end_of_input();
    input_has_ended = true;
  });
  cuProfilerStart();
  launch_for(milliseconds(700));
  cuProfilerStop();
  launch_for(milliseconds(300));
  launch_while([&] { return !input_has_ended; });
  reader.join();
  Gpu::synchronize();
  const auto changed =
      mapped_again ? std::ranges::count_if(place, [](unsigned char c) { return c != kMine; }) : 0;
  std::printf("changed %td\n", changed);
}

// Handles that nobody gave: every function of NVTX that takes one takes each of them.
void bogus_handles() {
  const Gpu gpu(program);
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  const nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "string");
  const uintptr_t good = reinterpret_cast<uintptr_t>(domain);
  uint64_t local[8] = {};
  std::vector<uintptr_t> all = {1,
                                8,
                                0x1000,
                                UINTPTR_MAX,
                                UINTPTR_MAX - 7,
                                uintptr_t{1} << 47,
                                reinterpret_cast<uintptr_t>(&local),
                                reinterpret_cast<uintptr_t>(string)};
  for (int bit = 0; bit < 64; ++bit) all.push_back(good ^ uintptr_t{1} << bit);
  for (uintptr_t step = 8; step < (1U << 20); step *= 2) all.push_back(good + step);
  for (const uintptr_t value : all) {
    const auto bogus = reinterpret_cast<nvtxDomainHandle_t>(value);
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered =
        reinterpret_cast<nvtxStringHandle_t>(value == all[7] ? good : value);
    nvtxDomainRangePop(bogus);
    nvtxDomainMarkEx(bogus, &attributes);
    nvtxDomainRangePushEx(bogus, &attributes);
    nvtxRangePushEx(&attributes);
    nvtxDomainRangeEnd(bogus, nvtxDomainRangeStartEx(bogus, &attributes));
    nvtxDomainRangeEnd(bogus, value);
    nvtxRangeEnd(value);
    nvtxDomainRegisterStringA(bogus, "another string");
    nvtxDomainResourceDestroy(reinterpret_cast<nvtxResourceHandle_t>(value));
    gpu.axpy(100);
    nvtxRangePop();
    nvtxDomainRangePop(bogus);
    nvtxDomainDestroy(bogus);
  }
  nvtxDomainDestroy(domain);
  nvtxDomainRangePop(domain);
  Gpu::synchronize();
  std::printf("%zu handles\n", all.size());
}

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  const std::string name = argc > 1 ? argv[1] : "";
  const std::string argument = argc > 2 ? argv[2] : "0";
  const int number = std::atoi(argument.c_str());
  End* const end =
      argc > 3 && std::string_view(argv[3]) == "quick_exit" ? std::quick_exit : std::exit;
  if (name == "takes_descriptors")
    takes_descriptors(argument);
  else if (name == "main_ends")
    main_ends(number);
  else if (name == "exit_in_handler")
    exit_in_handler(number);
  else if (name == "exit_in_malloc")
    exit_in_malloc(end, number, std::atoi(argv[4]), argc > 5);
  else if (name == "exit_in_locked_malloc")
    exit_in_locked_malloc(end, number != 0);
  else if (name == "ranges_in_handler")
    ranges_in_handler();
  else if (name == "cancelled_init")
    cancelled_init();
  else if (name == "signals_meet_threads")
    signals_meet_threads();
  else if (name == "unloads")
    unloads();
  else if (name == "closes_nvtx")
    closes_nvtx(number != 0);
  else if (name == "bogus_handles")
    bogus_handles();
  else if (name == "raw_fork")
    raw_fork();
  else if (name == "immediate_exit")
    immediate_exit();
  else if (name == "quick_end")
    quick_end();
  else if (name == "runs_itself")
    runs_itself(number);
  else if (name == "many_threads")
    many_threads(number);
  else if (name == "thread_memory" && argc > 4)
    thread_memory(number, std::atoi(argv[3]), std::atoi(argv[4]));
  else if (name == "no_memory")
    no_memory(number, argc > 3);
  else if (name == "all_keys")
    all_keys();
  else
    return 2;
  return 0;
}
