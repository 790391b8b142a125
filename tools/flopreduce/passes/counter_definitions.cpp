// Pass one: metric groups and counter samples.
#include <cmath>

#include "passes/definitions.h"
#include "reader/message.h"

namespace flopinj::reduce {

void DefinitionPass::metric_group(const trace::MetricGroup& group) {
  constexpr int kMaxMetrics = 256;
  constexpr size_t kMaxGroups = 1024;
  constexpr size_t kMaxMetricNames = 4096;  // over all traces: samples are searched by metric
  if (group.metric_size() > kMaxMetrics || group.needed_if_size() > kMaxMetrics ||
      trace_->group_list.size() >= kMaxGroups || metric_names_ > kMaxMetricNames) {
    damage_->add(Damage::kTableFull);
    return;
  }
  MetricGroup known;
  known.device = tables_.device_index(trace_index_, group.device());
  known.name = intern_name(group.name());
  known.required = group.required();
  known.unavailable = !group.unavailable().empty();
  if (!group.instead_of().empty()) known.instead_of = intern_name(group.instead_of());
  for (const auto& metric : group.metric()) {
    const size_t before = tables_.names.size();
    known.metrics.push_back(intern_name(metric));
    metric_names_ += tables_.names.size() - before;
  }
  for (const auto& need : group.needed_if())
    known.needed_if.push_back({intern_name(need.metric()), need.included().empty()
                                                               ? NeededIf::kNothing
                                                               : intern_name(need.included())});
  define(trace_->groups, group.id(), static_cast<uint32_t>(trace_->group_list.size()));
  trace_->group_list.push_back(std::move(known));
}

void DefinitionPass::counter_samples(protozero::data_view body) {
  trace::CounterSamples samples;
  if (!parse_message(samples, body)) {
    damage_->add(Damage::kMalformedPacket);
    return;
  }
  const uint32_t index = trace_->groups.get(samples.group());
  if (index == kNoIndex) {
    damage_->add(Damage::kUndefinedId, static_cast<uint64_t>(samples.signature_size()));
    return;
  }
  const MetricGroup& group = trace_->group_list[index];
  const size_t width = group.metrics.size();
  const auto count = static_cast<size_t>(samples.signature_size());
  const bool placed = samples.ordinal_size() != 0;
  if (static_cast<size_t>(samples.value_size()) != count * width ||
      (placed && samples.ordinal_size() != samples.signature_size()) ||
      (samples.range_path_size() != 0 && samples.range_path_size() != samples.signature_size())) {
    damage_->add(Damage::kBadColumns);
    return;
  }
  const bool of_graph = samples.graph_kernels() != 0;
  for (size_t i = 0; i < count; ++i) {
    double* const values = samples.mutable_value()->mutable_data() + i * width;
    const uint32_t signature = trace_->signatures.get(samples.signature(static_cast<int>(i)));
    bool good = true;
    // Kernels of a graph that were read together have no time of their own.
    const auto lacks = [&](double v) { return samples.graph_kernels() > 1 && std::isnan(v); };
    for (size_t m = 0; m < width; ++m)
      good = good && (is_counter_value(values[m]) || lacks(values[m]));
    if (!good || signature == kNoIndex) {
      damage_->add(good ? Damage::kUndefinedId : Damage::kBadCounter);
      continue;
    }
    SampleSet* set = tables_.samples_by_device.at(signature, group.device);
    if (set == nullptr) {
      damage_->add(Damage::kTableFull);
      continue;
    }
    for (size_t m = 0; m < width; ++m) {
      if (lacks(values[m]))
        values[m] = 0;
      else
        set->metric(group.metrics[m]).add(values[m]);
    }
    GroupSamples& kept = set->group(group.name);
    ++kept.n;
    kept.of_graphs += of_graph ? 1 : 0;
    if (kept.metrics.empty()) kept.metrics = group.metrics;
    if (kept.metrics == group.metrics)
      (of_graph ? kept.graph_clusters : kept.clusters)
          .add(samples.window(),
               placed ? samples.ordinal(static_cast<int>(i)) : ClusterList::kNoOrdinal,
               {values, width});
  }
}

}  // namespace flopinj::reduce
