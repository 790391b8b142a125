// The work of one stream where it is asynchronous (SIMGPU_ASYNC): a thread does it in order, while
// the calls that gave it have returned.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace simgpu {

class WorkQueue {
 public:
  static std::shared_ptr<WorkQueue> make();  // starts the thread, with all signals blocked

  // Returns the work's number, from 1.
  uint64_t push(std::function<void()> work);
  uint64_t newest() const;
  bool done(uint64_t number) const;
  void wait(uint64_t number) const;
  // The thread ends when all work is done. It keeps the queue alive until then.
  void close();

 private:
  void run();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  uint64_t pushed_ = 0, done_ = 0;
  bool closed_ = false;
};

// A point in a stream's work; without a queue it has been reached.
struct Mark {
  std::shared_ptr<WorkQueue> queue;
  uint64_t number = 0;

  bool reached() const { return queue == nullptr || queue->done(number); }
  void wait() const {
    if (queue != nullptr) queue->wait(number);
  }
};

}  // namespace simgpu
