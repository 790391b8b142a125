#include "tables/steps.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "step_buckets.h"
#include "support/median.h"
#include "support/wide.h"

namespace flopinj::reduce {
namespace {

constexpr uint64_t kLongestStepNs = 1000ULL * 1000 * 1000 * 86400 * 365;

// A path id for each step, from runs.
class PathRuns {
 public:
  explicit PathRuns(const trace::Steps& message) : message_(message) {}
  uint32_t next() {
    while (left_ == 0 && at_ + 1 < message_.range_path_run_size()) {
      path_ = message_.range_path_run(at_);
      left_ = message_.range_path_run(at_ + 1);
      at_ += 2;
    }
    if (left_ > 0) --left_;
    return path_;
  }

 private:
  const trace::Steps& message_;
  int at_ = 0;
  uint32_t path_ = 0, left_ = 0;
};

bool has_equal_columns(const trace::Steps& message) {
  return message.gap_ns_size() == message.number_delta_size() &&
         message.duration_ns_size() == message.number_delta_size();
}

// Calls visit(index, number, times) for each step that can be.
template <typename Visit>
void for_each_step(const trace::Steps& message, DamageLog& damage, Visit&& visit) {
  uint32_t number = 0;
  uint64_t end_ns = message.first_start_ns();
  PathRuns paths(message);
  for (int i = 0; i < message.number_delta_size(); ++i) {
    number += static_cast<uint32_t>(message.number_delta(i));
    const StepTimes step{end_ns + static_cast<uint64_t>(message.gap_ns(i)), message.duration_ns(i),
                         paths.next()};
    if (number == 0 || step.duration_ns > kLongestStepNs) {
      damage.add(Damage::kBadTime);
      continue;
    }
    end_ns = step.start_ns + step.duration_ns;
    visit(i, number, step);
  }
}

}  // namespace

void StepSums::add(const StepTimes& step) {
  const uint64_t end_ns = step.start_ns + step.duration_ns;
  min_ns = steps == 0 ? step.duration_ns : std::min(min_ns, step.duration_ns);
  max_ns = std::max(max_ns, step.duration_ns);
  first_start_ns = steps == 0 ? step.start_ns : std::min(first_start_ns, step.start_ns);
  last_end_ns = std::max(last_end_ns, end_ns);
  add_saturating(total_ns, step.duration_ns);
  path = step.path;
  ++buckets[step_bucket(step.duration_ns)];
  ++steps;
}

double StepSums::median_ns() const {
  const auto at = [this](uint64_t place) {
    uint64_t before = 0;
    for (const auto& [bucket, count] : buckets) {
      before += count;
      if (before > place)
        return std::clamp(step_bucket_middle(bucket), static_cast<double>(min_ns),
                          static_cast<double>(max_ns));
    }
    return 0.0;
  };
  return steps == 0 ? 0 : half_way(at((steps - 1) / 2), at(steps / 2));
}

void StepTable::add(const trace::Steps& message, DamageLog& damage) {
  if (!has_equal_columns(message)) return damage.add(Damage::kBadColumns);
  for_each_step(message, damage, [&](int, uint32_t number, const StepTimes& step) {
    if (steps_.size() >= kMost)
      damage.add(Damage::kTableFull);
    else if (steps_.emplace(number, step).second)
      sums_.add(step);
  });
}

void StepTable::add(const trace::SingleSteps& message, DamageLog& damage) {
  constexpr int kMostInMessage = 1 << 16;
  const int steps = message.times().number_delta_size();
  const bool equal = has_equal_columns(message.times()) && message.launches_size() == steps &&
                     message.untimed_size() == steps && message.gpu_time_ns_size() == steps &&
                     message.busy_ns_size() == steps && message.kind_size() == steps &&
                     (message.energy_size() == steps || message.energy_size() == 0);
  SummarySteps read;
  read.every = message.every();
  const auto& kinds = message.kinds();
  bool sound = equal && steps <= kMostInMessage && std::has_single_bit(read.every);
  for (int i = 0; sound && i < kinds.size();) {
    const auto left = static_cast<uint64_t>(kinds.size() - i - 1);
    const uint64_t entries = kinds[i++];
    sound = entries <= left / 3;
    if (!sound) break;
    auto& kind = read.kinds.emplace_back();
    for (uint64_t entry = 0; entry < entries; ++entry, i += 3) {
      sound = sound && kinds[i] <= UINT32_MAX && kinds[i + 1] <= UINT32_MAX;
      kind.push_back(
          {static_cast<uint32_t>(kinds[i]), static_cast<uint32_t>(kinds[i + 1]), kinds[i + 2]});
    }
  }
  for (const uint32_t kind : message.kind()) sound = sound && kind <= read.kinds.size();
  if (!sound) return damage.add(Damage::kBadColumns);
  for_each_step(message.times(), damage, [&](int i, uint32_t number, const StepTimes& times) {
    const uint64_t busy = message.busy_ns(i);
    const uint64_t energy = message.energy_size() > 0 ? message.energy(i) : 0;
    read.steps.push_back({number,
                          times,
                          message.launches(i),
                          {message.gpu_time_ns(i), message.untimed(i),
                           busy > 0 ? std::optional(busy - 1) : std::nullopt},
                          message.kind(i),
                          energy > 0 ? std::optional(energy - 1) : std::nullopt});
  });
  read.steps.shrink_to_fit();
  in_summary_ = std::move(read);
}

void StepTable::take_all_in_summary() {
  const auto known = [](const SingleStep& step) { return step.kind != 0 || step.launches == 0; };
  all_in_summary_ = steps_.empty() && sums_.steps > 0 && sums_.window_ns > 0 &&
                    in_summary_.every == 1 && in_summary_.steps.size() == sums_.steps;
  for (const SingleStep& step : in_summary_.steps) all_in_summary_ = all_in_summary_ && known(step);
}

void StepTable::add(const trace::StepSums& message, DamageLog& damage) {
  uint64_t counted = 0;
  for (const uint64_t count : message.bucket_steps()) add_saturating(counted, count);
  bool sound = message.bucket_size() == message.bucket_steps_size() && counted == message.steps() &&
               message.max_ns() <= kLongestStepNs && message.min_ns() <= message.max_ns();
  for (const uint32_t bucket : message.bucket()) sound = sound && bucket < kStepBuckets;
  if (!sound) return damage.add(Damage::kBadColumns);
  sums_ = {message.steps(),          message.total_ns(),    message.min_ns(),     message.max_ns(),
           message.first_start_ns(), message.last_end_ns(), message.range_path(), {},
           message.kernels_timed(),  message.window_ns()};
  for (int i = 0; i < message.bucket_size(); ++i)
    sums_.buckets[message.bucket(i)] += message.bucket_steps(i);
}

}  // namespace flopinj::reduce
