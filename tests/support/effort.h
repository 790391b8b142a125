// How much a test does. Under a sanitizer code is 3 to 20 times slower, and a fault shows at the
// first access of its kind: loops that are long for the sake of arithmetic or statistics run in
// full in the ordinary build, which is their proof, and for a smaller number under a sanitizer.
#pragma once

namespace flopinj::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

template <class T>
constexpr T effort(T full, T sanitized) {
  return kSanitized ? sanitized : full;
}

}  // namespace flopinj::test
