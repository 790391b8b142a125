// Training steps: each is a range that the program opens around it, on a thread (push/pop) or for
// the process (start/end). Inside of a step no other begins on its thread; while a step of the
// process is open, none begins anywhere.
//
// flopinj.torch marks steps, too (own_steps.h). A program's own go before these: the first one that
// begins ends them.
//
// A launch belongs to the step of its thread. Threads that have none of their own (autograd's) work
// for the step that the process is in: of steps of several threads, the one that was open first.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/ids.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

struct Step {
  uint32_t number = 0;  // counts from 1 as steps begin
  PathId path;
  uint64_t start_ns = 0, end_ns = 0;
};

// Whether a range of this name is taken for a training step where the user names none: "step",
// "train_step 7", "Iteration 12", "ProfilerStep#3". Numbers at the end do not matter.
bool is_usual_step(std::string_view name) noexcept;

class Steps {
 public:
  static constexpr size_t kMostEnded = 65'536;  // between two calls of take()
  using Now = std::function<uint64_t()>;        // in nanoseconds of the trace's clock

  // `names`: of the user's ranges, with "|" between them; empty: the usual ones, "none": no steps.
  Steps(std::string_view names, Now now);

  // Before this no step begins: there is no clock yet.
  void begin() noexcept { on_.store(true, std::memory_order_release); }
  // Is raised when the process's step changes. Once, before any thread uses this.
  void raise(std::atomic<uint32_t>* version) noexcept { version_ = version; }

  bool is_step(std::string_view name) const noexcept;
  // The name that a step's range has in paths, the same for steps of any number: the step has that.
  // A path for each number, and for all that is below it, would fill the table of paths.
  static std::string path_name(std::string_view name);
  static bool has_number(std::string_view name) noexcept;  // else path_name() is the name
  // Marked by flopinj.torch, and not by the program.
  static bool is_own(std::string_view name) noexcept;
  // The number of the step that begins, or 0: none does. `own`: is_own().
  uint32_t open(PathId path, bool of_process, bool own = false) noexcept;
  void close(uint32_t number) noexcept;
  // Its thread has ended without closing it: it is no step.
  void abandon(uint32_t number) noexcept;

  uint32_t of_process() const noexcept { return of_process_.load(std::memory_order_relaxed); }

  std::vector<Step> take();  // those that have ended since the last call
  uint64_t lost() const;     // ended, and found no room

 private:
  // At most one for each thread.
  struct Open {
    Step step;
    bool of_process = false, own = false;
  };
  void erase(std::vector<Open>::iterator) noexcept FLOPINJ_REQUIRES(mutex_);
  void change(uint32_t number) noexcept;

  const Now now_;
  std::vector<std::string> names_;
  bool usual_ = false;
  std::atomic<bool> on_{false};
  std::atomic<uint32_t> of_process_{0};
  std::atomic<uint32_t>* version_ = nullptr;
  mutable Mutex mutex_;
  uint32_t last_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  bool programs_ FLOPINJ_GUARDED_BY(mutex_) = false;  // one of the program's steps has begun
  std::vector<Open> open_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<Step> ended_ FLOPINJ_GUARDED_BY(mutex_);
  uint64_t lost_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
