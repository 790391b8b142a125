// A second host thread for backward passes, as an automatic-differentiation engine has.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "gpu/gpu.h"

namespace trainer {

// The thread is named pt_autograd_0, after PyTorch's, and has `context` current.
class BackwardThread {
 public:
  explicit BackwardThread(const Context& context);
  ~BackwardThread();  // waits for the thread to end
  BackwardThread(const BackwardThread&) = delete;
  BackwardThread& operator=(const BackwardThread&) = delete;

  // Runs `task` on the thread, waits until it has returned, and throws what it threw. One caller at
  // a time.
  void run(std::function<void()> task);

 private:
  void work();

  const Context& context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;  // empty: nothing to do
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread thread_;  // last: starts when the rest is ready
};

}  // namespace trainer
