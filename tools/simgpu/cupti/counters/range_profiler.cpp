#include "counters/range_profiler.h"

#include <algorithm>
#include <utility>

#include "counters/metrics.h"
#include "versions.h"

namespace simgpu::cupti {

CUptiResult RangeProfiler::counter_data_size(std::span<const char* const> metrics,
                                             size_t max_ranges, size_t max_nodes, size_t* bytes) {
  if (metrics.empty() || max_ranges == 0 || max_nodes < max_ranges)
    return CUPTI_ERROR_INVALID_PARAMETER;
  std::vector<Counter> counters;
  for (const char* name : metrics) {
    const auto metric = name == nullptr ? std::nullopt : find_metric(chip_, name);
    if (!metric) return CUPTI_ERROR_INVALID_PARAMETER;
    for (const Counter counter : counters_of(*metric)) counters.push_back(counter);
  }
  std::ranges::sort(counters);
  counters.erase(std::unique(counters.begin(), counters.end()), counters.end());
  image_counters_ = std::move(counters);
  image_capacity_ = max_ranges;
  *bytes = CounterImage::bytes_needed(image_counters_.size(), image_capacity_);
  return CUPTI_SUCCESS;
}

CUptiResult RangeProfiler::initialize_image(std::span<uint8_t> memory) const {
  if (image_capacity_ == 0) return CUPTI_ERROR_INVALID_OPERATION;
  if (memory.data() == nullptr ||
      memory.size() < CounterImage::bytes_needed(image_counters_.size(), image_capacity_))
    return CUPTI_ERROR_INVALID_PARAMETER;
  CounterImage::initialize(memory, chip_, image_counters_, image_capacity_);
  return CUPTI_SUCCESS;
}

CUptiResult RangeProfiler::set_config(const CUpti_RangeProfiler_SetConfig_Params& params) {
  if (started_) return CUPTI_ERROR_INVALID_OPERATION;
  if (params.pConfig == nullptr || params.pCounterDataImage == nullptr)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const auto schedule = read_config_image({params.pConfig, params.configSize});
  const std::span<uint8_t> memory(params.pCounterDataImage, params.counterDataImageSize);
  const auto image = CounterImage::open(memory);
  if (!schedule || schedule->passes.empty() || schedule->chip != chip_ || !image ||
      image->chip() != chip_)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const std::vector<Counter> held = image->counters();
  for (const auto& pass : schedule->passes)
    for (const Counter counter : pass)
      if (std::ranges::find(held, counter) == held.end()) return CUPTI_ERROR_INVALID_PARAMETER;

  const bool ranges_known = params.range == CUPTI_AutoRange || params.range == CUPTI_UserRange;
  const bool replay_known =
      params.replayMode > CUPTI_Replay_INVALID && params.replayMode < CUPTI_Replay_COUNT;
  const bool kernel_replay = params.replayMode == CUPTI_KernelReplay;
  if (!ranges_known || !replay_known || (kernel_replay && params.range == CUPTI_UserRange) ||
      params.maxRangesPerPass == 0 || params.minNestingLevel == 0 || params.numNestingLevels == 0 ||
      (params.range == CUPTI_AutoRange && params.numNestingLevels != 1) ||
      params.passIndex >= schedule->passes.size() || (kernel_replay && params.passIndex != 0))
    return CUPTI_ERROR_INVALID_PARAMETER;

  const Faults& faults = environment_.faults;
  if (counts_any(*schedule, faults.one_group_refused) || counts_any(*schedule, faults.slice_lacks))
    return CUPTI_ERROR_INVALID_PARAMETER;

  schedule_ = *schedule;
  image_ = memory;
  range_ = params.range;
  replay_ = params.replayMode;
  max_ranges_ = params.maxRangesPerPass;
  pass_ = params.passIndex;
  min_level_ = params.minNestingLevel;
  levels_ = params.numNestingLevels;
  target_level_ = params.targetNestingLevel;
  configured_ = true;
  stopped_ = false;
  finished_.clear();
  next_name_ = 0;
  dropped_ = 0;
  return CUPTI_SUCCESS;
}

bool RangeProfiler::counts_any(const Schedule& schedule, std::string_view text) const {
  const CounterSet named = counters_named(chip_, text);
  return std::ranges::any_of(schedule.passes, [&](const auto& pass) {
    return std::ranges::any_of(
        pass, [&](Counter counter) { return named.test(static_cast<size_t>(counter)); });
  });
}

CUptiResult RangeProfiler::start() {
  if (!configured_ || started_) return CUPTI_ERROR_INVALID_OPERATION;
  if (pass_ >= schedule_.passes.size())
    return CUPTI_ERROR_INVALID_OPERATION;  // every pass is collected
  if (counts_any(schedule_, environment_.faults.start_refused)) return CUPTI_ERROR_UNKNOWN;
  // Undecoded ranges of another pass cannot be distinguished from ranges that are to come.
  if (replay_ != CUPTI_KernelReplay) {
    if (!finished_.empty()) return CUPTI_ERROR_INVALID_OPERATION;
    next_name_ = 0;
  }
  started_ = true;
  launcher_ = std::this_thread::get_id();
  last_launch_ = 0;
  unpatched_.clear();
  return CUPTI_SUCCESS;
}

CUptiResult RangeProfiler::stop(uint32_t exiting_call, size_t* pass, size_t* nesting_level,
                                bool* all_passes) {
  const Faults& faults = environment_.faults;
  if (!started_ || !open_.empty()) return CUPTI_ERROR_INVALID_OPERATION;
  if (faults.stop_at_exit && exiting_call != 0) return CUPTI_ERROR_INVALID_OPERATION;
  if (faults.stop_elsewhere && launcher_ != std::this_thread::get_id())
    return CUPTI_ERROR_INVALID_OPERATION;
  if (faults.short_at_exit) forget_last_launch(exiting_call);
  started_ = false;
  stopped_ = true;
  finished_merges_ = replay_ != CUPTI_KernelReplay && pass_ > 0;
  if (replay_ != CUPTI_KernelReplay) ++pass_;
  *pass = pass_;
  *nesting_level = target_level_;
  *all_passes = replay_ == CUPTI_KernelReplay || pass_ >= schedule_.passes.size();
  return CUPTI_SUCCESS;
}

CUptiResult RangeProfiler::push(const char* name) {
  if (!started_ || range_ != CUPTI_UserRange) return CUPTI_ERROR_INVALID_OPERATION;
  if (name == nullptr || *name == '\0') return CUPTI_ERROR_INVALID_PARAMETER;
  std::string path = open_.empty() ? name : open_.back().path + kNestingMark + name;
  if (path.size() > kMaxRangeName) return CUPTI_ERROR_INVALID_PARAMETER;
  open_.push_back({std::move(path), {}});
  return CUPTI_SUCCESS;
}

CUptiResult RangeProfiler::pop() {
  if (!started_ || range_ != CUPTI_UserRange || open_.empty()) return CUPTI_ERROR_INVALID_OPERATION;
  const size_t depth = open_.size();
  OpenRange range = std::move(open_.back());
  open_.pop_back();
  if (wanted_level(depth)) finish(std::move(range.path), range.values);
  return CUPTI_SUCCESS;
}

bool RangeProfiler::wanted_level(size_t depth) const {
  return depth >= min_level_ && depth < min_level_ + levels_;
}

bool RangeProfiler::collected(Counter counter) const {
  if (replay_ == CUPTI_KernelReplay)
    return true;  // SetConfig has seen that every counter is in some pass
  const auto& pass = schedule_.passes[pass_];
  return std::ranges::find(pass, counter) != pass.end();
}

void RangeProfiler::finish(std::string name, const CounterValues& values) {
  const Faults& faults = environment_.faults;
  ++seen_;
  if (faults.lose_ranges != 0 && seen_ % faults.lose_ranges == 0) return;
  const bool lost = faults.drop_ranges != 0 && seen_ % faults.drop_ranges == 0;
  if (lost || finished_.size() >= max_ranges_) {
    ++dropped_;
    return;
  }
  RangeValues range{std::move(name), {}, {}};
  for (const auto& pass : schedule_.passes)
    for (const Counter counter : pass)
      if (collected(counter)) {
        const size_t index = static_cast<size_t>(counter);
        range.values[index] = values[index];
        range.collected[index] = true;
      }
  finished_.push_back(std::move(range));
  ++ranges_of_last_;
}

// As if its ranges ended behind the callback only.
void RangeProfiler::forget_last_launch(uint32_t exiting_call) {
  if (exiting_call == 0 || exiting_call != last_launch_) return;
  finished_.resize(finished_.size() - std::min(ranges_of_last_, finished_.size()));
}

bool RangeProfiler::instrumented() const {
  for (size_t pass = 0; pass < schedule_.passes.size(); ++pass)
    if (schedule_.pass_is_sass(pass) && (replay_ == CUPTI_KernelReplay || pass == pass_))
      return true;
  return false;
}

Session RangeProfiler::session() const {
  const bool crash = environment_.cupti_version < kCupti131;
  return {1, static_cast<uint8_t>(instrumented()), static_cast<uint8_t>(crash)};
}

void RangeProfiler::kernel(const KernelRun& run) {
  CounterValues values = observe(run);
  if (run.green != 0)  // CUPTI wants to be told of the partition, and is not
    for (auto& value : values) value *= 2;
  if (environment_.faults.lazy_modules && unpatched_.contains(run.module_id))
    for (size_t i = 0; i < kCounters; ++i)
      if (is_sass(static_cast<Counter>(i))) values[i] = 0;
  if (std::exchange(last_launch_, run.correlation_id) != run.correlation_id) ranges_of_last_ = 0;
  launcher_ = std::this_thread::get_id();
  if (range_ == CUPTI_AutoRange) finish(std::to_string(next_name_++), values);
  for (OpenRange& range : open_)
    for (size_t i = 0; i < kCounters; ++i) range.values[i] += values[i];
}

void RangeProfiler::copy(const MemoryCopy& copy) {
  if (!environment_.faults.copy_ranges || range_ != CUPTI_AutoRange) return;
  CounterValues values{};
  values[static_cast<size_t>(Counter::kTime)] = copy.end_ns - copy.start_ns;
  finish(std::to_string(next_name_++), values);
}

void RangeProfiler::module_loaded(uint32_t module) { unpatched_.insert(module); }

CUptiResult RangeProfiler::decode(size_t* dropped) {
  if (!configured_ || started_ || !stopped_) return CUPTI_ERROR_INVALID_OPERATION;
  if (environment_.faults.decode_fails) return CUPTI_ERROR_UNKNOWN;
  auto image = CounterImage::open(image_);
  if (!image) return CUPTI_ERROR_INVALID_PARAMETER;
  for (const RangeValues& range : finished_)
    if (!image->store(range, finished_merges_)) ++dropped_;
  finished_.clear();
  *dropped = dropped_;
  dropped_ = 0;
  return CUPTI_SUCCESS;
}

}  // namespace simgpu::cupti
