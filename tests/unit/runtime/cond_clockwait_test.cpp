// What waits on a condition where glibc, older than 2.30, has no function for it.
#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "catch.h"

// Declared under the name that it is compiled by, and found nowhere else.
extern "C" int wait_without_glibc(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
#define pthread_cond_clockwait wait_without_glibc
#define dlsym(...) static_cast<void*>(nullptr)
#include "cmake/runtime/cond_clockwait.cpp"
#undef dlsym

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Condition {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

  // What the wait until a time on the steady clock says.
  int wait(Clock::time_point until) {
    const auto ns = until.time_since_epoch() / 1ns;
    const timespec end{ns / kSecond, ns % kSecond};
    pthread_mutex_lock(&mutex);
    const int said = wait_without_glibc(&condition, &mutex, CLOCK_MONOTONIC, &end);
    pthread_mutex_unlock(&mutex);
    return said;
  }
};

}  // namespace

TEST_CASE("a wait ends at its time on the steady clock") {
  Condition condition;
  // More than a second's part, so that nanoseconds carry over in some of them.
  for (const auto length : {1ms, 90ms, 600ms}) {
    const Clock::time_point begin = Clock::now();
    CHECK(condition.wait(begin + length) == ETIMEDOUT);
    const auto lasted = Clock::now() - begin;
    CHECK(lasted > length - 5ms);  // the two clocks are read one after the other
    CHECK(lasted < length + 20s);
  }
  CHECK(condition.wait(Clock::now() - 3s) == ETIMEDOUT);
}

TEST_CASE("a signal ends a wait") {
  Condition condition;
  std::thread other([&] {
    // Until the waiting thread has let go of the mutex.
    std::this_thread::sleep_for(20ms);
    pthread_mutex_lock(&condition.mutex);
    pthread_cond_signal(&condition.condition);
    pthread_mutex_unlock(&condition.mutex);
  });
  const int said = condition.wait(Clock::now() + 60s);
  other.join();
  CHECK(said == 0);
}
