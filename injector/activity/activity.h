// GPU times of kernels, and of copies and fills of memory, from CUPTI's activity records.
//
//   start()    register the buffer callbacks, then enable the kinds of records
//   flush()    the writer thread asks now and then; finished records are handed to the collector
//              before it returns, or later on CUPTI's own thread when a buffer fills up
//   finish()   no launch will follow: flush() now also takes buffers with unfinished records
//   stop()     the kinds are disabled
//   end()      stop() while the program goes on: then CUPTI is asked for every buffer. Threads that
//              launch meanwhile have been given new ones since the last flush()
//   ended()    CUPTI, or the subscription, may have ended: what it still holds is not waited for
//
// Buffers are bounded (activity_buffers.h). Where CUPTI cannot be refused one, the kinds are
// disabled when the bound is reached, and enabled again once half of the buffers have come back.
// Launches made meanwhile have no time, and each says so in the trace. Where another client of
// CUPTI takes the callbacks (activity_watch.h), that is said, and they are taken back when it has
// had time to end.
#pragma once
#include <injector/activity/activity_buffers.h>
#include <injector/activity/activity_watch.h>
#include <injector/process/edge.h>
#include <injector/process/process.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace flopinj {

class Activity {
 public:
  using Clock = uint64_t (*)() noexcept;  // CLOCK_MONOTONIC, but for tests
  // The buffers outlive it: CUPTI may give one back, or ask for one, when a recording has ended.
  Activity(Edge&, ActivityBuffers&, Clock = monotonic_ns);
  ~Activity();

  // False, with one line in `error`, when CUPTI refuses or its records have no known layout.
  bool start(std::string& error);
  void flush();
  void finish() { finishing_.store(true, std::memory_order_relaxed); }
  void stop();
  void end();
  void ended(bool for_good) { buffers_.recording_ended(for_good); }

  // Those of the process, for all its recordings. Never destroyed. Null without memory.
  static ActivityBuffers* process_buffers(const CuptiApi&) noexcept;

  // Records of copies and fills are among them: CUPTI gives them, and the user has not said no.
  bool has_copies() const { return has_copies_.load(std::memory_order_relaxed); }
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }  // cumulative

 private:
  struct Callbacks;  // what CUPTI calls
  void read(uint8_t* buffer, size_t valid_bytes) noexcept;
  void mind_the_bound();
  void say_losses();
  CUptiResult ask_for_records();
  CUptiResult enable_records();
  CUptiResult disable_records();
  void watch(bool last);

  Edge& edge_;
  const Clock now_ns_;
  const bool may_refuse_;  // CUPTI a buffer
  ActivityBuffers& buffers_;
  const uint64_t shortages_before_;  // in earlier recordings
  std::atomic<uint64_t> lost_{0}, records_{0};
  std::atomic<bool> has_copies_{false};  // set before there are records
  std::atomic<bool> finishing_{false}, running_{false};
  std::atomic<uint64_t> unread_{0};  // buffers, of which a part was no record
  // Only on the writer's thread.
  bool paused_ = false, shortage_said_ = false, taken_said_ = false;
  bool unread_said_ = false, flush_said_ = false;
  CUptiResult flushed_ = CUPTI_SUCCESS;  // the last failure
  uint32_t switched_ = 0;                // Edge::kernel_records_switched
  ActivityWatch watch_;
};

}  // namespace flopinj
