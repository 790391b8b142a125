#include "profiler_calls.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace client {
namespace {

std::atomic<long> g_left{-1};  // allocations that succeed; negative: all
std::atomic<bool> g_onwards{false}, g_all_threads{false};
thread_local bool t_chosen = false;
thread_local bool t_asking = false;  // dladdr may allocate

[[maybe_unused]] bool fails(const void* caller) {  // sanitizers have a malloc of their own
  if (g_left.load() < 0 || t_asking || !(t_chosen || g_all_threads.load())) return false;
  t_asking = true;
  const bool profilers = is_profilers(caller);
  t_asking = false;
  if (!profilers) return false;
  for (long left = g_left.load(); left >= 0;) {
    const bool last = left == 0;
    if (!g_left.compare_exchange_weak(left, last && g_onwards.load() ? 0 : left - 1)) continue;
    return last;
  }
  return false;
}

std::atomic<bool> g_one_lock{false}, g_of_profiler{false};
std::atomic<int> g_signal{0};  // to raise; 0: raised
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
thread_local bool t_to_be_interrupted = false;

[[maybe_unused]] void meet_interruption(const void* caller) {
  if (!g_one_lock.load() || t_asking) return;
  bool profilers = false;
  if (t_to_be_interrupted && g_of_profiler.load()) {
    t_asking = true;
    profilers = is_profilers(caller);
    t_asking = false;
  }
  pthread_mutex_lock(&g_lock);
  if (t_to_be_interrupted && (profilers || !g_of_profiler.load()))
    if (const int signal = g_signal.exchange(0); signal != 0) raise(signal);
  pthread_mutex_unlock(&g_lock);
}

}  // namespace

void interrupt_next_allocation(int signal, bool of_profiler) {
  t_to_be_interrupted = true;
  g_signal = signal;
  g_of_profiler = of_profiler;
  g_one_lock = true;
}

bool is_profilers(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libflopinj.so") != nullptr;
}

ScarceMemory::ScarceMemory(long succeed, Fails which, Of threads) {
  g_onwards = which == Fails::kAllFromThere;
  g_all_threads = threads == Of::kAllThreads;
  t_chosen = true;
  g_left = succeed;
}
ScarceMemory::~ScarceMemory() {
  g_left = -1;
  t_chosen = false;
}

}  // namespace client

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* __libc_malloc(size_t);
extern "C" __attribute__((visibility("default"))) void* malloc(size_t bytes) {
  if (client::fails(__builtin_return_address(0))) {
    errno = ENOMEM;
    return nullptr;
  }
  client::meet_interruption(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
#endif
