// CUDA contexts we have seen: created after us, or adopted at their first launch.
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/mutex.h>
#include <collector/schedule/window_machine.h>
#include <cuda.h>
#include <injector/counters/access/waiting_streams.h>
#include <injector/process/call_frames.h>
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
struct Signature;
struct ThreadContext;
class Leases;
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

// One CUDA context. Never freed: a thread may still hold a pointer when the context goes away; the
// object then serves the next one of the same device, so that the planner's thread may read which.
struct Context final : WindowSeat {
  Context();
  ~Context();

  CUcontext handle = nullptr;
  uint32_t id = 0;       // CUPTI's, unique in the process
  uint32_t ordinal = 0;  // of its device, as is the next
  DeviceId device;

  Gate gate;
  size_t seat = WindowMachine::kNone;  // in its device's machine (leases.h), under its lock

  // The measurement window; windows.h has which thread may touch what.
  std::atomic<bool> plan_awaited{false};  // the first launch has waited for the device's plan
  std::unique_ptr<OpenWindow> window FLOPINJ_GUARDED_BY(lock);
  std::unique_ptr<RangeProfiler> profiler FLOPINJ_GUARDED_BY(lock);  // made at the first window
  // A launch wanted a window since the last one was opened, and work that waits was in flight. For
  // the next one counters that are due are kept for a moment: since when.
  std::atomic<bool> wanted{false};
  uint64_t kept_since_ns FLOPINJ_GUARDED_BY(lock) = 0;
  WaitingStreams waiting;
  // What the planner's thread is asked (questions.h), its answer, and the lock that it has while it
  // asks the driver. The context is gone, or going: the driver is not asked about it any more.
  std::atomic<uint32_t> asked{0};
  std::atomic<size_t> free_bytes{0};
  std::atomic<CUstream> stream_asked{nullptr};
  std::atomic<bool> stream_captures{false};
  TimedMutex asking;
  std::atomic<bool> gone{false};
  std::atomic<uint32_t> modules_loaded{0};
  // Of what opening an instrumented window costs (Windows::try_out): asked by a launch that wanted
  // one; the group, of what it wanted; and what the trial took, once it is done.
  enum class Trial : uint8_t { kNone, kAsked, kDone };
  std::atomic<Trial> trial{Trial::kNone};
  std::atomic<uint32_t> trial_group{0};
  std::atomic<uint64_t> trial_ns{0};
  // The launch that is in the window: who made it, and how it is to leave.
  void left() noexcept override;
  Leases* leases FLOPINJ_GUARDED_BY(lock) = nullptr;
  uintptr_t inside FLOPINJ_GUARDED_BY(lock) = 0;
  WindowMachine::Facts leaving FLOPINJ_GUARDED_BY(lock);
  // When it entered, 0 between launches.
  std::atomic<uint64_t> window_call_began_ns{0};
  std::atomic<const Signature*> window_call{nullptr};
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
