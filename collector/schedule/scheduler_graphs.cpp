// Kernels that run in graphs: windows of one graph launch, which read what its kernels lack.
//
// CUPTI documents little of its ranges of graphs. So what a window brings is taken where kernels
// that were measured outside have the same counts in it, and have any; once that has been so for
// instrumented kernels, or for hardware counters, it is taken of every graph. Rounds are not made
// in graphs: every launch of a graph would be slowed down for one of its kernels.
#include <collector/schedule/scheduler_state.h>

#include <algorithm>

namespace flopinj {
namespace {

constexpr uint32_t kMostGraphFailures = 3;

}  // namespace

// Samples that the kernel's next launch in a graph would add.
bool MeasurementScheduler::State::wants_in_graph(const SampledSignature& s, uint32_t g) const {
  const GroupProgress& group = s.groups[g];
  const uint32_t enough =
      s.phase == SampledSignature::Phase::kFirst ? std::max(config.first_samples, 1U) : 1;
  return s.needed.contains(g) && !group.given_up && group.samples + group.pending < enough;
}

// Of a window around one launch. Empty: how long its kernels take instrumented is not known yet.
std::optional<uint64_t> MeasurementScheduler::State::graph_cost(
    Plan& plan, std::span<const Signature* const> kernels, uint32_t g) {
  const bool instrumented = plan.instrumented.contains(g);
  uint64_t usual = 0, calls = 0;
  bool usual_known = true, calls_known = true;
  for (const Signature* const kernel : kernels) {
    const SampledSignature& s = sampled(plan, *kernel);
    usual += s.usual_ns(plan.instrumented);
    calls += s.groups[g].call_ns;
    usual_known = usual_known && s.usual_ns(plan.instrumented) != 0;
    calls_known = calls_known && s.groups[g].call_ns != 0;
  }
  if (instrumented && !usual_known && !calls_known) return std::nullopt;
  return budget.predicted_ns(instrumented, calls_known ? calls : instrumented ? 0 : usual, usual);
}

std::optional<uint32_t> MeasurementScheduler::decide_graph(
    DeviceId device, std::span<const Signature* const> kernels, GraphMode mode, bool may_instrument,
    uint64_t now_ns) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  State::Plan* const plan = state.plan_of(device, 0);
  if (plan == nullptr || state.graph_failures >= kMostGraphFailures) return std::nullopt;
  if (state.config.every_launch) return may_instrument ? std::optional(0U) : std::nullopt;
  state.clock_ns = now_ns;
  try {
    for (const uint32_t g : state.enabled(*plan, device) - state.paused(*plan, device)) {
      const bool instrumented = plan->instrumented.contains(g);
      const bool possible = may_instrument || !instrumented;
      bool wanted = false, comparable = false;
      for (const Signature* const kernel : kernels) {
        SampledSignature& s = state.sampled(*plan, *kernel);
        const bool wants = state.wants_in_graph(s, g);
        if (wants && !possible) state.need_substitute(*plan, s, g);
        wanted = wanted || wants;
        comparable = comparable || s.groups[g].samples != 0;
      }
      if (!possible || !wanted ||
          !(comparable || state.graphs_shown[instrumented ? 1 : 0] || mode == GraphMode::kOn))
        continue;
      const auto cost = state.graph_cost(*plan, kernels, g);
      if (state.budget.unlimited() || (cost && state.budget.affords(true, *cost, now_ns))) return g;
    }
  } catch (const std::exception&) {  // memory
  }
  return std::nullopt;
}

void MeasurementScheduler::graph_launched(MeasurementWindow& window,
                                          std::span<const Signature* const> kernels, WindowRow row,
                                          uint64_t call_ns) noexcept {
  State& state = *state_;
  window.of_graph = true;
  row.call_ns = call_ns / std::max<size_t>(kernels.size(), 1);
  const MutexLock lock(state.mutex);
  State::Plan* const plan = state.plan_of(window.device, window.group);
  for (const Signature* const kernel : kernels) {
    row.signature = kernel;
    row.chosen = false;
    const auto known =
        plan == nullptr ? decltype(plan->signatures.end()){} : plan->signatures.find(kernel->id);
    if (plan != nullptr && known != plan->signatures.end()) {
      SampledSignature& s = known->second;
      state.count_launches(s, 1);
      row.chosen = !state.config.every_launch && state.wants_in_graph(s, window.group);
      if (row.chosen) ++s.groups[window.group].pending;
      s.groups[window.group].call_ns = row.call_ns;
      ++s.windowed;
      if (plan->instrumented.contains(window.group)) ++s.instrumented;
    }
    row.chosen = row.chosen || state.config.every_launch;
    window.rows.push_back(row);
    window.cost.calls_ns += row.call_ns;
    ++window.cost.launches;
  }
}

bool MeasurementScheduler::graph_agrees(const MeasurementWindow& window,
                                        std::span<const double> values) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  State::Plan* const plan = state.plan_of(window.device, window.group);
  if (plan == nullptr || window.rows.empty()) return true;
  const size_t width = values.size() / window.rows.size();
  size_t same = 0, other = 0, empty = 0;
  const auto is_0 = [](double n) { return n == 0; };
  if (state.config.every_launch) {  // nothing that was read outside is kept to be compared
    for (size_t i = 0; i < window.rows.size(); ++i)
      if (std::ranges::all_of(values.subspan(i * width, width), is_0)) ++empty;
    if (window.checked || empty != 0) return ++state.graph_failures, false;
    return state.graphs_unchecked = true;
  }
  for (size_t i = 0; i < window.rows.size(); ++i) {
    const auto row = values.subspan(i * width, width);
    const bool all_0 = std::ranges::all_of(row, is_0);
    // Every kernel takes time.
    if (all_0 && !plan->tells_work.contains(window.group)) ++empty;
    const auto known = plan->signatures.find(window.rows[i].signature->id);
    if (known == plan->signatures.end() || window.rows[i].unread) continue;
    const SampledSignature& s = known->second;
    const GroupProgress& group = s.groups[window.group];
    if (group.samples == 0 || s.varying || plan->work_columns[window.group] == 0) continue;
    if (group.fingerprint != State::work_of(*plan, window.group, row))
      ++other;
    else if (!all_0)
      ++same;
  }
  bool& shown = state.graphs_shown[plan->instrumented.contains(window.group) ? 1 : 0];
  if (empty == 0 && (shown || (same != 0 && other == 0))) {
    shown = true;
    return true;
  }
  if (empty == 0 && same + other == 0 && !window.checked) {
    state.graphs_unchecked = true;
    return true;
  }
  ++state.graph_failures;
  return false;
}

void MeasurementScheduler::graph_failed() noexcept {
  const MutexLock lock(state_->mutex);
  ++state_->graph_failures;
}
bool MeasurementScheduler::graphs_given_up() const noexcept {
  const MutexLock lock(state_->mutex);
  return state_->graph_failures >= kMostGraphFailures;
}
bool MeasurementScheduler::graphs_unchecked() const noexcept {
  const MutexLock lock(state_->mutex);
  return state_->graphs_unchecked;
}

}  // namespace flopinj
