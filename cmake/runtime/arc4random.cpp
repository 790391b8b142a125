// The static libstdc++ of Debian 12 takes arc4random() for std::random_device, which came with
// glibc 2.36 only. This one takes its place, so that what is built there also runs on older ones.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t value = 0;
  // Up to 256 bytes come whole once the system is up.
  if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) std::abort();
  return value;
}
