#include <collector/identity/start_thread.h>
#include <injector/process/helper_threads.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unwind.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace flopinj {
namespace {

std::atomic<nlink_t> g_helpers{0};

// Of /proc/self/stat: "PID (NAME) STATE ...", with any byte in the name. Z: it has ended, and waits
// for the other threads.
bool main_thread_ended() {
  std::ifstream stat("/proc/self/stat");
  std::string line;
  std::getline(stat, line);
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.size() > name_end + 2 && line[name_end + 2] == 'Z';
}

// Shared with a thread that may be left behind.
struct Task {
  std::function<void()> run;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
};

}  // namespace

void count_helper_thread(const char* name) noexcept {
  prctl(PR_SET_NAME, name);
  g_helpers.fetch_add(1, std::memory_order_relaxed);
}

void helper_thread_ended() noexcept { g_helpers.fetch_sub(1, std::memory_order_relaxed); }

bool only_helpers_left() noexcept {
  struct stat tasks {};
  if (stat("/proc/self/task", &tasks) != 0) return false;
  // Links of that directory: two as of any other, and one for each thread, the ended main thread
  // among them.
  if (tasks.st_nlink != 2 + 1 + g_helpers.load(std::memory_order_relaxed)) return false;
  try {
    return main_thread_ended();
  } catch (...) {
    return false;
  }
}

bool run_aside(std::function<void()> task, std::chrono::milliseconds at_most) {
  auto shared = std::make_shared<Task>();
  shared->run = std::move(task);
  pthread_t thread{};
  const bool started = start_thread(thread, [shared] {
    count_helper_thread("flopinj-closer");
    shared->run();
    helper_thread_ended();
    const std::lock_guard done(shared->mutex);
    shared->done = true;
    shared->changed.notify_all();
  });
  if (!started) return shared->run(), true;
  pthread_detach(thread);
  std::unique_lock lock(shared->mutex);
  return shared->changed.wait_for(lock, at_most, [&] { return shared->done; });
}

bool below_signal_handler() noexcept {
  bool found = false;
  // The unwinder marks a frame that a signal interrupted: its address is of the instruction to run
  // next, and not of the one after a call.
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* data) -> _Unwind_Reason_Code {
        int interrupted = 0;
        _Unwind_GetIPInfo(frame, &interrupted);
        *static_cast<bool*>(data) |= interrupted != 0;
        return _URC_NO_REASON;
      },
      &found);
  return found;
}

}  // namespace flopinj
