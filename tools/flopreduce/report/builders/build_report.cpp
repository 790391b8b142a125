#include "report/build_report.h"

#include <algorithm>
#include <functional>

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
  return rank + header.hostname() + (header.hostname().empty() ? "pid " : " pid ") +
         std::to_string(header.pid());
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
        forward_matrix_(from.tables.paths.size()),
        range_of_(from.tables.paths.size(), kNoRange) {}

  Report build();

 private:
  void add_rows();
  void find_phase_parts();
  void add_by_formula();
  bool on_tensor_cores(const Flop& flop) const;
  bool is_product(uint32_t path) const;
  void add_homes(uint32_t path, const std::string& phase_name);
  struct Layers {
    uint32_t layer = kNoIndex, layer_or_range = kNoIndex;  // as in WorkHome
  };
  const Layers& layers_of(uint32_t home);
  void sort_names();
  void add_up();
  void add_signature(const Row& row);
  void describe_signature(const Row& row, SignatureReport& out);
  void add_machine_code(const MachineOperation& operation, u128 count);
  void add_phases();
  void add_ranges();
  void tell_apart(const std::vector<uint32_t>& path_of);
  void add_traces();
  void sort_kernels();
  void leave_out_empty_phases();
  KernelReport& kernel(uint32_t signature);
  PhaseReport& phase(const std::string& name);
  void add_unclear_matrix_work(const Work& forward);
  void add_gradients_outside(const Work& forward);

  const ReportSources& from_;
  const TraceTables& tables_;
  WorkTable& work_;
  Roofs roofs_;
  OperatorsBuilder operators_;
  Report report_;
  SignaturePlaces signature_places_;
  std::vector<u128> forward_matrix_;
  std::vector<uint32_t> range_of_;                     // path -> report_.ranges
  std::unordered_map<uint32_t, size_t> kernel_index_;  // NamePool -> report_.kernels
  // Of names, their places in report_.work.
  std::unordered_map<std::string, uint32_t> layers_, layers_or_ranges_, operator_names_;
  std::unordered_map<uint32_t, Layers> layers_of_home_;  // by path
  uint32_t last_signature_ = kNoIndex;
  uint32_t last_chip_ = kNoIndex;
};

// Forward may be larger by matrix work that numbers do not place. Where backward has none of it,
// what is known to be forward can be judged by itself.
void Builder::add_unclear_matrix_work(const Work& forward) {
  const Work& unclear = report_.part(PhasePart::kUnclear);
  RatioReport& ratio = report_.ratio;
  ratio.matrix_ratio = ratio.matrix_ratio.with(Mark::kAtMost);
  ratio.matrix_interval.reset();
  if (!ratio.expected) return;
  if (report_.operators.unclear_gradients) {
    ratio.expected.reset();
    ratio.expected_missing = "backward has gradients of work of other that may have run forward";
    ratio.leave_undecided(ratio.expected_missing);
    return;
  }
  if (ratio.verdict == RatioVerdict::kOutside) return;
  u128 all = forward.matrix_flop;
  add_saturating(all, unclear.matrix_flop);
  ratio.expected->least *= unclear.flop_complete() ? quotient(forward.matrix_flop, all) : 0;
  ratio.expected->basis += (ratio.expected->basis.empty() ? "" : "; ") +
                           std::string("least: where matrix work of other ran forward, too");
}

// Backward may be larger by products of other that no node computed.
void Builder::add_gradients_outside(const Work& forward) {
  const Work& outside = report_.part(PhasePart::kGradients);
  if (outside.launches == 0) return;
  RatioReport& ratio = report_.ratio;
  ratio.ratio = ratio.ratio.with(Mark::kAtLeast);
  ratio.matrix_ratio = ratio.matrix_ratio.with(Mark::kAtLeast);
  ratio.matrix_interval.reset();
  const double share = quotient(outside.matrix_flop, std::max<u128>(1, forward.matrix_flop));
  const std::string why =
      "products outside of autograd, as many as " +
      std::to_string(std::max(1, static_cast<int>(std::min(share, 1e6) * 100))) +
      " % of forward's matrix work, may be gradients";
  if (ratio.expected) {
    ratio.expected->basis += (ratio.expected->basis.empty() ? "" : "; ") + why;
    ratio.expected->lacks += (ratio.expected->lacks.empty() ? "" : "; ") + why;
  }
  ratio.leave_undecided(why);
}

PhaseReport& Builder::phase(const std::string& name) {
  for (auto& p : report_.phases)
    if (p.name == name) return p;
  report_.phases.push_back({name, {}});
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

uint32_t id_of(const std::string& name, std::unordered_map<std::string, uint32_t>& ids,
               std::vector<std::string>& names) {
  if (name.empty()) return kNoIndex;
  const auto [entry, fresh] = ids.try_emplace(name, static_cast<uint32_t>(names.size()));
  if (fresh) names.push_back(name);
  return entry->second;
}

// Formats that it used.
std::vector<FormatWork> formats_of(const Flop& flop) {
  std::vector<FormatWork> formats;
  for (size_t i = 0; i < flop.by_precision.size(); ++i)
    if (flop.by_precision[i] != 0)
      formats.push_back({static_cast<uint8_t>(i), flop.by_precision[i],
                         i < kInstructionPrecisions ? flop.doubtful[i] : 0});
  for (size_t i = 0; i < flop.integer.size(); ++i)
    if (flop.integer[i] != 0)
      formats.push_back({static_cast<uint8_t>(kMaxPrecisions + i), flop.integer[i], 0});
  return formats;
}

void Builder::add_rows() {
  report_.work.rows.reserve(from_.totals.rows.size());
  for (const Row& row : from_.totals.rows) {
    auto [work, flop] = work_.next(row);
    work.roof = roofs_.of(row, flop, work.launches);
    const Work in_whole = work_.in_whole(row, work);
    report_.flop.add(flop);
    KernelReport& k = kernel(row.signature);
    const Counts& counts = row.counts;
    add_saturating(k.launches, work.launches);
    add_saturating(k.untimed,
                   counts.launches - std::min(counts.launches, counts.timed + counts.windowed));
    const auto parameters = tables_.signatures[row.signature].parameter_class;
    if (parameters == ParameterClass::kMerged) add_saturating(k.merged_launches, work.launches);
    if (parameters == ParameterClass::kUnknown) add_saturating(k.opaque_launches, work.launches);
    if (from_.rules.leaves_unclear(row.rule)) {
      // What runs with such layers has no name that tells.
      const auto& within = from_.rules.rules()[row.rule].within;
      if (!within.empty() && from_.operators.name_decides(row.path)) phase(within).at_most = true;
    }
    PhaseReport& p = phase(from_.rules.rules()[row.rule].phase);
    add_signature(row);
    const bool tensor = on_tensor_cores(flop);
    operators_.add(
        row, work, tensor,
        work.unmeasured == 0 ? std::string() : reason_of(tables_, work_, row.signature, row.chip));
    if (from_.operators.any() && from_.operators.operator_of(row.path) == kNoIndex) {
      if (row.rule == from_.rules.default_rule()) report_.named.nameless.add(work);
      if (work.matrix_flop > 0 && !tensor)
        add_saturating(report_.named.perhaps_products_ns[p.name], work.time.ns);
    }
    add_homes(row.path, p.name);
    if (p.name == "forward") add_saturating(forward_matrix_[row.path], work.matrix_flop);
    report_.work.rows.push_back({.signature = static_cast<uint32_t>(report_.signatures.size() - 1),
                                 .kernel = static_cast<uint32_t>(&k - report_.kernels.data()),
                                 .chip = row.chip,
                                 .range = row.path,  // until ranges have their places: add_ranges()
                                 .rule = row.rule,
                                 .phase = static_cast<uint32_t>(&p - report_.phases.data()),
                                 .work = std::move(work),
                                 .varying_in_whole = in_whole.varying,
                                 .uncertainty_in_whole = in_whole.uncertainty,
                                 .formats = formats_of(flop)});
  }
}

// Which launches are in their phase on less evidence than others. Rows of the report are those of
// the totals until ranges have their places.
void Builder::find_phase_parts() {
  Work gradients_of_operators;
  for (size_t i = 0; i < report_.work.rows.size(); ++i) {
    const Row& of = from_.totals.rows[i];
    WorkRow& row = report_.work.rows[i];
    const auto mark = [&](PhasePart part) {
      row.parts = static_cast<uint8_t>(row.parts | 1 << static_cast<int>(part));
    };
    if (from_.rules.leaves_unclear(row.rule)) mark(PhasePart::kUnclear);
    if (report_.phases[row.phase].name == "optimizer" && is_product(of.path))
      mark(PhasePart::kProducts);
    if (!operators_.may_be_gradient(of, row.work)) continue;
    mark(PhasePart::kGradients);
    if (from_.operators.operator_of(of.path) != kNoIndex) gradients_of_operators.add(row.work);
  }
  if (report_.operators.has_forward)
    report_.operators.model += ModelFlop::without_formula(gradients_of_operators, true);
}

// Formulas are known when all rows are.
void Builder::add_by_formula() {
  for (size_t i = 0; i < report_.work.rows.size(); ++i) {
    Work& work = report_.work.rows[i].work;
    if (work.flop_complete()) continue;
    const ByFormula found = operators_.by_formula(from_.totals.rows[i], work.incomplete());
    if (found.launches > 0) work.by_formula = found;
  }
}

// What lists of the report have of the rows.
void Builder::add_up() {
  for (WorkGroup& all : group(report_, {})) report_.total = std::move(all.work);
  const auto add_to = [&](auto& list, const WorkKey& key) {
    for (WorkGroup& of : group(report_, {key})) list[of.ids[0]].work = std::move(of.work);
  };
  add_to(report_.signatures, by::kSignature);
  add_to(report_.phases, by::kPhase);
  add_to(report_.rules, by::kRule);
  for (WorkGroup& of : group(report_, {by::kPhasePart}))
    if (of.ids[0] != kNoIndex) report_.phase_parts[of.ids[0]] = std::move(of.work);
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
  return at != kNoIndex && is_matrix_work(from_.operators.name_of(at)->name);
}

void Builder::add_homes(uint32_t path, const std::string& phase_name) {
  operators_.join().for_each_home(path, phase_name, [&](uint32_t home, const Part& part) {
    const auto& [layer, layer_or_range] = layers_of(home);
    const std::string name = operators_.forward_backward().row_name(path, home, phase_name);
    report_.work.homes.push_back(
        {.row = static_cast<uint32_t>(report_.work.rows.size()),
         .layer = layer,
         .layer_or_range = has_layers(phase_name) ? layer_or_range : kNoIndex,
         .operator_name = id_of(name, operator_names_, report_.work.operators),
         .part = part});
  });
}

// Where no range gives the phase a path is in no layer: then it is just a range.
const Builder::Layers& Builder::layers_of(uint32_t home) {
  const auto [entry, fresh] = layers_of_home_.try_emplace(home);
  if (!fresh) return entry->second;
  const std::string name = from_.operators.layer_name(home);
  WorkRows& work = report_.work;
  entry->second.layer_or_range = id_of(name, layers_or_ranges_, work.layers_or_ranges);
  if (name != tables_.path_string(home)) entry->second.layer = id_of(name, layers_, work.layers);
  return entry->second;
}

void Builder::sort_names() {
  const auto sort = [&](std::vector<std::string>& names, uint32_t WorkHome::*name) {
    const std::vector<uint32_t> place = places_when_sorted(names, std::less<>());
    for (WorkHome& home : report_.work.homes)
      if (home.*name != kNoIndex) home.*name = place[home.*name];
  };
  sort(report_.work.layers, &WorkHome::layer);
  sort(report_.work.layers_or_ranges, &WorkHome::layer_or_range);
  sort(report_.work.operators, &WorkHome::operator_name);
}

// Where the figures come from. Rows are sorted by signature and chip.
void Builder::add_signature(const Row& row) {
  if (row.signature == last_signature_ && row.chip == last_chip_) return;
  if (row.signature != last_signature_) ++kernel(row.signature).signatures;
  last_signature_ = row.signature;
  last_chip_ = row.chip;
  signature_places_.emplace(signature_key(row.signature, row.chip),
                            static_cast<uint32_t>(report_.signatures.size()));
  describe_signature(row, report_.signatures.emplace_back());
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
    if (m.role == MetricRole::kMachine) {
      add_machine_code(machine_operations()[m.precision], counted);
      continue;
    }
    out.metrics.push_back({part, tables_.names[part.stat.metric], counted,
                           mul_div_round(counted, m.numerator, m.denominator, overflow),
                           m.role == MetricRole::kInteger
                               ? std::string(kIntegerFormats[m.precision])
                               : from_.formulas.precisions()[m.precision]});
  }
}

void Builder::add_machine_code(const MachineOperation& operation, u128 count) {
  auto& rows = report_.machine_code;
  auto row = std::ranges::find(rows, &operation, &MachineCodeReport::operation);
  if (row == rows.end()) row = rows.insert(rows.end(), {&operation, 0});
  add_saturating(row->count, count);
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
  std::vector<bool> used(tables_.paths.size());  // by launches in it, or further inside
  for (const WorkRow& row : report_.work.rows) used[row.range] = true;
  std::vector<std::vector<uint32_t>> children(tables_.paths.size());
  for (auto i = static_cast<uint32_t>(tables_.paths.size()); i-- > PathTable::kLost + 1;) {
    const uint32_t parent = tables_.paths[i].parent;
    if (used[i]) used[parent] = true;
    children[parent].push_back(i);  // in falling order, so a stack pops them in rising order
  }
  std::vector<uint32_t> stack = children[PathTable::kRoot];
  stack.insert(stack.begin(), PathTable::kLost);
  std::vector<uint32_t> path_of;  // of each of report_.ranges
  while (!stack.empty()) {
    const uint32_t path = stack.back();
    stack.pop_back();
    stack.insert(stack.end(), children[path].begin(), children[path].end());
    if (!used[path]) continue;
    range_of_[path] = static_cast<uint32_t>(report_.ranges.size());
    path_of.push_back(path);
    const std::string whole = tables_.path_string(path);
    report_.ranges.push_back({whole, path > PathTable::kLost ? tables_.range_label(path) : whole,
                              tables_.paths[path].depth, range_of_[tables_.paths[path].parent]});
    if (const uint32_t at = from_.operators.operator_of(path); at != kNoIndex)
      report_.ranges.back().ran = from_.operators.name_of(at)->name;
  }
  tell_apart(path_of);
  for (WorkRow& row : report_.work.rows) row.range = range_of_[row.range];
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
  for (uint32_t i = 0; i < tables_.devices.size(); ++i)
    if (tables_.samples_by_device.any_of(i)) has_samples[tables_.devices[i].trace] = true;
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
  from_.totals.device_rows.for_each([&](uint32_t signature, const DeviceRow& row) {
    const Device& device = tables_.devices[row.device];
    const Row launches{signature, device.chip, 0, 0, {.launches = row.launches}};
    auto [work, flop] = work_.next(launches);
    work.roof = roofs_.of(launches, flop, row.launches);
    report_.traces[device.trace].work.add(work);
  });
}

void Builder::sort_kernels() {
  std::vector<WorkGroup> groups = group(report_, {by::kKernel});
  std::ranges::stable_sort(groups, kMoreFlop);
  std::vector<uint32_t> place(groups.size());
  std::vector<KernelReport> sorted;
  for (const WorkGroup& of : groups) {
    place[of.ids[0]] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(std::move(report_.kernels[of.ids[0]]));
  }
  report_.kernels = std::move(sorted);
  for (WorkRow& row : report_.work.rows) row.kernel = place[row.kernel];
}

void Builder::leave_out_empty_phases() {
  std::vector<uint32_t> place;
  uint32_t next = 0;
  for (const PhaseReport& p : report_.phases) place.push_back(p.work.launches > 0 ? next++ : next);
  for (WorkRow& row : report_.work.rows) row.phase = place[row.phase];
  std::erase_if(report_.phases, [](const PhaseReport& p) { return p.work.launches == 0; });
}

Report Builder::build() {
  const bool headers = std::all_of(tables_.traces.begin(), tables_.traces.end(),
                                   [](const auto& t) { return t.has_header; });
  if (headers) report_.simulated = false;
  report_.fma = from_.formulas.fma();
  report_.chips = tables_.chips;
  report_.medians_left_out = from_.totals.medians_left_out;
  add_phases();
  add_rows();
  report_.operators = operators_.build(report_);
  find_phase_parts();
  add_by_formula();
  sort_names();
  report_.precisions = from_.formulas.precisions();
  add_up();
  add_ranges();
  add_traces();
  build_ledger(from_, work_, report_);
  for (const DeviceReport& device : report_.devices)
    if (device.ledger.launches > 0) ++report_.traces[device.trace].devices;
  const Work forward = phase("forward").work;
  const Work backward = phase("backward").work;
  report_.ratio = backward_forward(from_, forward, backward, report_.operators, forward_matrix_);
  const bool may_be_less = report_.operators.recompute_unclear();
  const Work& unclear = report_.part(PhasePart::kUnclear);
  if (may_be_less || unclear.flop > 0 || !unclear.flop_complete())
    report_.ratio.ratio = report_.ratio.ratio.with(Mark::kAtMost);
  if (unclear.matrix_flop > 0 || !unclear.flop_complete()) add_unclear_matrix_work(forward);
  if (may_be_less) report_.ratio.matrix_ratio = report_.ratio.matrix_ratio.with(Mark::kAtMost);
  add_gradients_outside(forward);
  std::ranges::stable_sort(report_.machine_code, std::greater<>(), &MachineCodeReport::flop);
  leave_out_empty_phases();
  find_named_part(tables_, from_.rules, from_.calls.steps, report_);
  // Without a name nothing has a formula. Where all of other counts, it is in there already.
  if (report_.named.launches_without > 0 && !report_.named.drawn)
    report_.operators.model += ModelFlop::without_formula(phase_work(report_, kUnnamedPhase), true);
  if (forward.launches > 0)
    report_.operators.model += ModelFlop::without_formula(report_.named.nameless, true);
  build_ranks(from_, work_, report_);
  report_.utilization.devices = roofs_.devices();
  report_.utilization.unused_overrides = roofs_.unused_overrides();
  report_.time = build_time_report(tables_, from_.totals);
  for (auto& device : report_.time.devices)
    for (auto& series : device.flop)
      series.at_least = device.unplaced > 0 || !phase_work(report_, series.phase).flop_complete();
  build_runs(report_);
  count_steps(tables_, from_.utilization, report_);
  add_numbers(tables_, range_of_, report_);
  add_copies(tables_, report_);
  build_utilization(from_.utilization, report_);
  sort_kernels();
  if (from_.facts) build_facts(from_, range_of_, signature_places_, work_, report_);
  build_slowdowns(from_, range_of_, report_);
  return std::move(report_);
}

}  // namespace

Report build_report(const ReportSources& from) { return Builder(from).build(); }

}  // namespace flopinj::reduce
