// Stacks of their own for the threads of a block that meet at barriers: each fiber runs until it
// yields, then the next one does, all on one operating-system thread.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace simgpu {

class Fiber;

class FiberPool {
 public:
  FiberPool();
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // Runs body(arg, i) for i in [0, count), each on its own stack, in rounds: every unfinished one
  // runs until it yields or ends, in order of i, then the next round starts. before(arg, i) is
  // called each time i is about to run.
  void run(size_t count, void (*body)(void* arg, size_t i), void (*before)(void* arg, size_t i),
           void* arg);

  // From inside body: let the others run.
  void yield();

 private:
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
};

}  // namespace simgpu
