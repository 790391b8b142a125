// CUDA contexts we have seen: created after us, or adopted at their first launch.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/ids.h>
#include <collector/schedule/window_machine.h>
#include <cuda.h>
#include <injector/counters/access/waiting_streams.h>
#include <injector/process/edge.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace flopinj {

struct OpenWindow;
struct ThreadContext;
class RangeProfiler;

// What other threads see of a context's windows (collector/schedule/window_machine.h): one byte,
// whose stores and loads are sequentially consistent.
class Gate {
 public:
  using Level = WindowMachine::Gate;
  void show(const WindowMachine& machine, size_t seat) noexcept {
    const auto level = static_cast<unsigned>(machine.gate(seat));
    const unsigned seen =
        level | (machine.may_open(seat) ? kMayOpen : 0U) | (machine.owes(seat) ? kOwes : 0U);
    if (seen != seen_.load(std::memory_order_relaxed)) seen_.store(static_cast<uint8_t>(seen));
  }
  Level level() const noexcept { return static_cast<Level>(seen_.load() & kLevel); }
  bool may_open() const noexcept { return (seen_.load() & kMayOpen) != 0; }
  bool owes() const noexcept { return (seen_.load() & kOwes) != 0; }

 private:
  static constexpr unsigned kLevel = 15, kMayOpen = 16, kOwes = 32;
  std::atomic<uint8_t> seen_{kMayOpen};
};

// What the planner's thread is asked about a context, and its answers (questions.h).
struct Asked {
  std::atomic<uint32_t> of{0};
  std::atomic<size_t> free_bytes{0};
  std::atomic<CUstream> stream{nullptr};
  std::atomic<bool> stream_captures{false};
  std::atomic<bool> gone{false};  // the context is, or is going: the driver is asked no more
  Mutex asking;                   // held while the driver is asked
};

// One CUDA context. Never freed: a thread may still hold a pointer when the context goes away; the
// object then serves the next one of the same device, so that the planner's thread may read which.
//
// Threads: what it is does not change while it is known. Its window is its owner's: the thread that
// a step of the machine has made so (leases.h), until another step. Outside of steps threads share
// `gate`, which tells them where the machine stands without its lock, `waiting` and `asked`, which
// calls of the program's change that are not the owner's; these two lock what needs it.
struct Context {
  Context();
  ~Context();

  CUcontext handle = nullptr;
  uint32_t id = 0;       // CUPTI's, unique in the process
  uint32_t ordinal = 0;  // of its device, as is the next
  DeviceId device;

  Gate gate;
  WaitingStreams waiting;
  Asked asked;

  size_t seat = WindowMachine::kNone;  // in its device's machine: of steps
  std::unique_ptr<OpenWindow> window;
  std::unique_ptr<RangeProfiler> profiler;  // made at the first window
};

class Contexts {
 public:
  explicit Contexts(Edge& edge) : edge_(edge) {}

  // Null for a null handle, or when CUPTI does not know its device. A hit takes no lock.
  Context* find(ThreadContext&, CUcontext);
  // CONTEXT_CREATED, before the planner asks about the device. No call of the driver is made.
  void created(CUcontext, uint32_t ordinal);
  // CUCONTEXT_DESTROY_STARTING: the handle may come back as another context.
  Context* forget(CUcontext);
  void recycle(Context*);  // after forget, when its window is closed

  std::vector<Context*> all();

 private:
  Context* adopt(CUcontext);
  Context* add(CUcontext, uint32_t ordinal, uint32_t id);

  Edge& edge_;
  std::atomic<uint32_t> epoch_{1};  // changes when a context goes away
  Mutex mutex_;
  std::deque<Context> storage_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<Context*> free_ FLOPINJ_GUARDED_BY(mutex_);
  std::unordered_map<CUcontext, Context*> live_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
