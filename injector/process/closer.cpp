#include <collector/base/start_thread.h>
#include <injector/process/closer.h>
#include <injector/process/helper_threads.h>
#include <injector/process/process_state.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace flopinj {
namespace {

using State = CloserThread::State;

// Until the word is no longer `value`, another reason to look, or the time on CLOCK_MONOTONIC.
void wait_while(const std::atomic<uint32_t>& word, State value, const timespec* until) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void wake_all(const std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void run(CloserThread& closer, void (*close)() noexcept) noexcept {
  name_helper_thread("flopinj-closer");
  while (closer.state == State::kWaiting) wait_while(closer.state, State::kWaiting, nullptr);
  const bool asked = closer.state == State::kAsked;
  if (asked) close();
  closer.state = asked ? State::kDone : State::kNone;
  wake_all(closer.state);
}

bool is_before(const timespec& a, const timespec& b) noexcept {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

bool start_closer(void (*close)() noexcept) noexcept {
  CloserThread& closer = process_state().closer;
  closer.state = State::kWaiting;
  pthread_t thread{};
  const bool started = start_thread(thread, [&closer, close] { run(closer, close); });
  // Nobody joins it: the program may end between its last step and a join.
  if (started)
    pthread_detach(thread);
  else
    closer.state = State::kNone;
  return started;
}

void dismiss_closer() noexcept {
  CloserThread& closer = process_state().closer;
  uint32_t state = State::kWaiting;
  if (!closer.state.compare_exchange_strong(state, State::kDismissed)) return;
  wake_all(closer.state);
  while (closer.state == State::kDismissed) wait_while(closer.state, State::kDismissed, nullptr);
}

bool ask_closer(std::chrono::milliseconds at_most) noexcept {
  constexpr long kNsPerSecond = 1'000'000'000, kNsPerMs = 1'000'000;
  timespec until{}, now{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += at_most.count() / 1'000;
  until.tv_nsec += at_most.count() % 1'000 * kNsPerMs;
  until.tv_sec += until.tv_nsec / kNsPerSecond;
  until.tv_nsec %= kNsPerSecond;
  std::atomic<uint32_t>& state = process_state().closer.state;
  uint32_t waiting = State::kWaiting;
  if (state.compare_exchange_strong(waiting, State::kAsked)) wake_all(state);
  while (state == State::kAsked) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!is_before(now, until)) return false;
    wait_while(state, State::kAsked, &until);
  }
  return true;
}

}  // namespace flopinj
