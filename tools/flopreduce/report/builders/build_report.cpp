#include "report/build_report.h"

#include <algorithm>

#include "analytic/operator_flop.h"
#include "report/named_part.h"
#include "report/operators/operators.h"
#include "report/roofs.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Two processes may have one name: two containers may have the same host name and process ids.
std::string process_name(const TraceState& trace) {
  if (!trace.has_header) return "header lost";
  const auto& header = trace.header;
  const std::string rank = trace.rank() ? "rank " + std::to_string(*trace.rank()) + ", " : "";
  return rank + header.hostname() + " pid " + std::to_string(header.pid());
}

// Adds rows up by phase, rule, kernel and range.
class Builder {
 public:
  explicit Builder(const ReportSources& from)
      : from_(from),
        tables_(from.tables),
        work_(from.work),
        roofs_(from.tables, from.totals, from.formulas, from.utilization.peaks),
        operators_(from),
        exclusive_(from.tables.paths.size()),
        forward_matrix_(from.tables.paths.size()),
        range_of_(from.tables.paths.size(), kNoRange) {}

  Report build();

 private:
  void add_rows();
  bool on_tensor_cores(const Flop& flop) const;
  bool is_product(uint32_t path) const;
  void keep_row(const Row& row, const Work& work, const Flop& flop, const std::string& phase_name);
  std::string layer_of(uint32_t home) const;
  void add_signature(const Row& row, const Work& work);
  void describe_signature(const Row& row, SignatureReport& out);
  void add_phases();
  void add_ranges();
  void tell_apart(const std::vector<uint32_t>& path_of);
  void add_traces();
  void add_to_stack(uint64_t key, const Row& row, const Work& work);
  void add_stacks();
  KernelReport& kernel(uint32_t signature);
  PhaseReport& phase(const std::string& name);
  void add_unclear_matrix_work(const Work& forward);

  const ReportSources& from_;
  const TraceTables& tables_;
  WorkTable& work_;
  Roofs roofs_;
  OperatorsBuilder operators_;
  Report report_;
  FactPlaces places_;
  std::vector<Work> exclusive_;
  std::unordered_map<uint64_t, StackReport> stacks_;  // by (range path, report_.kernels)
  std::vector<u128> forward_matrix_;
  std::vector<uint32_t> range_of_;                     // path -> report_.ranges
  std::unordered_map<uint32_t, size_t> kernel_index_;  // NamePool -> report_.kernels
  uint32_t last_signature_ = kNoIndex;
  uint32_t last_chip_ = kNoIndex;
};

// Forward may be larger by matrix work that numbers do not place. Where backward has none of it,
// what is known to be forward can be judged by itself.
void Builder::add_unclear_matrix_work(const Work& forward) {
  const Work& unclear = report_.unclear;
  RatioReport& ratio = report_.ratio;
  ratio.matrix_ratio = ratio.matrix_ratio.with(Mark::kAtMost);
  ratio.matrix_interval.reset();
  if (!ratio.expected) return;
  if (report_.operators.unclear_gradients) {
    ratio.expected.reset();
    ratio.expected_missing = "backward has gradients of work of other that may have run forward";
    ratio.verdict = RatioVerdict::kNone;
    return;
  }
  if (ratio.verdict == RatioVerdict::kOutside) return;
  u128 all = forward.matrix_flop;
  add_saturating(all, unclear.matrix_flop);
  ratio.expected->least *= unclear.flop_complete() ? quotient(forward.matrix_flop, all) : 0;
  ratio.expected->basis += (ratio.expected->basis.empty() ? "" : "; ") +
                           std::string("least: where matrix work of other ran forward, too");
}

PhaseReport& Builder::phase(const std::string& name) {
  for (auto& p : report_.phases)
    if (p.name == name) return p;
  report_.phases.push_back({name, {}, {}});
  return report_.phases.back();
}

KernelReport& Builder::kernel(uint32_t signature) {
  const bool undefined = signature == SignatureTable::kUndefined;
  const uint32_t name = undefined ? kNoIndex : tables_.signatures[signature].name;
  const auto [entry, fresh] = kernel_index_.try_emplace(name, report_.kernels.size());
  if (fresh) {
    KernelReport& k = report_.kernels.emplace_back();
    k.mangled = undefined ? "" : tables_.names[name];
    k.id = name;
    k.name = undefined ? "(lost kernel)" : demangle(tables_.names[name]);
    if (k.name.empty()) k.name = "(kernel without a name)";
    const auto times = from_.totals.launch_times.find(name);
    if (times != from_.totals.launch_times.end()) k.times = times->second;
  }
  return report_.kernels[entry->second];
}

void Builder::add_rows() {
  for (size_t i = 0; i < from_.totals.rows.size(); ++i) {
    const Row& row = from_.totals.rows[i];
    auto [work, flop] = work_.next(row);
    work.roof = roofs_.of(row, flop, work.launches);
    const Work in_whole = work_.in_whole(row, work);
    report_.total.add(in_whole);
    report_.flop.add(flop);
    if (in_whole.varying > 0) report_.estimated_flop.add(flop);
    KernelReport& k = kernel(row.signature);
    const auto kernel_index = static_cast<uint64_t>(&k - report_.kernels.data());
    add_to_stack(static_cast<uint64_t>(row.path) << 32 | kernel_index, row, work);
    k.work.add(in_whole);
    k.flop.add(flop);
    const auto parameters = tables_.signatures[row.signature].parameter_class;
    if (parameters == ParameterClass::kMerged) add_saturating(k.merged_launches, work.launches);
    if (parameters == ParameterClass::kUnknown) add_saturating(k.opaque_launches, work.launches);
    report_.rules[row.rule].work.add(work);
    if (from_.rules.leaves_unclear(row.rule)) {
      report_.unclear.add(work);
      // What runs with such layers has no name that tells.
      const auto& within = from_.rules.rules()[row.rule].within;
      if (!within.empty() && from_.operators.name_decides(row.path)) phase(within).at_most = true;
    }
    PhaseReport& p = phase(from_.rules.rules()[row.rule].phase);
    p.work.add(work);
    p.flop.add(flop);
    if (p.name == "optimizer" && is_product(row.path)) report_.optimizer_products.add(work);
    add_signature(row, in_whole);
    operators_.add(
        row, work, on_tensor_cores(flop),
        work.unmeasured == 0 ? std::string() : reason_of(tables_, work_, row.signature, row.chip));
    if (row.rule == from_.rules.default_rule() && from_.operators.any() &&
        from_.operators.operator_of(row.path) == kNoIndex)
      report_.named.nameless.add(work);
    if (from_.keep_rows) keep_row(row, work, flop, p.name);
    places_.add_path(row, report_, [&](auto&& add_layer) {
      operators_.join().for_each_home(
          row.path, p.name, [&](uint32_t home, const Part&) { add_layer(layer_of(home)); });
    });
    exclusive_[row.path].add(work);
    if (p.name == "forward") add_saturating(forward_matrix_[row.path], work.matrix_flop);
  }
}

bool Builder::on_tensor_cores(const Flop& flop) const {
  const auto& precisions = from_.formulas.precisions();
  for (size_t i = 0; i < precisions.size(); ++i)
    if (flop.by_precision[i] > 0 && precisions[i].starts_with("tensor_")) return true;
  return false;
}

// Whether the operator that a launch belongs to multiplies matrices.
bool Builder::is_product(uint32_t path) const {
  const uint32_t at = from_.operators.operator_of(path);
  return at != kNoIndex && operator_gradients(*from_.operators.name_of(at));
}

// What explanations are made of.
void Builder::keep_row(const Row& row, const Work& work, const Flop& flop,
                       const std::string& phase_name) {
  operators_.join().for_each_home(row.path, phase_name, [&](uint32_t home, const Part& part) {
    RowReport& kept = report_.rows.emplace_back();
    kept.signature = report_.signatures.size() - 1;
    kept.chip = row.chip;
    kept.rule = row.rule;
    kept.range = row.path;  // until ranges have their places: add_ranges()
    kept.phase = phase_name;
    kept.layer = layer_of(home);
    kept.operator_name = operators_.forward_backward().row_name(row.path, home, phase_name);
    kept.work = part.of(work);
    for (size_t i = 0; i < flop.by_precision.size(); ++i)
      if (const u128 share = part.of(flop.by_precision[i]); share != 0)
        kept.flop.emplace_back(i, share);
    for (size_t i = 0; i < flop.doubtful.size(); ++i) kept.doubtful[i] = part.of(flop.doubtful[i]);
  });
}

// Empty where a path is in none, and where no range gives the phase: then it is just a range.
std::string Builder::layer_of(uint32_t home) const {
  std::string layer = from_.operators.layer_name(home);
  if (layer == tables_.path_string(home)) layer.clear();
  return layer;
}

// Where the figures come from. Rows are sorted by signature and chip.
void Builder::add_signature(const Row& row, const Work& work) {
  const bool fresh = row.signature != last_signature_ || row.chip != last_chip_;
  if (fresh) {
    if (row.signature != last_signature_) ++kernel(row.signature).signatures;
    last_signature_ = row.signature;
    last_chip_ = row.chip;
    places_.signatures.emplace(FactPlaces::key(row.signature, row.chip),
                               static_cast<uint32_t>(report_.signatures.size()));
    describe_signature(row, report_.signatures.emplace_back());
  }
  report_.signatures.back().work.add(work);
}

void Builder::describe_signature(const Row& row, SignatureReport& out) {
  const SignatureFlop& flop = work_.result(row.signature, row.chip).flop;
  static_cast<Signature&>(out) = tables_.signatures[row.signature];
  out.kernel = kernel(row.signature).name;
  out.kernel_id = kernel(row.signature).id;
  out.chip = tables_.chips[row.chip];
  out.unmeasured_reason = reason_of(tables_, work_, row.signature, row.chip);
  out.varying = flop.varying || flop.inexact;
  out.rounded = flop.inexact && !flop.varying;
  if (flop.status == FlopStatus::kMeasured && !flop.unscreened && !out.varying)
    out.flop_per_launch = flop.of(0, 1, 1).total;
  const SignatureResult& result = work_.result(row.signature, row.chip);
  if (out.varying && result.counts.launches > 0) {
    const u128 whole = flop.of(0, result.counts.launches, result.counts.launches).total;
    out.flop_mean = static_cast<double>(whole) / static_cast<double>(result.counts.launches);
    out.flop_spread = result.spread;
  }
  out.windows = result.windows;
  const SampleSet* samples = tables_.samples_by_chip.find(row.signature, row.chip);
  const auto& required = tables_.required[row.chip].always;
  for (size_t i = 0; samples != nullptr && i < required.size(); ++i) {
    const uint64_t n = samples->group_samples(required[i]);
    if (i == 0 || n < out.samples) out.graph_samples = samples->graph_samples(required[i]);
    out.samples = i == 0 ? n : std::min(out.samples, n);
  }
  for (const auto& part : flop.parts) {
    const MetricMeaning& m = part.meaning;
    bool overflow = false;
    const u128 counted = part.counted(result.counts.launches, overflow);
    out.metrics.push_back({part, tables_.names[part.stat.metric], counted,
                           mul_div_round(counted, m.numerator, m.denominator, overflow),
                           m.role == MetricRole::kInteger
                               ? std::string(kIntegerFormats[m.precision])
                               : from_.formulas.precisions()[m.precision]});
  }
}

// The usual phases come first; those without launches are left out in the end.
void Builder::add_phases() {
  for (const char* name :
       {"forward", "loss", "recompute", "backward", "optimizer", "communication"})
    phase(name);
  for (const auto& rule : from_.rules.rules())
    report_.rules.push_back({PhaseRules::describe(rule), rule.phase, {}});
}

void Builder::add_ranges() {
  std::vector<Work> inclusive = exclusive_;
  std::vector<std::vector<uint32_t>> children(tables_.paths.size());
  for (auto i = static_cast<uint32_t>(tables_.paths.size()); i-- > PathTable::kLost + 1;) {
    const uint32_t parent = tables_.paths[i].parent;
    if (parent != PathTable::kRoot) inclusive[parent].add(inclusive[i]);
    children[parent].push_back(i);  // in falling order, so a stack pops them in rising order
  }
  std::vector<uint32_t> stack = children[PathTable::kRoot];
  stack.insert(stack.begin(), PathTable::kLost);
  std::vector<uint32_t> path_of;  // of each of report_.ranges
  while (!stack.empty()) {
    const uint32_t path = stack.back();
    stack.pop_back();
    stack.insert(stack.end(), children[path].begin(), children[path].end());
    if (inclusive[path].launches == 0) continue;
    range_of_[path] = static_cast<uint32_t>(report_.ranges.size());
    path_of.push_back(path);
    const std::string whole = tables_.path_string(path);
    report_.ranges.push_back({whole, path > PathTable::kLost ? tables_.range_label(path) : whole,
                              tables_.paths[path].depth, inclusive[path], exclusive_[path]});
  }
  report_.outside_ranges = exclusive_[PathTable::kRoot];
  tell_apart(path_of);
  for (RowReport& row : report_.rows) row.range = range_of_[row.range];
}

// Names may hold "/": then the paths of two ranges can be one text. Those, and what is inside of
// them, get their names' slashes escaped.
void Builder::tell_apart(const std::vector<uint32_t>& path_of) {
  std::unordered_map<std::string_view, size_t> seen;
  for (const RangeReport& range : report_.ranges) ++seen[range.path];
  std::vector<std::pair<size_t, std::string>> changed;
  uint32_t inside = kNoIndex;  // the depth of such a range
  for (size_t i = 0; i < report_.ranges.size(); ++i) {
    const RangeReport& range = report_.ranges[i];
    if (range.depth <= inside) inside = seen[range.path] > 1 ? range.depth : kNoIndex;
    if (inside != kNoIndex) changed.emplace_back(i, tables_.path_string(path_of[i], true));
  }
  for (auto& [i, path] : changed) report_.ranges[i].path = std::move(path);
}

void Builder::add_traces() {
  std::vector<bool> has_samples(tables_.traces.size());
  tables_.samples_by_device.for_each([&](uint32_t, uint32_t device, const SampleSet&) {
    has_samples[tables_.devices[device].trace] = true;
  });
  std::unordered_map<std::string, size_t> names;
  report_.traces.reserve(tables_.traces.size());
  for (const auto& state : tables_.traces) {
    TraceReport& t = report_.traces.emplace_back();
    t.name = process_name(state);
    if (const size_t same = ++names[t.name]; same > 1) t.name += " (" + std::to_string(same) + ")";
    static_cast<Recorded&>(t) = state;
    t.counters = counter_reading(t, has_samples[report_.traces.size() - 1]);
    if (!state.has_header) continue;
    if (state.header.simulated()) report_.simulated = true;
    report_.ptx_counts = report_.ptx_counts || state.header.ptx_counts();
  }
  report_.simulated_clock =
      report_.simulated.value_or(false) && std::ranges::all_of(tables_.traces, [](const auto& t) {
        return !t.has_header || t.header.simulated_clock();
      });
  work_.start_over();
  for (const auto& row : from_.totals.device_rows) {
    const Device& device = tables_.devices[row.device];
    const Row launches{row.signature, device.chip, 0, 0, {.launches = row.launches}};
    auto [work, flop] = work_.next(launches);
    work.roof = roofs_.of(launches, flop, row.launches);
    report_.traces[device.trace].work.add(work);
  }
}

void Builder::add_to_stack(uint64_t key, const Row& row, const Work& work) {
  const std::string& phase_name = from_.rules.rules()[row.rule].phase;
  const auto [entry, fresh] = stacks_.try_emplace(key);
  StackReport& stack = entry->second;
  if (fresh) stack.phase = phase_name;
  if (stack.phase != phase_name) stack.phase.clear();
  stack.work.add(work);
}

// When kernels and ranges have their places in the report.
void Builder::add_stacks() {
  const std::vector<uint32_t> place = places_when_sorted(report_.kernels, kMoreFlop);
  for (auto& [key, stack] : stacks_) {
    stack.range = range_of_[key >> 32];
    stack.kernel = place[key & 0xFFFFFFFFU];
    report_.stacks.push_back(std::move(stack));
  }
  std::ranges::sort(report_.stacks, {}, [](const auto& s) { return std::pair(s.range, s.kernel); });
}

Report Builder::build() {
  const bool headers = std::all_of(tables_.traces.begin(), tables_.traces.end(),
                                   [](const auto& t) { return t.has_header; });
  if (headers) report_.simulated = false;
  report_.fma = from_.formulas.fma();
  report_.medians_left_out = from_.totals.medians_left_out;
  add_phases();
  add_rows();
  report_.operators = operators_.build();
  add_ranges();
  add_traces();
  build_ledger(from_, work_, report_);
  for (const DeviceReport& device : report_.devices)
    if (device.ledger.launches > 0) ++report_.traces[device.trace].devices;
  const Work forward = phase("forward").work;
  const Work backward = phase("backward").work;
  report_.ratio = backward_forward(from_, forward, backward, report_.operators, forward_matrix_);
  const bool may_be_less = report_.operators.recompute_unclear();
  if (may_be_less || report_.unclear.flop > 0 || !report_.unclear.flop_complete())
    report_.ratio.ratio = report_.ratio.ratio.with(Mark::kAtMost);
  if (report_.unclear.matrix_flop > 0 || !report_.unclear.flop_complete())
    add_unclear_matrix_work(forward);
  if (may_be_less) report_.ratio.matrix_ratio = report_.ratio.matrix_ratio.with(Mark::kAtMost);
  std::erase_if(report_.phases, [](const PhaseReport& p) { return p.work.launches == 0; });
  find_named_part(tables_, from_.rules, report_);
  // Without a name nothing has a formula. Where all of other counts, it is in there already.
  if (report_.named.launches_without > 0 && !report_.named.drawn)
    report_.operators.model += ModelFlop::without_formula(phase_work(report_, kUnnamedPhase), true);
  if (forward.launches > 0)
    report_.operators.model += ModelFlop::without_formula(report_.named.nameless, true);
  build_ranks(from_, work_, report_);
  report_.precisions = from_.formulas.precisions();
  report_.utilization.devices = roofs_.devices();
  report_.utilization.unused_overrides = roofs_.unused_overrides();
  for (auto& k : report_.kernels) k.slowest_precision = roofs_.slowest_precision(k.flop);
  report_.time = build_time_report(tables_, from_.totals);
  for (auto& device : report_.time.devices)
    for (auto& series : device.flop)
      series.at_least = device.unplaced > 0 || !phase_work(report_, series.phase).flop_complete();
  build_runs(report_);
  count_steps(tables_, from_.utilization, report_);
  add_numbers(tables_, range_of_, report_);
  add_copies(tables_, report_);
  build_utilization(from_.utilization, report_);
  add_stacks();
  places_.sort_paths(range_of_, report_);
  build_facts(from_, places_, work_, report_);
  return std::move(report_);
}

}  // namespace

Report build_report(const ReportSources& from) { return Builder(from).build(); }

}  // namespace flopinj::reduce
