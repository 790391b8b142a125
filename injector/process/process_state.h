// What this process has of its own, and a child of fork() makes anew: all that has a lock, in one
// object. A thread that is not in the child may hold any lock of the parent's, so the child never
// looks at those: it gets an object with free ones. Nothing waits before a fork, since a lock may
// be held until a kernel ends.
//
// The child's object is elsewhere in memory. The parent's is left as it is: the call of fork() may
// be in a signal handler that interrupted a call of ours, which goes on in the child with what it
// had. So a function that takes a lock here looks for the object once.
//
// Outside of it there is nothing with a lock, and no static object that a function makes at its
// first call, which is a lock too. What is there is changed by single stores, and the child goes on
// with it: names of NVTX's handles (nvtx_handles.h), the epoch of threads, the log's level.
#pragma once
#include <collector/base/mutex.h>
#include <collector/collector.h>
#include <collector/options/settings.h>
#include <injector/process/closer.h>
#include <injector/vendor/cupti_api.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace flopinj {

class ActivityBuffers;
struct ControlServer;
struct Edge;
struct Presence;
class Recording;
struct ThreadContext;

// How far the session is. Only session.cpp changes it, by the moves listed there.
enum class Phase : uint8_t {
  kOpen,       // the recording that begins with the program is made by the first call that asks
  kDormant,    // start_recording() makes one
  kRecording,  // its trace is open
  kEnding,     // its trace is being closed, or the program ends with it
  kOff         // for good: switched off, or the child of a recording process
};

// The session (session.h). Order of locks: changing, making.
struct SessionState {
  std::atomic<Phase> phase{Phase::kOpen};
  std::atomic<Edge*> edge{nullptr};       // of the current recording, from its first tables on
  std::atomic<Edge*> recording{nullptr};  // the same while it takes launches
  std::atomic<pid_t> recorder{0};         // the process that began to record
  std::atomic<pid_t> exiting{0};          // the last one whose exit() has come to us
  std::atomic<bool> no_control{false};
  std::atomic<uint64_t> start_ns{0}, stop_ns{0};  // when a recording is to begin and to end
  std::atomic<bool> ends_itself{false};           // the current one, by its launches
  std::atomic<bool> range_awaited{false};         // --capture-range
  std::atomic<bool> trace_closed{false};          // of the current or last recording: it is whole
  // A recording whose trace is being begun or ended. It belongs to the caller that exchanges it to
  // null: exit(), which leaves it, or the holder of `changing`, which may free it.
  std::atomic<Recording*> unsettled{nullptr};

  Mutex changing;  // held while a recording starts or ends, which may wait for visits to end
  // The current one. Leaked where the program ends with it, see session.h.
  Recording* current FLOPINJ_GUARDED_BY(changing) = nullptr;
  bool start_tried FLOPINJ_GUARDED_BY(changing) = false;
  // The handlers of exit() and quick_exit() are registered.
  bool at_exit FLOPINJ_GUARDED_BY(changing) = false;
  bool at_quick_exit FLOPINJ_GUARDED_BY(changing) = false;
  Mutex making;  // never held for long: a visit may wait for it
  Recording* first FLOPINJ_GUARDED_BY(making) = nullptr;  // to begin with the program
};

// What a request for the status gets beside the phase (session_status.h).
struct ShownState {
  Mutex mutex;
  uint32_t recordings FLOPINJ_GUARDED_BY(mutex) = 0;
  uint32_t kept FLOPINJ_GUARDED_BY(mutex) = 0;
  // Of the current or last recording.
  std::unique_ptr<const std::string> output FLOPINJ_GUARDED_BY(mutex);
  Mode mode FLOPINJ_GUARDED_BY(mutex) = Mode::kOff;
  RecordingProgress progress FLOPINJ_GUARDED_BY(mutex);
  uint64_t began_ns FLOPINJ_GUARDED_BY(mutex) = 0;
  Collector* collector FLOPINJ_GUARDED_BY(mutex) = nullptr;  // of the current one
};

// A subscription to CUPTI that waits for a range (capture_range.h).
struct Subscription {
  CuptiApi api;
  CUpti_SubscriberHandle handle = nullptr;
};
struct AwaitedRange {
  Mutex mutex;
  std::optional<Subscription> subscription FLOPINJ_GUARDED_BY(mutex);
};

// Of threads that are inside us, or have been (presence.h, this_thread.h).
struct Presences {
  Mutex mutex;
  std::vector<Presence*> all FLOPINJ_GUARDED_BY(mutex);
};
struct ThreadContexts {
  Mutex mutex;
  std::vector<ThreadContext*> all FLOPINJ_GUARDED_BY(mutex);
  // Of threads that have ended, whose tables are for those that come.
  ThreadContext* ended FLOPINJ_GUARDED_BY(mutex) = nullptr;
  size_t ended_count FLOPINJ_GUARDED_BY(mutex) = 0;
};

struct ProcessState {
  SessionState session;
  ShownState shown;
  Mutex kept_names;  // held where one is added (nvtx_handles.h)
  AwaitedRange awaited_range;
  CloserThread closer;
  Presences presences;
  ThreadContexts threads;
  std::atomic<ControlServer*> control{nullptr};
  ActivityBuffers* activity_buffers = nullptr;  // never destroyed; recordings begin one at a time
  std::atomic<uint32_t> helpers{0};             // threads of ours that run
};

extern constinit std::atomic<ProcessState*> current_process_state;

inline ProcessState& process_state() noexcept {
  return *current_process_state.load(std::memory_order_acquire);
}

// In a forked child. Async-signal-safe. Where the kernel has no memory the parent's object is made
// anew in its place.
ProcessState& renew_process_state() noexcept;

}  // namespace flopinj
