// std::condition_variable waits by a function that came with glibc 2.30. Where it is missing the
// wait is by the time of day, as libstdc++ did before: it lasts longer where that is set back.
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>

namespace {

constexpr long kSecond = 1'000'000'000;

using Wait = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

timespec sum(timespec a, const timespec& b, int sign) {
  a.tv_sec += sign * b.tv_sec;
  a.tv_nsec += sign * b.tv_nsec;
  const long carry = a.tv_nsec >= kSecond ? 1 : a.tv_nsec < 0 ? -1 : 0;
  a.tv_sec += carry;
  a.tv_nsec -= carry * kSecond;
  return a;
}

// Null where glibc has none. A static that is initialized here would need the runtime of C++.
Wait* look_up() {
  static std::atomic<bool> known{false};
  static std::atomic<Wait*> glibcs{nullptr};
  if (!known.load(std::memory_order_acquire)) {
    glibcs.store(reinterpret_cast<Wait*>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait")),
                 std::memory_order_relaxed);
    known.store(true, std::memory_order_release);
  }
  return glibcs.load(std::memory_order_relaxed);
}

// While this is loaded: later, dlsym() would wait for a thread that is loading a library, and that
// thread may be waiting for the one that calls.
__attribute__((constructor)) void look_up_early() { look_up(); }

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int pthread_cond_clockwait(
    pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  if (Wait* const glibcs = look_up(); glibcs != nullptr)
    return glibcs(condition, mutex, clock, until);
  timespec now{}, day{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const timespec end = sum(day, sum(*until, now, -1), 1);
  return pthread_cond_timedwait(condition, mutex, &end);
}
