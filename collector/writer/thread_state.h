// What one host thread owns: its range stack, its launch ring, its caches and its counters. Written
// only by that thread; the writer thread reads the ring and the counters.
#pragma once
#include <collector/identity/launch_record.h>
#include <collector/identity/signature_cache.h>
#include <collector/ranges/process_ranges.h>
#include <collector/ranges/range_path_table.h>
#include <collector/ranges/range_stack.h>
#include <collector/writer/callback_times.h>
#include <collector/writer/ring.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace flopinj {

inline constexpr uint32_t kMaxDevices = 32;
inline constexpr uint32_t kMaxThreads = 4'096;
// A thread that launches more than the first records has a ring of 640 KiB.
inline constexpr uint32_t kFirstRecords = 24, kRingRecords = 16'384;

struct ThreadState {
  ThreadState(ThreadId thread, uint32_t tid, RangePathTable& paths, const ProcessRanges& process)
      : id(thread), os_tid(tid), ranges(paths, process) {}

  const ThreadId id;
  const uint32_t os_tid;
  RangeStack ranges;
  Ring<RingRecord, kFirstRecords> ring;
  SignatureCache signatures;

  // Behind marks where the thread's launches are in another training step now, or the thread has
  // paused. False, and counted, where there is no room.
  bool push(RingRecord launch) noexcept {
    if (const Pause& pause = ranges.pause(); pause.end != 0) [[unlikely]] {
      if (!ring.push(RingRecord::pause_mark(pause))) return false;
      ranges.forget_pause();
    }
    if (const uint32_t step = ranges.step(); step != marked_step_) [[unlikely]] {
      if (!ring.push(RingRecord::step_mark(step))) return false;
      marked_step_ = step;
    }
    if (ranges.call_begins()) launch.flags |= LaunchRecord::kCallBegins;
    if (!ring.push(launch)) return false;
    ranges.launch_written();
    return true;
  }
  // The writer's, of the next launch in the ring.
  uint32_t taken_step = 0;
  Pause taken_pause;

  // Launches of this thread per device (index: device id, the last one for all beyond).
  struct PerDevice {
    std::atomic<uint64_t> made{0}, dropped{0};
  };
  std::array<PerDevice, kMaxDevices + 1> launches;

  // Counted by this thread, summed by the writer (single writer each: relaxed load + store).
  CallbackTimes callbacks;
  std::atomic<uint64_t> timed_calls{0}, timed_call_ns{0};  // launch calls outside of windows
  std::atomic<uint64_t> nested_calls{0};
  std::atomic<uint64_t> passed_over{0};  // launches that the user's choice leaves out
  std::atomic<bool> retired{false};      // its thread has ended: drain once more, then free

 private:
  uint32_t marked_step_ = 0;  // of the last launch in the ring
};

}  // namespace flopinj
