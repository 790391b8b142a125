#include "tables/step_times.h"

namespace flopinj::reduce {
namespace {

uint64_t end_of(const StepTimes& range) { return range.start_ns + range.duration_ns; }

// Of steps that launched something on one device. `busy_until_ns`: with kernels that ran on after
// their range.
void add_device(const std::map<uint32_t, StepTimes>& ranges,
                const std::map<uint32_t, KernelExtent>& kernels, uint64_t busy_until_ns,
                StepSpans& spans) {
  for (const auto& [number, ran] : kernels) {
    const auto range = ranges.find(number);
    if (range == ranges.end()) continue;  // it has not ended
    StepSpan& span = spans.at(number);
    const uint64_t range_ns = range->second.start_ns;
    const uint64_t start_ns = std::max(range_ns, busy_until_ns);
    const uint64_t from_ns = std::max(range_ns, std::min(start_ns, ran.begin_ns));
    const uint64_t end_ns = std::max(end_of(range->second), ran.end_ns);
    if (ran.end_ns > end_of(range->second)) busy_until_ns = std::max(busy_until_ns, ran.end_ns);
    const uint64_t ns = std::max(end_ns - std::min(start_ns, end_ns), ran.most_busy_ns());
    if (const bool first = !span.kernels.any(); first || ns > span.times.duration_ns) {
      span.times.start_ns = end_ns - std::min(end_ns, ns);
      span.times.duration_ns = ns;
    }
    span.from_ns = span.kernels.any() ? std::min(span.from_ns, from_ns) : from_ns;
    span.to_ns = std::max(span.to_ns, end_ns);
    span.kernels.add(ran);
  }
}

}  // namespace

StepSpan span_of(const StepTimes& range) {
  return {range, range.start_ns, end_of(range), {}, false};
}

void StepKernels::add(const StepKernels& o) {
  for (const auto& [device, steps] : o.devices_)
    for (const auto& [step, kernels] : steps) ran(device, step, kernels);
  untimed_.insert(o.untimed_.begin(), o.untimed_.end());
}

StepSpans spans_of(const std::map<uint32_t, StepTimes>& ranges, const StepKernels& kernels) {
  StepSpans spans;
  bool known = true;  // of the step before
  for (const auto& [number, range] : ranges) {
    StepSpan& span = spans.emplace_hint(spans.end(), number, span_of(range))->second;
    const bool timed = kernels.timed(number);
    span.about = !known || !timed;
    known = timed;
  }
  for (const auto& [device, steps] : kernels.devices()) {
    const auto skipped = kernels.skipped_until().find(device);
    add_device(ranges, steps, skipped == kernels.skipped_until().end() ? 0 : skipped->second,
               spans);
  }
  return spans;
}

StepSpans spans_of(const std::map<uint32_t, StepTimes>& ranges) {
  StepSpans spans;
  for (const auto& [number, range] : ranges) {
    StepSpan& span = spans.emplace_hint(spans.end(), number, span_of(range))->second;
    span.about = true;
  }
  return spans;
}

StepSums sums_of(const StepSpans& spans) {
  StepSums sums;
  sums.kernels_timed = true;
  StepWindow window;
  for (const auto& [number, span] : spans) {
    sums.add(span.times);
    window.add(span);
    sums.kernels_timed = sums.kernels_timed && !span.about;
  }
  sums.window_ns = window.length_ns();
  return sums;
}

}  // namespace flopinj::reduce
