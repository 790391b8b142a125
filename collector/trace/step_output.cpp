#include <collector/trace/step_output.h>
#include <step_buckets.h>

#include <algorithm>
#include <utility>

namespace flopinj {

void StepSums::add(const Step& step) {
  const uint64_t ns = step.end_ns - step.start_ns;
  min_ns = steps == 0 ? ns : std::min(min_ns, ns);
  max_ns = std::max(max_ns, ns);
  first_start_ns = steps == 0 ? step.start_ns : std::min(first_start_ns, step.start_ns);
  last_end_ns = std::max(last_end_ns, step.end_ns);
  total_ns += ns;
  path = step.path;
  ++buckets[step_bucket(ns)];
  ++steps;
}

void StepOutput::write(std::span<const Step> ended, bool everything) {
  if (level_ == Level::kLaunches) return writer_.steps(ended);
  for (const Step& step : ended) sums_.add(step);
  const auto now = Clock::now();
  if (sums_.steps == written_ || (!everything && now < next_)) return;
  next_ = now + std::chrono::seconds(1);
  written_ = sums_.steps;
  writer_.steps(message_, sums_);
}

void StepOutput::write(std::vector<RangeNumber> numbers, bool everything) {
  if (!numbers.empty()) numbers_ = std::move(numbers);
  const auto now = Clock::now();
  if (numbers_.empty() || (!everything && now < next_numbers_)) return;
  next_numbers_ = now + std::chrono::seconds(1);
  if (level_ == Level::kLaunches)
    writer_.numbers(numbers_);
  else
    writer_.numbers(numbers_message_, numbers_);
  numbers_.clear();
}

}  // namespace flopinj
