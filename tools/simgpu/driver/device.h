// A simulated device: its memory, its one execution engine, its primary context.
#pragma once
#include <cuda.h>

#include <memory>
#include <mutex>
#include <utility>

#include "driver/chip.h"
#include "driver/execution/arena.h"

namespace simgpu {

struct Context;

class Device {
 public:
  Device(int ordinal, const Chip& chip) : ordinal_(ordinal), chip_(chip) {}

  int ordinal() const { return ordinal_; }
  const Chip& chip() const { return chip_; }
  CUuuid uuid() const;
  Arena& memory();  // reserved at first use

  // Held while a kernel or a copy runs: one at a time per device. Recursive, so that a tool's
  // callback in the middle of a launch does not lock itself out.
  std::recursive_mutex& engine() { return engine_; }

  struct Primary {
    std::mutex mutex;
    std::shared_ptr<Context> context;
    uint32_t references = 0;
  };
  Primary& primary() { return primary_; }

 private:
  const int ordinal_;
  const Chip& chip_;
  std::once_flag memory_once_;
  std::unique_ptr<Arena> memory_;
  std::recursive_mutex engine_;
  Primary primary_;
};

}  // namespace simgpu
