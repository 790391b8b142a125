// One launch on its way from the launching thread to the writer.
#pragma once
#include <collector/identity/ids.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace flopinj {

struct LaunchRecord {
  enum Flags : uint32_t {
    kWindowed = 1U << 0,  // a measurement window was open
    kGraph = 1U << 1,     // a graph launch: `graph` instead of `signature`; it is one launch per
                          // kernel node
    // Its kernel starts work from the GPU, which is in no count.
    kLaunchesKernels = 1U << 2,
    kLaunchesGraphs = 1U << 3,
    kStepMark = 1U << 4,      // in the ring: no launch, see RingRecord
    kGreenContext = 1U << 5,  // launched on one, where no window is opened
    kCallBegins = 1U << 6,    // in the ring: of an operator, see RangeStack::call_begins()
    kPauseMark = 1U << 7,     // in the ring: no launch, see RingRecord
    kNotBefore = 1U << 8,     // in a window: its kernel has a time, and not from before `called`
    kCallUntold = 1U << 9,    // `called` is for that comparison only, on the trace's clock
  };
  SignatureId signature;  // 0 for graph launches
  PathId path;  // for graph launches: where the graph was launched, used for nodes without a path
  StreamId stream;
  uint32_t correlation = 0;      // CUPTI's, joins the activity record
  uint64_t sequence_plus_1 = 0;  // autograd sequence number
  GraphId graph;                 // 0 unless kGraph
  uint32_t flags = 0;
  uint32_t step = 0;    // the writer's: training step that it is in; 0: none
  uint64_t called = 0;  // when its call began, in ticks (host_clock.h); 0: not known
};
static_assert(sizeof(LaunchRecord) == 48 && std::is_trivially_copyable_v<LaunchRecord>);

// The longest time that a thread spent in one of its ranges since its last launch, in ticks. With
// an end of 0: none.
struct Pause {
  PathId path;
  uint64_t begin = 0, end = 0;
  uint64_t length() const { return end - begin; }
};

// The same inside its thread's ring.
struct RingRecord {
  uint32_t subject = 0;  // id of the signature, or of the graph (LaunchRecord::kGraph); or a step
  PathId path;
  StreamId stream;
  uint32_t correlation = 0;
  uint64_t sequence_plus_1 = 0;
  uint32_t launches = 1;  // that it was counted as
  uint16_t device_slot = 0;
  uint16_t flags = 0;  // LaunchRecord::Flags
  uint64_t called = 0;

  RingRecord() = default;
  RingRecord(const LaunchRecord& launch, size_t slot, uint32_t counted)
      : subject(is_graph(launch.flags) ? launch.graph.value : launch.signature.value),
        path(launch.path),
        stream(launch.stream),
        correlation(launch.correlation),
        sequence_plus_1(launch.sequence_plus_1),
        launches(counted),
        device_slot(static_cast<uint16_t>(slot)),
        flags(static_cast<uint16_t>(launch.flags)),
        called(launch.called) {}

  // The thread's launches behind it are in this training step; 0: in none.
  static RingRecord step_mark(uint32_t step) {
    RingRecord mark;
    mark.subject = step;
    mark.flags = LaunchRecord::kStepMark;
    return mark;
  }
  bool is_step_mark() const { return (flags & LaunchRecord::kStepMark) != 0; }
  // Before the thread's next launch.
  static RingRecord pause_mark(const Pause& pause) {
    RingRecord mark;
    mark.path = pause.path;
    mark.sequence_plus_1 = pause.begin;
    mark.called = pause.end;
    mark.flags = LaunchRecord::kPauseMark;
    return mark;
  }
  bool is_pause_mark() const { return (flags & LaunchRecord::kPauseMark) != 0; }
  Pause pause() const { return {path, sequence_plus_1, called}; }

  LaunchRecord launch() const {
    LaunchRecord record;
    if (is_graph(flags))
      record.graph = GraphId{subject};
    else
      record.signature = SignatureId{subject};
    record.path = path;
    record.stream = stream;
    record.correlation = correlation;
    record.sequence_plus_1 = sequence_plus_1;
    record.flags = flags;
    record.called = called;
    return record;
  }

 private:
  static bool is_graph(uint32_t flags) { return (flags & LaunchRecord::kGraph) != 0; }
};
static_assert(sizeof(RingRecord) == 40 && std::is_trivially_copyable_v<RingRecord>);

}  // namespace flopinj
