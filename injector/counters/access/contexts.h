// CUDA contexts we have seen: created after us, or adopted at their first launch.
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/mutex.h>
#include <cuda.h>
#include <injector/counters/access/waiting_streams.h>
#include <injector/process/edge.h>

#include <atomic>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace flopinj {

struct OpenWindow;
struct Signature;
struct ThreadContext;
class RangeProfiler;

// One CUDA context. Never freed: a thread may still hold a pointer when the context goes away; the
// object then serves the next one of the same device, so that the planner's thread may read which.
struct Context {
  Context();
  ~Context();

  CUcontext handle = nullptr;
  uint32_t id = 0;       // CUPTI's, unique in the process
  uint32_t ordinal = 0;  // of its device, as is the next
  DeviceId device;

  // The measurement window; windows.h has which thread may touch what.
  TimedMutex lock;
  std::atomic<bool> gate{false};          // a window is open or about to be
  std::atomic<bool> plan_awaited{false};  // the first launch has waited for the device's plan
  std::unique_ptr<OpenWindow> window FLOPINJ_GUARDED_BY(lock);
  std::unique_ptr<RangeProfiler> profiler FLOPINJ_GUARDED_BY(lock);  // made at the first window
  // Whether the profiler is enabled; leases.h has which thread may change it.
  enum class Counters : uint8_t { kUntaken, kHeld, kSwitching, kReleased };
  std::atomic<Counters> counters{Counters::kUntaken};
  std::atomic<bool> counters_asked{false};  // a launch wants them
  std::atomic<bool> release_here{false};    // by the next launch
  WaitingStreams waiting;
  std::atomic<uint32_t> modules_loaded{0};
  // The launch that is in the window: when it entered, 0 between launches.
  std::atomic<uint64_t> window_call_began_ns{0};
  std::atomic<const Signature*> window_call{nullptr};
};

class Contexts {
 public:
  explicit Contexts(Edge& edge) : edge_(edge) {}

  // Null for a null handle, or when CUPTI does not know its device. A hit takes no lock.
  Context* find(ThreadContext&, CUcontext);
  // CUCONTEXT_DESTROY_STARTING: the handle may come back as another context.
  Context* forget(CUcontext);
  void recycle(Context*);  // after forget, when its window is closed

  std::vector<Context*> all();

 private:
  Context* adopt(CUcontext);

  Edge& edge_;
  std::atomic<uint32_t> epoch_{1};  // changes when a context goes away
  Mutex mutex_;
  std::deque<Context> storage_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<Context*> free_ FLOPINJ_GUARDED_BY(mutex_);
  std::unordered_map<CUcontext, Context*> live_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
