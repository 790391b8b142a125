#include "driver/execution/work_queue.h"

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace simgpu {

std::shared_ptr<WorkQueue> WorkQueue::make() {
  auto queue = std::make_shared<WorkQueue>();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([queue] { queue->run(); });
  pthread_setname_np(thread.native_handle(), "simgpu-stream");
  thread.detach();  // its last work may destroy the stream, so nobody joins it
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return queue;
}

uint64_t WorkQueue::push(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_all();
  return ++pushed_;
}

uint64_t WorkQueue::newest() const {
  const std::lock_guard lock(mutex_);
  return pushed_;
}

bool WorkQueue::done(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void WorkQueue::wait(uint64_t number) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

void WorkQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // its content goes before anybody is notified
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace simgpu
