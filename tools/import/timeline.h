// What one process did, as another profiler's file says it: ranges, calls, kernels and copies, in
// any order, without the text that comes again and again. play.h makes a trace of it.
//
// Times are nanoseconds of the file's own clock, which may begin anywhere.
#pragma once
#include <collector/identity/copy_time.h>
#include <collector/identity/launch.h>
#include <collector/identity/recording.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flopinj::import {

// Each text once; ids count from 0.
class Texts {
 public:
  uint32_t id(std::string_view text) {
    const auto found = ids_.find(text);
    if (found != ids_.end()) return found->second;
    const std::string& kept = texts_.emplace_back(text);
    const auto id = static_cast<uint32_t>(texts_.size() - 1);
    ids_.emplace(kept, id);
    return id;
  }
  const std::string& operator[](uint32_t id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // whose addresses the keys keep
  std::unordered_map<std::string_view, uint32_t> ids_;
};

struct Thread {
  int64_t process = 0, id = 0;  // as the file has them; a pthread handle may be negative
  std::string name;             // empty: none is known
};
struct Range {
  int64_t start_ns = 0, end_ns = 0;
  uint64_t sequence_plus_1 : 40 = 0;    // autograd's; 0: it has none
  uint64_t thread : 24 = kMostThreads;  // index of Timeline::threads
  uint32_t name = 0;                    // index of Timeline::names
  uint32_t order = 0;  // in the file: of two that are as long, the outer one is first

  static constexpr int64_t kStillOpen = INT64_MAX / 4;  // at the end of the recording
  static constexpr uint64_t kMostSequence = (uint64_t{1} << 40) - 1;
  static constexpr uint32_t kMostThreads = (1U << 24) - 1;
  // It is open for all threads, as nvtxRangeStart's are.
  bool of_process() const { return thread == kMostThreads; }
};
static_assert(sizeof(Range) == 32);  // a large file has many millions
// Of the CUDA API. Those that launched nothing are never looked up.
struct Call {
  uint64_t correlation = 0;
  int64_t start_ns = 0;
  uint32_t thread = 0;
  bool graph = false;   // it launched a graph
  bool kernel = false;  // one kernel, as its name says
};
struct Kernel {
  uint64_t correlation = 0;
  int64_t start_ns = 0, end_ns = 0;  // an end before the start: its time is not known
  bool timed() const { return end_ns >= start_ns; }
  uint32_t name = 0;    // of Timeline::texts
  uint32_t shape = 0;   // index of Timeline::shapes; kNotKnown: its grid and block are not known
  uint32_t stream = 0;  // index of Timeline::streams

  static constexpr uint32_t kNotKnown = UINT32_MAX;
};
// Counters of one kernel.
struct Counted {
  uint32_t kernel = 0;         // index of Timeline::kernels
  std::vector<double> values;  // of Timeline::metrics; not a number: it is not known
};
struct Copy {
  int64_t start_ns = 0, end_ns = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;  // CUDA ordinal
  CopyKind kind = CopyKind::kOther;
  bool pageable = false;
};
// Of a range.
struct Name {
  uint32_t text = 0, domain = 0;  // of Timeline::texts; domain 0 is the default one
  auto operator<=>(const Name&) const = default;
};
struct Shape {
  LaunchShape launch;
  uint32_t registers = 0, static_shared_bytes = 0;
  auto key() const {
    return std::tuple(launch.grid, launch.block, launch.cluster, launch.dynamic_shared_bytes,
                      registers, static_shared_bytes);
  }
};
struct Stream {
  uint32_t device = 0, context = 0, stream = 0;  // device: CUDA ordinal
  auto operator<=>(const Stream&) const = default;
};

// Values of one kind, each once, by index.
template <class Value, class Key>
class Interned {
 public:
  uint32_t index(const Key& key, const Value& value) {
    const auto [at, fresh] = indices_.try_emplace(key, static_cast<uint32_t>(values_.size()));
    if (fresh) values_.push_back(value);
    return at->second;
  }
  const Value& operator[](uint32_t index) const { return values_[index]; }
  Value& operator[](uint32_t index) { return values_[index]; }
  const std::vector<Value>& all() const { return values_; }

 private:
  std::map<Key, uint32_t> indices_;
  std::vector<Value> values_;
};

// The chip of a compute capability, where it has but one kind of data centre GPU.
// Source: NVIDIA's table of compute capabilities.
inline std::string chip_of(uint32_t major, uint32_t minor) {
  switch (10 * major + minor) {
    case 70:
      return "GV100";
    case 80:
      return "GA100";
    case 90:
      return "GH100";
    case 100:
      return "GB100";
    default:
      return {};
  }
}

struct Timeline {
  ProcessInfo process;
  std::map<uint32_t, DeviceInfo> devices;  // by CUDA ordinal
  Texts texts;                             // number 0 is the empty one
  Interned<Thread, std::pair<int64_t, int64_t>> threads;
  Interned<Stream, Stream> streams;
  Interned<Shape, decltype(Shape().key())> shapes;
  Interned<Name, Name> names;
  // In pieces: a vector that grows holds all of it twice.
  std::deque<Range> ranges;
  std::deque<Call> calls;
  std::deque<Kernel> kernels;
  std::deque<Copy> copies;
  // Kernels that counters were read of, by counter_name(). Others were not asked for.
  std::vector<std::string> metrics;
  std::vector<Counted> counted;
  bool only_order = false;         // of times: they say what came after what, and nothing else
  int64_t realtime_offset_ns = 0;  // CLOCK_REALTIME minus the file's clock
  int64_t unit_ns = 1;             // in which the file counts time: nothing finer is known
  std::vector<Diagnostic> diagnostics;

  Timeline() { texts.id(""); }
  void say(std::string code, std::string message, Severity severity = Severity::kInfo,
           uint64_t times = 1) {
    Diagnostic d;
    d.severity = severity;
    d.code = std::move(code);
    d.message = std::move(message);
    d.times = times;
    diagnostics.push_back(std::move(d));
  }
  void warn(std::string code, std::string message, uint64_t times = 1) {
    say(std::move(code), std::move(message), Severity::kWarning, times);
  }
  uint32_t metric(const std::string& name) {
    const auto known = std::ranges::find(metrics, name);
    if (known != metrics.end()) return static_cast<uint32_t>(known - metrics.begin());
    metrics.push_back(name);
    return static_cast<uint32_t>(metrics.size() - 1);
  }
  uint32_t thread(int64_t process_id, int64_t id) {
    return threads.index({process_id, id}, {process_id, id, {}});
  }
};

}  // namespace flopinj::import
