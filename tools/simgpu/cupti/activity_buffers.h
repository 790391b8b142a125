// The client's activity buffers: asked for when one is needed, filled record by record, and handed
// back on CUPTI's own thread.
//
// Rules kept from CUPTI: a buffer is handed back when full, or by a flush; with a flush period set,
// full buffers wait for the period; a record that finds no buffer of sufficient size is dropped and
// counted; buffers that were not flushed before cuptiFinalize are not handed back.
#pragma once
#include <cupti.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace simgpu::cupti {

class ActivityBuffers {
 public:
  void set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                     CUpti_BuffersCallbackCompleteFunc complete);
  bool has_callbacks() const;

  // Starts the delivering thread if it does not run. It blocks all signals.
  void start();
  // The thread ends at its next step; what was not flushed stays with the client. Callbacks are
  // forgotten.
  void stop();

  void append(const void* record, size_t size);
  void count_dropped();
  size_t take_dropped();

  // Blocks until every record appended so far has been handed back. Not from inside a buffer
  // callback, nor in a forked child, which has no delivering thread.
  // Forced: buffers without a record go back too.
  CUptiResult flush(bool forced);
  void set_period(uint32_t milliseconds);  // 0: full buffers go at once

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t size = 0, used = 0;
    size_t records = 0, max_records = 0;  // max 0: no limit
  };
  bool fits(const Buffer& buffer, size_t size) const;
  void retire_current();
  // A spare one, or one asked for: without the lock, for the client may hold a lock of its own in
  // other calls that its request callback takes too.
  void find_buffer(std::unique_lock<std::mutex>& lock);
  void deliver_until_stopped(uint64_t generation);

  mutable std::mutex mutex_;
  std::condition_variable work_, delivered_;
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  Buffer current_;
  std::deque<Buffer> full_, spare_;
  uint64_t retired_count_ = 0, delivered_count_ = 0;
  size_t dropped_ = 0;
  uint32_t period_ms_ = 0;
  uint32_t flushers_ = 0;    // threads that wait in flush(): the period is not waited for
  uint64_t generation_ = 0;  // of the running thread; odd while one is wanted
  pid_t thread_pid_ = 0;
};

}  // namespace simgpu::cupti
