// CUDA contexts we have seen: created after us, or adopted at their first launch.
//
// What becomes of a context's counters and of its window (leases.h, windows.h):
//
//                        idle for 2 s            nothing that waits is in flight
//      .-----> kHeld ----------------> kDue ------ (kSwitching) ---------> kReleased
//      |        ^ |  a launch wants     | a window is opened all the same    | once the pause
//      |        | v  a window           v                                    v is over
//      |       kShut <------------------'                                 kUntaken
//      |        ^ |  ^                                                       |
//      | closed | |  '-------------------------------------------------------'
//      '---- kOpen <-' opened            a launch wants a window, and takes the counters
//
// A context begins as kUntaken, and becomes so again where CUPTI has refused. Where CUPTI wants the
// profiler disabled by a thread that launches, kDueHere comes in place of kDue.
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/mutex.h>
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

  enum class State : uint8_t {
    kUntaken,   // the profiler is not enabled; the launch that opens a window does it
    kHeld,      // it is enabled, no window is open
    kDue,       // the same, and it is to be disabled once nothing that waits is in flight
    kReleased,  // it is not enabled, and is not to be just yet
    // From here on captures, and launches of work that waits, come through the lock.
    kSwitching,  // the thread that has the lock enables or disables
    kTrying,     // the planner's thread tries out a window: so do launches that must not be patched
    // From here on all launches do: the gate is shut.
    kDueHere,  // as kDue; by the next launch
    kShut,     // the thread that has the lock opens or closes a window
    kOpen      // a window is open
  };
  // Changed under the lock, but for kReleased -> kUntaken, and kHeld or kDue -> kDueHere.
  std::atomic<State> state{State::kUntaken};
  bool shut() const noexcept { return state.load(std::memory_order_seq_cst) >= State::kDueHere; }
  bool busy() const noexcept { return state.load(std::memory_order_seq_cst) >= State::kSwitching; }

  // The measurement window; windows.h has which thread may touch what.
  TimedMutex lock;
  std::atomic<bool> plan_awaited{false};  // the first launch has waited for the device's plan
  std::unique_ptr<OpenWindow> window FLOPINJ_GUARDED_BY(lock);
  std::unique_ptr<RangeProfiler> profiler FLOPINJ_GUARDED_BY(lock);  // made at the first window
  // Since the window was opened a launch has waited too long, and went on beside it.
  std::atomic<bool> spoiled{false};
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
  // The launch that is in the window: when it entered, 0 between launches.
  std::atomic<uint64_t> window_call_began_ns{0};
  std::atomic<const Signature*> window_call{nullptr};
};

// A state for a scope: the gate is shut. At its end the state is as before, whatever happens, or as
// `becomes` says.
class Shut {
 public:
  explicit Shut(Context& context, Context::State meanwhile = Context::State::kShut)
      FLOPINJ_REQUIRES(context.lock)
      : becomes(context.state.exchange(meanwhile)), state_(context.state) {}
  ~Shut() { state_.store(becomes); }
  Shut(const Shut&) = delete;
  Shut& operator=(const Shut&) = delete;

  Context::State becomes;

 private:
  std::atomic<Context::State>& state_;
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
