// Windows around graph launches. One of them holds one launch and reads one group. What CUPTI refuses
// here ends the measuring of graphs, and of nothing else.
#include <injector/log.h>
#include <injector/process.h>
#include <injector/range_profiler.h>
#include <injector/windows.h>

#include <utility>

namespace flopinj {
namespace {

std::vector<GraphMetric> metrics_of(const MetricGroupPlan& group) {
  const bool tells_work = group.required || !group.needed_if.empty();
  std::vector<GraphMetric> metrics;
  for (const std::string& name : group.metrics)
    metrics.push_back({tells_work, adds_up_over_kernels(name)});
  return metrics;
}

}  // namespace

void Windows::open_for(Context& context, const ThreadCache& thread, MeasuredGraph& graph) {
  const auto group = scheduler_.decide_graph(context.device, graph, monotonic_ns());
  if (group) open(context, thread, *group, false, &graph);
}

// `launch`: null where it failed, or its end is not known.
void Windows::close_graph(Context& context, const WindowRow* launch) {
  const uint64_t began = monotonic_ns();
  const ShutGate gate(context);
  const auto window = std::move(context.window);
  const MeasuredGraph& graph = *window->graph;
  MetricGroup& group = window->read_by();
  std::vector<double> values;
  size_t ranges = 0;
  Problem problem;
  auto outcome = RangeProfiler::Outcome::kMismatch;
  GraphSamples samples;
  try {
    std::vector<GraphKernel> kernels = graph.kernels;
    for (GraphKernel& kernel : kernels)
      if (!kernel.path && launch != nullptr) kernel.path = launch->path;
    // That CUPTI waits for the end of a graph, as it does for a kernel's, nobody has established;
    // what is read before it may be a part.
    const bool ended =
        edge_.cuda.CtxSynchronize != nullptr && edge_.cuda.CtxSynchronize() == CUDA_SUCCESS;
    outcome = context.profiler->close_with_any(group, ranges, values, problem);
    if (outcome == RangeProfiler::Outcome::kRead && !ended)
      outcome = RangeProfiler::Outcome::kMismatch;
    const auto metrics = metrics_of(group.plan);
    samples.verdict = GraphVerdict::kOtherNumber;
    // A launch that did not wait for the window may be among the ranges.
    if (outcome == RangeProfiler::Outcome::kRead && launch != nullptr &&
        context.passed_by.load(std::memory_order_relaxed) == window->passed_by)
      samples = samples_of_graph(
          {kernels, graph.ordered, contexts_.all().size() == 1, ranges, values, metrics});
  } catch (const std::exception&) {  // memory: it is discarded
    samples = {};
  }
  GraphWindow closed{window->measured.device, window->measured.group, window->graph,
                     window->measured.cost};
  closed.cost.launches = 1;
  closed.cost.calls_ns = launch != nullptr ? launch->call_ns : 0;
  closed.cost.open_ns = began - window->measured.opened_ns;
  closed.cost.overhead_ns += monotonic_ns() - began;
  scheduler_.graph_window_closed(closed, samples);

  if (outcome == RangeProfiler::Outcome::kFailed) return refuse_graphs(problem);
  if (launch == nullptr)
    return refuse_graphs({"counters.graph", "a graph launch failed in a measurement window"});
  if (samples.usable()) return deliver_graph(*window, std::move(samples));
  edge_.collector->diagnostic(
      Severity::kWarning, "counters.graph_ranges",
      "a measurement window around a graph launch of " + std::to_string(graph.kernels.size()) +
          " kernels saw " + std::string(words_for(samples.verdict)) + " (" +
          std::to_string(ranges) +
          "): it was discarded; kernels that run in such graphs alone stay unmeasured");
}

void Windows::deliver_graph(const OpenWindow& window, GraphSamples samples) {
  SampleBatch batch;
  batch.device = window.measured.device;
  batch.group = window.plan->ids[window.measured.group];
  batch.window = windows_.fetch_add(1, std::memory_order_relaxed) + 1;
  batch.graph_kernels = samples.kernels_each;
  for (const GraphKernel& kernel : samples.kernels) {
    batch.signatures.push_back(kernel.signature);
    batch.paths.push_back(kernel.path);
  }
  batch.values = std::move(samples.values);
  edge_.collector->samples(std::move(batch));
}

void Windows::refuse_graphs(const Problem& problem) {
  scheduler_.never_measure_graphs();
  const std::string line = problem.line + "; graphs are not measured any more, other launches are";
  edge_.collector->diagnostic(Severity::kError, problem.code, line);
  log::warn(line);
}

}  // namespace flopinj
