// Rules that are checked while we develop (FLOPINJ_ASSERTS: presets dev, asan, tsan, fuzz), and
// cost nothing in what is shipped.
#pragma once

#ifdef FLOPINJ_ASSERTS
#include <cstdio>
#include <cstdlib>
#include <thread>
#define FLOPINJ_ASSERT(rule) ((rule) ? (void)0 : ::flopinj::rule_broken(__FILE__, __LINE__, #rule))
#else
#define FLOPINJ_ASSERT(rule) ((void)sizeof(!(rule)))
#endif

namespace flopinj {

#ifdef FLOPINJ_ASSERTS
[[noreturn]] inline void rule_broken(const char* file, int line, const char* rule) {
  std::fprintf(stderr, "flopinj: %s:%d: broken rule: %s\n", file, line, rule);
  std::abort();
}
#endif

// Member of a class that one thread uses, whichever: the first that comes is the only one.
class OneThread {
 public:
#ifdef FLOPINJ_ASSERTS
  void check() const {
    if (owner_ == std::thread::id{}) owner_ = std::this_thread::get_id();
    FLOPINJ_ASSERT(owner_ == std::this_thread::get_id());
  }

 private:
  mutable std::thread::id owner_;
#else
  void check() const {}
#endif
};

}  // namespace flopinj
