// How long training steps took.
//
// A step lasts as long as its range. But kernels run when the GPU comes to them: where a step's
// kernels run on after its range, the step ends with the last of them, and on that device the next
// one begins there, since its own kernels wait for these. So in a program that runs ahead of the
// GPU a step lasts from the end of the one before to its own end on the device. Kernels may run
// beside those of the step before: a step takes no less than its own kernels take. With several
// devices it is the time of the one that took longest.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "support/wide.h"
#include "tables/steps.h"

namespace flopinj::reduce {

// From the beginning of the first kernel to the end of the last one.
struct KernelExtent {
  uint64_t begin_ns = UINT64_MAX, end_ns = 0;
  uint64_t sum_ns = 0;  // of the kernels' times

  static KernelExtent of(uint64_t begin_ns, uint64_t ns) { return {begin_ns, begin_ns + ns, ns}; }
  bool any() const { return begin_ns <= end_ns; }
  uint64_t length_ns() const { return any() ? end_ns - begin_ns : 0; }
  // The time in which some of them ran is no longer.
  uint64_t most_busy_ns() const { return std::min(length_ns(), sum_ns); }
  void add(const KernelExtent& o) {
    begin_ns = std::min(begin_ns, o.begin_ns);
    end_ns = std::max(end_ns, o.end_ns);
    add_saturating(sum_ns, o.sum_ns);
  }
};

// When the kernels of one recording's steps ran. The order of calls does not matter.
class StepKernels {
 public:
  void ran(uint32_t device, uint32_t step, const KernelExtent& kernels) {
    devices_[device][step].add(kernels);
  }
  // Kernels of steps that are skipped ran until then.
  void skipped(uint32_t device, uint64_t until_ns) { skipped_until_[device] = until_ns; }
  const std::map<uint32_t, uint64_t>& skipped_until() const { return skipped_until_; }
  // Some of the step's launches have no time.
  void untimed(uint32_t step) { untimed_.insert(step); }
  void add(const StepKernels& o);

  // By device, then step.
  const std::map<uint32_t, std::map<uint32_t, KernelExtent>>& devices() const { return devices_; }
  bool timed(uint32_t step) const { return !untimed_.contains(step); }

 private:
  std::map<uint32_t, std::map<uint32_t, KernelExtent>> devices_;
  std::set<uint32_t> untimed_;
  std::map<uint32_t, uint64_t> skipped_until_;  // by device
};

struct StepSpan {
  StepTimes times;       // on the device that took longest
  uint64_t from_ns = 0;  // on the device that began first, with kernels beside earlier steps
  uint64_t to_ns = 0;    // on the device that ended last
  KernelExtent kernels;  // on all devices
  bool about = false;    // not all kernels that decide it have times
};
using StepSpans = std::map<uint32_t, StepSpan>;  // by the step's number

// Of several steps: from the beginning of the first to the end of the last.
struct StepWindow {
  uint64_t from_ns = UINT64_MAX, to_ns = 0;
  KernelExtent kernels = {};

  void add(const StepSpan& span) {
    from_ns = std::min(from_ns, span.from_ns);
    to_ns = std::max(to_ns, span.to_ns);
    kernels.add(span.kernels);
  }
  // Steps take no less than their kernels. 0 without any time.
  uint64_t length_ns() const {
    return to_ns <= from_ns ? 0 : std::max(to_ns - from_ns, kernels.length_ns());
  }
};

// Of a step by itself.
StepSpan span_of(const StepTimes& range);
// `ranges`: of one recording's steps.
StepSpans spans_of(const std::map<uint32_t, StepTimes>& ranges, const StepKernels& kernels);
// Of the ranges alone, where nothing says when kernels ran.
StepSpans spans_of(const std::map<uint32_t, StepTimes>& ranges);
StepSums sums_of(const StepSpans& spans);

}  // namespace flopinj::reduce
