#include "activity_buffers.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace simgpu::cupti {
namespace {

// True on a thread that is inside one of the client's buffer callbacks: flushing there would wait
// for itself.
thread_local bool t_in_buffer_callback = false;

}  // namespace

void ActivityBuffers::set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                    CUpti_BuffersCallbackCompleteFunc complete) {
  const std::scoped_lock lock(mutex_);
  request_ = request;
  complete_ = complete;
}

bool ActivityBuffers::has_callbacks() const {
  const std::scoped_lock lock(mutex_);
  return request_ != nullptr;
}

void ActivityBuffers::start() {
  const std::scoped_lock lock(mutex_);
  if (generation_ % 2 == 1 && thread_pid_ == getpid()) return;
  generation_ += generation_ % 2 == 1 ? 2 : 1;
  thread_pid_ = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([this, generation = generation_] { deliver_until_stopped(generation); });
  pthread_setname_np(thread.native_handle(), "simgpu-cupti");
  thread.detach();  // it may be asked to stop from inside its own callback, so nobody joins it
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ActivityBuffers::stop() {
  const std::scoped_lock lock(mutex_);
  if (generation_ % 2 == 1) ++generation_;
  current_ = {};
  full_.clear();
  spare_.clear();
  delivered_count_ = retired_count_;
  request_ = nullptr;
  complete_ = nullptr;
  period_ms_ = 0;
  work_.notify_all();
  delivered_.notify_all();
}

bool ActivityBuffers::fits(const Buffer& buffer, size_t size) const {
  return buffer.data != nullptr && size <= buffer.size - buffer.used &&
         (buffer.max_records == 0 || buffer.records < buffer.max_records);
}

void ActivityBuffers::retire_current() {
  if (current_.data == nullptr) return;
  full_.push_back(current_);
  current_ = {};
  ++retired_count_;
  work_.notify_one();
}

void ActivityBuffers::find_buffer(std::unique_lock<std::mutex>& lock) {
  if (!spare_.empty()) {
    current_ = spare_.front();
    spare_.pop_front();
    return;
  }
  const auto request = request_;
  if (request == nullptr) return;
  lock.unlock();
  Buffer fresh;
  t_in_buffer_callback = true;
  request(&fresh.data, &fresh.size, &fresh.max_records);
  t_in_buffer_callback = false;
  const bool usable = fresh.data != nullptr &&
                      reinterpret_cast<uintptr_t>(fresh.data) % ACTIVITY_RECORD_ALIGNMENT == 0;
  lock.lock();
  if (!usable) return;
  if (current_.data == nullptr)
    current_ = fresh;
  else
    spare_.push_back(fresh);  // another thread was faster
}

void ActivityBuffers::append(const void* record, size_t size) {
  std::unique_lock lock(mutex_);
  if (!fits(current_, size)) {
    retire_current();
    find_buffer(lock);
  }
  while (!fits(current_, size) && !spare_.empty()) {  // others have filled it meanwhile
    retire_current();
    find_buffer(lock);
  }
  if (!fits(current_, size)) {
    ++dropped_;
    return;
  }
  std::memcpy(current_.data + current_.used, record, size);
  current_.used += size;
  ++current_.records;
}

void ActivityBuffers::count_dropped() {
  const std::scoped_lock lock(mutex_);
  ++dropped_;
}

size_t ActivityBuffers::take_dropped() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(dropped_, 0);
}

CUptiResult ActivityBuffers::flush(bool forced) {
  if (t_in_buffer_callback) return CUPTI_ERROR_INVALID_OPERATION;
  std::unique_lock lock(mutex_);
  if (request_ == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  if (current_.used > 0 || forced) retire_current();
  while (forced && !spare_.empty()) {
    current_ = spare_.front();
    spare_.pop_front();
    retire_current();
  }
  if (full_.empty() && delivered_count_ == retired_count_) return CUPTI_SUCCESS;
  if (generation_ % 2 == 0 || thread_pid_ != getpid()) return CUPTI_ERROR_UNKNOWN;
  const uint64_t target = retired_count_;
  ++flushers_;
  work_.notify_all();
  delivered_.wait(lock, [&] { return delivered_count_ >= target; });
  --flushers_;
  return CUPTI_SUCCESS;
}

void ActivityBuffers::set_period(uint32_t milliseconds) {
  const std::scoped_lock lock(mutex_);
  period_ms_ = milliseconds;
  work_.notify_all();
}

void ActivityBuffers::deliver_until_stopped(uint64_t generation) {
  std::unique_lock lock(mutex_);
  const auto stopped = [&] { return generation_ != generation; };
  while (!stopped()) {
    if (period_ms_ != 0)
      work_.wait_for(lock, std::chrono::milliseconds(period_ms_),
                     [&] { return stopped() || flushers_ > 0; });
    else
      work_.wait(lock, [&] { return stopped() || !full_.empty() || period_ms_ != 0; });
    while (!stopped() && !full_.empty()) {
      const Buffer buffer = full_.front();
      full_.pop_front();
      const auto complete = complete_;
      lock.unlock();
      t_in_buffer_callback = true;
      complete(nullptr, 0, buffer.data, buffer.size, buffer.used);
      t_in_buffer_callback = false;
      lock.lock();
      if (!stopped()) ++delivered_count_;
      delivered_.notify_all();
    }
    // With a period set, a waiting flush has been served above; let it wake and withdraw before
    // looking again.
    if (period_ms_ != 0 && flushers_ > 0 && full_.empty())
      work_.wait_for(lock, std::chrono::milliseconds(1),
                     [&] { return stopped() || !full_.empty(); });
  }
}

}  // namespace simgpu::cupti
