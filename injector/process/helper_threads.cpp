#include <dirent.h>
#include <fcntl.h>
#include <injector/process/helper_threads.h>
#include <injector/process/process_state.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace flopinj {
namespace {

constexpr const char* kCuptis = "flopinj-cupti";
constexpr std::array<std::string_view, 6> kNames{"flopinj-control", "flopinj-writer",
                                                 "flopinj-planner", "flopinj-closer",
                                                 "flopinj-energy",  kCuptis};

bool is_ours(std::string_view name) { return std::ranges::find(kNames, name) != kNames.end(); }

// The beginning of a file of /proc; nothing, and errno says why, where it cannot be read.
std::string_view read_start(const char* path, std::span<char> into) noexcept {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t count = read(fd, into.data(), into.size());
  const int error = errno;
  close(fd);
  errno = error;
  return {into.data(), count < 0 ? 0 : static_cast<size_t>(count)};
}

// Of stat: "TID (NAME) STATE ...", with any byte in the name. Z: it has ended, and waits for the
// other threads.
bool main_thread_ended(const char* tid) noexcept {
  char path[64], text[128];
  std::snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
  const std::string_view line = read_start(path, text);
  const size_t name_end = line.rfind(')');
  return name_end != line.npos && line.size() > name_end + 2 && line[name_end + 2] == 'Z';
}

bool is_helper(const char* tid) noexcept {
  char path[64], text[32];
  std::snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", tid);
  std::string_view name = read_start(path, text);
  if (name.empty()) return errno == ENOENT || errno == ESRCH;  // it has ended
  name.remove_suffix(1);                                       // the end of the line
  return is_ours(name);
}

}  // namespace

void name_helper_thread(const char* name) noexcept { prctl(PR_SET_NAME, name); }

void count_helper_thread(const char* name) noexcept {
  name_helper_thread(name);
  process_state().helpers.fetch_add(1, std::memory_order_relaxed);
}

void helper_thread_ended() noexcept {
  const bool last = process_state().helpers.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last && only_helpers_left()) std::exit(0);
}

bool only_helpers_left() noexcept {
  char main_thread[16];
  std::snprintf(main_thread, sizeof main_thread, "%d", getpid());
  if (!main_thread_ended(main_thread)) return false;
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  bool only = true, whole = false;
  while (only && !whole) {
    errno = 0;
    const dirent* const task = readdir(tasks);
    whole = task == nullptr;
    only = whole ? errno == 0
                 : task->d_name[0] == '.' || std::strcmp(task->d_name, main_thread) == 0 ||
                       is_helper(task->d_name);
  }
  closedir(tasks);
  return only;
}

CuptiThreadsAreHelpers::CuptiThreadsAreHelpers() noexcept {
  prctl(PR_GET_NAME, before_);
  if (!is_ours(before_)) prctl(PR_SET_NAME, kCuptis);
}

CuptiThreadsAreHelpers::~CuptiThreadsAreHelpers() { prctl(PR_SET_NAME, before_); }

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
