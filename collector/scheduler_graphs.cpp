// Kernels that run in graphs alone: when a graph launch is measured.
//
// A launch is measured while one of its kernels lacks a group that nothing else has given, one group
// at a time, as the budget allows for the whole graph; and later in rounds, one sample of each group
// in stretches of 16, 32, 64, ... launches of its first kernel, so that work which differs is seen.
// A graph whose windows are of no use twice is left alone, and so are all after sixteen such in a
// row.
#include <collector/scheduler_state.h>

#include <algorithm>
#include <bit>

namespace flopinj {
namespace {

constexpr uint32_t kMostFailures = 2, kMostFailuresOfAll = 16;
constexpr size_t kMostTried = 64;  // of those that wait, at a time
constexpr uint32_t kMostDoublings = 40;
constexpr size_t kMostResting = 1'024;

}  // namespace

// What a launch in a window of the group is to cost. Empty: nobody knows yet how long its kernels
// take, and they would be slowed down.
std::optional<uint64_t> MeasurementScheduler::State::graph_cost(Plan& plan,
                                                                const MeasuredGraph& graph,
                                                                uint32_t g) {
  uint64_t usual = 0;
  bool known = true;
  for (const GraphKernel& kernel : graph.kernels) {
    const uint64_t ns = sampled(plan, *table.find(kernel.signature)).mean_gpu_ns();
    known = known && ns != 0;
    usual += ns;
  }
  const uint64_t call = g < graph.call_ns.size() ? graph.call_ns[g] : 0;
  if (!known) {
    usual = 0;
    for (uint32_t other = 0; other < graph.call_ns.size(); ++other)
      if (((plan.instrumented >> other) & 1) == 0) usual = std::max(usual, graph.call_ns[other]);
  }
  const bool instrumented = ((plan.instrumented >> g) & 1) != 0;
  if (instrumented && call == 0 && usual == 0 && !budget.unlimited()) return std::nullopt;
  return budget.predicted_ns(instrumented, call != 0 || instrumented ? call : usual, usual);
}

bool MeasurementScheduler::State::affords_graph(Plan& plan, const MeasuredGraph& graph, uint32_t g,
                                                bool lacks_group, uint64_t now_ns) {
  if (config.every_launch) return true;
  const auto cost = graph_cost(plan, graph, g);
  return cost && budget.affords(lacks_group, *cost, now_ns);
}

std::optional<uint32_t> MeasurementScheduler::State::decide_graph(Plan& plan, DeviceId device,
                                                                  MeasuredGraph& graph,
                                                                  uint64_t now_ns) {
  graph.wants.store(false, std::memory_order_relaxed);  // unless there is more to do
  const uint64_t possible = enabled(plan, device);
  if (stopped || graphs_refused || graph.failures >= kMostFailures || possible == 0) return {};
  uint64_t lacking = 0;
  for (const GraphKernel& kernel : graph.kernels) {
    const Signature* const signature = table.find(kernel.signature);
    if (signature == nullptr || !may_be_measured(*signature)) return {};  // for good
    SampledSignature& s = sampled(plan, *signature);
    launched_again(s);  // what is in a graph is made to come again
    lacking |= s.missing();
  }
  lacking &= possible;
  const uint64_t groups = lacking != 0 ? lacking : graph.round & possible;
  if (groups == 0) {
    rest_graph(plan, graph);
    return {};
  }
  const auto group = static_cast<uint32_t>(std::countr_zero(groups));
  if (!affords_graph(plan, graph, group, lacking != 0, now_ns)) {
    waiting_graphs.push_back({&plan, &graph, group, lacking != 0});
    return {};
  }
  graph.wants.store(true, std::memory_order_relaxed);
  return group;
}

// Nothing is wanted of it now. Where eager launches gave all, nothing ever will be.
void MeasurementScheduler::State::rest_graph(Plan& plan, MeasuredGraph& graph) {
  if (graph.read == 0 || resting_graphs.size() >= kMostResting) return;
  const SampledSignature& s = sampled(plan, *table.find(graph.kernels.front().signature));
  const uint64_t stretch = kFirstStretch << std::min(graph.rounds++, kMostDoublings);
  graph.next_at =
      s.recorded + random.below(s.varying ? std::min(stretch, kVaryingStretch) : stretch) + 1;
  resting_graphs.push_back({&plan, &graph, 0, false});
}

void MeasurementScheduler::State::graph_sample(Plan& plan, SampledSignature& s, uint32_t g,
                                               std::span<const double> values) {
  for (const GroupCondition& condition : plan.conditions)
    if (condition.group == g && condition.holds(values)) need(plan, s, condition.needed);
  compare(plan, s, g, values);
  ++s.groups[g].samples;
  if (!s.complete && s.has_every_group()) set_complete(s, true);
  if (s.phase == SampledSignature::Phase::kFirst) advance(plan, s);
}

void MeasurementScheduler::State::graph_window(Plan& plan, const GraphWindow& window,
                                               const GraphSamples& samples) {
  MeasuredGraph& graph = *window.graph;
  const bool instrumented = ((plan.instrumented >> window.group) & 1) != 0;
  uint64_t gpu_ns = 0;
  for (const GraphKernel& kernel : graph.kernels) {
    SampledSignature& s = sampled(plan, *table.find(kernel.signature));
    gpu_ns += s.mean_gpu_ns();
    ++s.windowed;
    if (instrumented) ++s.instrumented;
  }
  budget.graph_window(instrumented, window.cost, gpu_ns);
  graph.call_ns.resize(plan.groups);
  graph.call_ns[window.group] = window.cost.calls_ns;
  graph.round &= ~group_mask(window.group);
  if (!samples.usable()) {
    ++discarded;
    if (++graph.failures >= kMostFailures) graph.wants.store(false, std::memory_order_relaxed);
    if (++graph_failures >= kMostFailuresOfAll) graphs_refused = true;
    return;
  }
  graph.failures = graph_failures = 0;
  graph.read |= group_mask(window.group);
  const size_t width = samples.values.size() / samples.kernels.size();
  for (size_t i = 0; i < samples.kernels.size(); ++i)
    graph_sample(plan, sampled(plan, *table.find(samples.kernels[i].signature)), window.group,
                 std::span(samples.values).subspan(i * width, width));
}

// On the writer thread: what waited and finds room now, and rounds that are due.
void MeasurementScheduler::State::arm_graphs() {
  for (size_t tried = std::min(waiting_graphs.size(), kMostTried); tried > 0; --tried) {
    const GraphEntry e = waiting_graphs.front();
    waiting_graphs.pop_front();
    if (affords_graph(*e.plan, *e.graph, e.group, e.lacks_group, clock_ns))
      e.graph->wants.store(true, std::memory_order_relaxed);
    else
      waiting_graphs.push_back(e);
  }
  std::erase_if(resting_graphs, [&](const GraphEntry& e) {
    const SampledSignature& s = sampled(*e.plan, *table.find(e.graph->kernels.front().signature));
    if (s.recorded < e.graph->next_at) return false;
    e.graph->round = e.graph->read;
    e.graph->wants.store(true, std::memory_order_relaxed);
    return true;
  });
}

std::optional<uint32_t> MeasurementScheduler::decide_graph(DeviceId device, MeasuredGraph& graph,
                                                           uint64_t now_ns) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  State::Plan* const plan = state.plan_of(device, 0);
  if (plan == nullptr) return {};
  state.clock_ns = now_ns;
  try {
    return state.decide_graph(*plan, device, graph, now_ns);
  } catch (const std::exception&) {  // memory: it is not measured
    graph.wants.store(false, std::memory_order_relaxed);
    return {};
  }
}

void MeasurementScheduler::graph_window_closed(const GraphWindow& window,
                                               const GraphSamples& samples) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  ++state.opened;
  State::Plan* const plan = state.plan_of(window.device, window.group);
  if (plan == nullptr) return;
  try {
    state.graph_window(*plan, window, samples);
  } catch (const std::exception&) {
    window.graph->wants.store(false, std::memory_order_relaxed);
  }
}

void MeasurementScheduler::never_measure_graphs() noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->graphs_refused = true;
}

}  // namespace flopinj
