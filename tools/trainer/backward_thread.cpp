#include "backward_thread.h"

#include <pthread.h>

namespace trainer {

BackwardThread::BackwardThread(const Context& context)
    : context_(context), thread_([this] { work(); }) {}

BackwardThread::~BackwardThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackwardThread::run(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  task_ = std::move(task);
  changed_.notify_all();
  changed_.wait(lock, [this] { return !task_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackwardThread::work() {
  pthread_setname_np(pthread_self(), "pt_autograd_0");
  bool current = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || task_; });
    if (ending_) return;
    try {
      if (!current) context_.make_current();
      current = true;
      task_();
    } catch (...) {
      failure_ = std::current_exception();
    }
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace trainer
