// What torch.profiler exports (Kineto's JSON, of PyTorch 1.8 to 2.15).
#pragma once
#include <import/timeline.h>

#include <string>
#include <string_view>

namespace flopinj::import {

// Takes a file's events and its other members, in any order, then finish().
class TorchProfiler {
 public:
  explicit TorchProfiler(Timeline& timeline) : t_(timeline) {}

  void event(std::string_view);
  void member(std::string_view name, std::string_view value);
  // The error, which says what to do; else an empty text. What the file has left open is completed.
  std::string finish();

 private:
  struct Event;
  using Take = void (TorchProfiler::*)(const Event&);
  static Take taker_of(std::string_view category);

  void take_range(const Event&);
  void take_operator(const Event&);
  void take_python(const Event&);
  void take_call(const Event&);
  void take_kernel(const Event&);
  void take_copy(const Event&);
  void take_fill(const Event&);
  void take_counters(const Event&);
  void take_name(const Event&);
  void take_devices(std::string_view);
  bool times(const Event&, int64_t& start_ns, int64_t& end_ns);
  void add_range(const Event&, uint32_t text, uint64_t sequence_plus_1);
  void add_copy(const Event&, CopyKind, bool pageable);
  void unreadable() { ++unreadable_; }
  void join_counters();

  Timeline& t_;
  std::string text_, name_, buffer_;
  uint64_t events_ = 0, unreadable_ = 0;
  bool finer_ = false;  // than microseconds
  // Each of one kernel, in the order of the launches.
  struct Counters {
    int64_t start_ns = 0;
    uint32_t name = 0;
    std::vector<double> values;
  };
  std::vector<Counters> counters_;
};

}  // namespace flopinj::import
