// The client's activity buffers: asked for when one is needed, filled record by record, and handed
// back on CUPTI's own thread.
//
// Rules kept from CUPTI: a buffer is handed back when full, or by a flush; a record that finds no
// buffer of sufficient size is dropped and counted. With a buffer for each thread, records go to
// the buffer of the thread that launched. A null buffer is a crash in versions before 12.9. What
// becomes of a buffer that CUPTI holds at cuptiFinalize is a guess (README.md): it does not come
// back, or does with the fault return_buffers.
#pragma once
#include <cupti.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "environment.h"

namespace simgpu::cupti {

class ActivityBuffers {
 public:
  explicit ActivityBuffers(const Environment& environment);

  void set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                     CUpti_BuffersCallbackCompleteFunc complete);
  // Of a subscriber, as from 13.2 on.
  using OwnRequest = void(CUPTIAPI*)(uint8_t**, size_t*, size_t*, void* info);
  using OwnComplete = void(CUPTIAPI*)(uint8_t*, size_t, size_t valid, void* info);
  void set_own_callbacks(OwnRequest request, OwnComplete complete);
  bool has_callbacks() const;

  // Starts the delivering thread if it does not run. It blocks all signals.
  void start();
  // The thread ends at its next step. Callbacks are forgotten.
  void stop();
  // To be called in a forked child, which has none of the parent's threads.
  void forked();

  // `size` is that of the record in the buffer: of `bytes` what fits, and zeros. `thread` is any
  // number that tells the launching thread from others.
  void append(std::span<const uint8_t> bytes, size_t size, uint64_t thread);
  void count_dropped();
  size_t take_dropped();

  // Blocks until every record appended so far has been handed back. Not from inside a buffer
  // callback, nor in a forked child, which has no delivering thread.
  // Forced: buffers without a record go back too.
  CUptiResult flush(bool forced);
  void set_per_thread(bool on);  // for records from now on
  bool per_thread() const;

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t size = 0, used = 0;
    size_t records = 0, max_records = 0;  // max 0: no limit
  };
  bool fits(const Buffer& buffer, size_t size) const;
  void retire(Buffer& buffer);
  // Makes `owner`'s buffer a spare one, or one asked for: without the lock, for the client may hold
  // a lock of its own in other calls that its request callback takes too.
  void find_buffer(uint64_t owner, std::unique_lock<std::mutex>& lock);
  uint8_t* room_for(size_t size, uint64_t owner, std::unique_lock<std::mutex>& lock);
  void deliver_until_stopped(uint64_t generation);

  struct Sync {
    std::mutex mutex;  // of all below
    std::condition_variable work, delivered;
  };
  std::unique_ptr<Sync> sync_ = std::make_unique<Sync>();
  std::function<void(uint8_t**, size_t*, size_t*)> request_;
  std::function<void(uint8_t*, size_t, size_t)> complete_;
  const bool null_is_refusal_, returns_at_stop_;
  const uint64_t keeps_every_;  // buffer; 0: none
  bool per_thread_;
  std::map<uint64_t, Buffer> current_;  // by thread; 0: of all
  std::deque<Buffer> full_, spare_;
  uint64_t retired_count_ = 0, delivered_count_ = 0, handed_back_ = 0;
  size_t dropped_ = 0;
  uint64_t generation_ = 0;  // of the running thread; odd while one is wanted
  pid_t thread_pid_ = 0;
};

}  // namespace simgpu::cupti
