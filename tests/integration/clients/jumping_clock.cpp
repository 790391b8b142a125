// Preloaded into a program: the system clock (CLOCK_REALTIME) jumps by up to a day, back or forth,
// at every tenth look or so. Other clocks never jump, as the kernel promises.
#include <dlfcn.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace {

constexpr int64_t kNsPerS = 1'000'000'000;
constexpr int64_t kMostNs = 86'400 * kNsPerS;

std::atomic<int64_t> g_offset_ns{0};
std::atomic<uint64_t> g_looks{0};

// splitmix64's finisher (Steele, Lea, Flood, OOPSLA 2014).
uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30U) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27U) * 0x94D049BB133111EB;
  return x ^ x >> 31U;
}

int true_clock(clockid_t clock, timespec* time) {
  using Function = int (*)(clockid_t, timespec*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  return next(clock, time);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = true_clock(clock, time);
  if (result != 0 || clock != CLOCK_REALTIME) return result;
  const uint64_t random = mixed(g_looks.fetch_add(1));
  if (random % 10 == 0) g_offset_ns = static_cast<int64_t>(random >> 8U) % (2 * kMostNs) - kMostNs;
  const int64_t ns = time->tv_sec * kNsPerS + time->tv_nsec + g_offset_ns.load();
  time->tv_sec = ns / kNsPerS;
  time->tv_nsec = ns % kNsPerS;
  return 0;
}

__attribute__((visibility("default"))) int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1'000;
  return result;
}

__attribute__((visibility("default"))) time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
}
