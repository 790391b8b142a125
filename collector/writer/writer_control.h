// How the program's threads and the writer thread wait for each other.
//
// The writer may be stuck in a sink when the program wants to end. close() then gives up: it marks
// the writer as abandoned and lets the thread go. From then on the writer calls no hook (they
// belong to the edge, which may be gone) and touches only what it owns a share of.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/recording.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <utility>

namespace flopinj {

class WriterControl {
 public:
  struct Request {
    bool close = false, flush = false, abandoned = false;
    EndReason reason = EndReason::kExit;
    uint64_t ticket = 0;  // of the last flush asked for; to be handed to flushed()
  };

  // Writer thread: sleeps until something is asked or the time is over.
  Request wait(std::chrono::milliseconds at_most) {
    MutexLock lock(mutex_);
    wake_.wait_for(lock.native(), at_most, [this]() FLOPINJ_REQUIRES(mutex_) {
      return close_ || abandoned_ || asked_ > answered_;
    });
    return {close_, asked_ > answered_, abandoned_, reason_, asked_};
  }
  void flushed(uint64_t ticket) {
    const MutexLock lock(mutex_);
    answered_ = ticket;
    done_.notify_all();
  }
  void finished() {
    const MutexLock lock(mutex_);
    finished_ = true;
    done_.notify_all();
  }
  void has_begun() {
    const MutexLock lock(mutex_);
    begun_ = true;
    done_.notify_all();
  }
  // Calls `hook` unless the writer was abandoned.
  template <class Hook>
  void with_edge(Hook&& hook) {
    {
      const MutexLock lock(mutex_);
      if (abandoned_) return;
      in_hook_ = true;
    }
    struct Leave {
      WriterControl& control;
      ~Leave() {
        const MutexLock lock(control.mutex_);
        control.in_hook_ = false;
        control.done_.notify_all();
      }
    } leave{*this};
    std::forward<Hook>(hook)();
  }

  // Other threads.
  // False: the writer has not begun by then.
  bool await_begin(std::chrono::milliseconds at_most) {
    MutexLock lock(mutex_);
    return done_.wait_for(lock.native(), at_most,
                          [this]() FLOPINJ_REQUIRES(mutex_) { return begun_; });
  }
  bool flush(std::chrono::milliseconds at_most) {
    MutexLock lock(mutex_);
    const uint64_t ticket = ++asked_;
    wake_.notify_one();
    return done_.wait_for(lock.native(), at_most, [&]() FLOPINJ_REQUIRES(mutex_) {
      return answered_ >= ticket || finished_;
    });
  }
  // True: the thread is done and may be joined. False: it was abandoned.
  bool close(EndReason reason, std::chrono::milliseconds at_most) {
    MutexLock lock(mutex_);
    reason_ = reason;
    close_ = true;
    wake_.notify_one();
    if (done_.wait_for(lock.native(), at_most,
                       [this]() FLOPINJ_REQUIRES(mutex_) { return finished_; }))
      return true;
    abandoned_ = true;
    done_.wait_for(lock.native(), kHookGrace,
                   [this]() FLOPINJ_REQUIRES(mutex_) { return !in_hook_; });
    return false;
  }

 private:
  static constexpr auto kHookGrace = std::chrono::milliseconds(200);

  Mutex mutex_;
  std::condition_variable wake_, done_;
  bool close_ FLOPINJ_GUARDED_BY(mutex_) = false;
  bool begun_ FLOPINJ_GUARDED_BY(mutex_) = false;
  bool finished_ FLOPINJ_GUARDED_BY(mutex_) = false;
  bool abandoned_ FLOPINJ_GUARDED_BY(mutex_) = false;
  bool in_hook_ FLOPINJ_GUARDED_BY(mutex_) = false;
  EndReason reason_ FLOPINJ_GUARDED_BY(mutex_) = EndReason::kExit;
  uint64_t asked_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  uint64_t answered_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
