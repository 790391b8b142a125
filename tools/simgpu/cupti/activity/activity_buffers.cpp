#include "activity/activity_buffers.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "versions.h"

namespace simgpu::cupti {
namespace {

// True on a thread that is inside one of the client's buffer callbacks: flushing there would wait
// for itself.
thread_local bool t_in_buffer_callback = false;

// As versions before 12.9 do with a null buffer: they write to it.
void crash() {
  volatile uint8_t* volatile nowhere = nullptr;
  *nowhere = 0;
}

}  // namespace

ActivityBuffers::ActivityBuffers(const Environment& environment)
    : null_is_refusal_(null_buffer_is_refusal(environment.cupti_version)),
      returns_at_stop_(environment.faults.return_buffers),
      keeps_every_(environment.faults.keep_buffers),
      per_thread_(per_thread_buffers(environment.cupti_version)) {}

void ActivityBuffers::set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                    CUpti_BuffersCallbackCompleteFunc complete) {
  const std::scoped_lock lock(sync_->mutex);
  request_ = request;
  complete_ = [complete](uint8_t* data, size_t size, size_t valid) {
    complete(nullptr, 0, data, size, valid);
  };
}

void ActivityBuffers::set_own_callbacks(OwnRequest request, OwnComplete complete) {
  const std::scoped_lock lock(sync_->mutex);
  request_ = [request](uint8_t** data, size_t* size, size_t* records) {
    uint64_t info[4] = {sizeof info[0]};  // its size, and what is not simulated
    request(data, size, records, info);
  };
  complete_ = [complete](uint8_t* data, size_t size, size_t valid) {
    uint64_t info[4] = {sizeof info};
    complete(data, size, valid, info);
  };
}

bool ActivityBuffers::has_callbacks() const {
  const std::scoped_lock lock(sync_->mutex);
  return request_ != nullptr;
}

void ActivityBuffers::forked() {
  (void)sync_.release();  // left as it is: threads of the parent may wait by it
  sync_ = std::make_unique<Sync>();
}

void ActivityBuffers::start() {
  const std::scoped_lock lock(sync_->mutex);
  if (generation_ % 2 == 1 && thread_pid_ == getpid()) return;
  generation_ += generation_ % 2 == 1 ? 2 : 1;
  thread_pid_ = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([this, generation = generation_] { deliver_until_stopped(generation); });
  thread.detach();  // it may be asked to stop from inside its own callback, so nobody joins it
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ActivityBuffers::stop() {
  std::unique_lock lock(sync_->mutex);
  if (generation_ % 2 == 1) ++generation_;
  if (returns_at_stop_) {
    for (auto& [owner, buffer] : current_) retire(buffer);
    for (; !spare_.empty(); spare_.pop_front()) retire(spare_.front());
  } else {
    full_.clear();
  }
  const std::deque<Buffer> returned = std::exchange(full_, {});
  current_.clear();
  spare_.clear();
  delivered_count_ = retired_count_;
  request_ = nullptr;
  const auto complete = std::exchange(complete_, nullptr);
  sync_->work.notify_all();
  sync_->delivered.notify_all();
  lock.unlock();
  t_in_buffer_callback = true;
  for (const Buffer& buffer : returned)
    if (complete != nullptr) complete(buffer.data, buffer.size, buffer.used);
  t_in_buffer_callback = false;
}

bool ActivityBuffers::fits(const Buffer& buffer, size_t size) const {
  return buffer.data != nullptr && size <= buffer.size - buffer.used &&
         (buffer.max_records == 0 || buffer.records < buffer.max_records);
}

void ActivityBuffers::retire(Buffer& buffer) {
  if (buffer.data == nullptr) return;
  full_.push_back(buffer);
  buffer = {};
  ++retired_count_;
  sync_->work.notify_one();
}

void ActivityBuffers::find_buffer(uint64_t owner, std::unique_lock<std::mutex>& lock) {
  if (!spare_.empty()) {
    current_[owner] = spare_.front();
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
  if (fresh.data == nullptr && !null_is_refusal_) crash();
  const bool usable = fresh.data != nullptr &&
                      reinterpret_cast<uintptr_t>(fresh.data) % ACTIVITY_RECORD_ALIGNMENT == 0;
  lock.lock();
  if (!usable) return;
  if (Buffer& current = current_[owner]; current.data == nullptr)
    current = fresh;
  else
    spare_.push_back(fresh);  // another thread was faster
}

uint8_t* ActivityBuffers::room_for(size_t size, uint64_t owner,
                                   std::unique_lock<std::mutex>& lock) {
  if (!fits(current_[owner], size)) {
    retire(current_[owner]);
    find_buffer(owner, lock);
  }
  while (!fits(current_[owner], size) && !spare_.empty()) {  // others have filled it meanwhile
    retire(current_[owner]);
    find_buffer(owner, lock);
  }
  Buffer& buffer = current_[owner];
  if (!fits(buffer, size)) return nullptr;
  ++buffer.records;
  return buffer.data + std::exchange(buffer.used, buffer.used + size);
}

void ActivityBuffers::append(std::span<const uint8_t> bytes, size_t size, uint64_t thread) {
  std::unique_lock lock(sync_->mutex);
  uint8_t* const room = room_for(size, per_thread_ ? thread : 0, lock);
  if (room == nullptr) {
    ++dropped_;
    return;
  }
  const auto known = bytes.first(std::min(size, bytes.size()));
  std::ranges::copy(known, room);
  std::fill(room + known.size(), room + size, uint8_t{0});
}

void ActivityBuffers::count_dropped() {
  const std::scoped_lock lock(sync_->mutex);
  ++dropped_;
}

size_t ActivityBuffers::take_dropped() {
  const std::scoped_lock lock(sync_->mutex);
  return std::exchange(dropped_, 0);
}

CUptiResult ActivityBuffers::flush(bool forced) {
  if (t_in_buffer_callback) return CUPTI_ERROR_INVALID_OPERATION;
  std::unique_lock lock(sync_->mutex);
  if (request_ == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  for (auto& [owner, buffer] : current_)
    if (buffer.used > 0 || forced) retire(buffer);
  for (; forced && !spare_.empty(); spare_.pop_front()) retire(spare_.front());
  if (full_.empty() && delivered_count_ == retired_count_) return CUPTI_SUCCESS;
  if (generation_ % 2 == 0 || thread_pid_ != getpid()) return CUPTI_ERROR_UNKNOWN;
  const uint64_t target = retired_count_;
  sync_->work.notify_all();
  sync_->delivered.wait(lock, [&] { return delivered_count_ >= target; });
  return CUPTI_SUCCESS;
}

void ActivityBuffers::set_per_thread(bool on) {
  const std::scoped_lock lock(sync_->mutex);
  per_thread_ = on;
}

bool ActivityBuffers::per_thread() const {
  const std::scoped_lock lock(sync_->mutex);
  return per_thread_;
}

void ActivityBuffers::deliver_until_stopped(uint64_t generation) {
  std::unique_lock lock(sync_->mutex);
  const auto stopped = [&] { return generation_ != generation; };
  while (!stopped()) {
    sync_->work.wait(lock, [&] { return stopped() || !full_.empty(); });
    while (!stopped() && !full_.empty()) {
      const Buffer buffer = full_.front();
      full_.pop_front();
      if (keeps_every_ != 0 && ++handed_back_ % keeps_every_ == 0) {
        ++delivered_count_;
        sync_->delivered.notify_all();
        continue;
      }
      const auto complete = complete_;
      lock.unlock();
      t_in_buffer_callback = true;
      complete(buffer.data, buffer.size, buffer.used);
      t_in_buffer_callback = false;
      lock.lock();
      if (!stopped()) ++delivered_count_;
      sync_->delivered.notify_all();
    }
  }
}

}  // namespace simgpu::cupti
