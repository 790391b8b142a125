// Threads that are inside the library while a recording ends.
#include <injector/process/presence.h>
#include <injector/process/this_thread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "catch.h"

using namespace flopinj;
using namespace std::chrono_literals;

TEST_CASE("a visit is waited for, the thread's first one and later ones, and one inside another") {
  constexpr auto kNever = 20s;
  std::atomic<int> inside{0};
  std::atomic<bool> may_leave{false}, all_allowed{true};
  std::thread visitor([&] {
    const RecursionGuard guard;
    for (int visit = 1; visit <= 2; ++visit) {
      const Visit outer(guard);
      all_allowed = all_allowed && outer.allowed();
      { const Visit inner(guard); }
      inside = visit;
      while (!may_leave) std::this_thread::yield();
      may_leave = false;
    }
    inside = 3;
    while (!may_leave) std::this_thread::yield();
  });
  for (int visit = 1; visit <= 2; ++visit) {
    while (inside != visit) std::this_thread::yield();
    CHECK_FALSE(visits_ended(10ms));
    may_leave = true;
  }
  while (inside != 3) std::this_thread::yield();
  CHECK(visits_ended(kNever));  // it is there, and outside
  may_leave = true;
  visitor.join();
  CHECK(all_allowed);
  CHECK(visits_ended(kNever));
}

TEST_CASE("who asks whether visits have ended is not waited for") {
  const RecursionGuard guard;
  const Visit visit(guard);
  CHECK(visits_ended(20s));
}
