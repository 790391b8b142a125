#include "report/build_report.h"

#include <algorithm>
#include <map>

#include "report/layers.h"
#include "report/ledger.h"
#include "report/work_table.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string shape_string(const Signature& s) {
  const auto dims = [](const std::array<uint32_t, 3>& d) {
    return std::to_string(d[0]) + "x" + std::to_string(d[1]) + "x" + std::to_string(d[2]);
  };
  std::string text = "grid " + dims(s.grid) + " block " + dims(s.block);
  if (s.cluster[0] != 0) text += " cluster " + dims(s.cluster);
  if (s.dynamic_shared_bytes != 0) text += " shared " + std::to_string(s.dynamic_shared_bytes);
  return text;
}

// Adds rows up by phase, rule, kernel and range.
class Builder {
 public:
  Builder(const Model& model, const Totals& totals, const PhaseRules& rules, const PhaseMap& phases,
          Formulas& formulas)
      : model_(model),
        totals_(totals),
        rules_(rules),
        phases_(phases),
        formulas_(formulas),
        work_(model, totals, formulas),
        exclusive_(model.paths.size()),
        forward_matrix_(model.paths.size()) {}

  Report build();

 private:
  void add_rows();
  void add_signatures();
  void add_phases();
  void add_ranges();
  void add_traces();
  KernelReport& kernel(uint32_t signature);
  PhaseReport& phase(const std::string& name);

  const Model& model_;
  const Totals& totals_;
  const PhaseRules& rules_;
  const PhaseMap& phases_;
  Formulas& formulas_;
  WorkTable work_;
  Report report_;
  std::vector<Work> exclusive_;
  std::vector<u128> forward_matrix_;
  std::unordered_map<uint32_t, size_t> kernel_index_;  // NamePool -> report_.kernels
};

PhaseReport& Builder::phase(const std::string& name) {
  for (auto& p : report_.phases)
    if (p.name == name) return p;
  report_.phases.push_back({name, {}, {}});
  return report_.phases.back();
}

KernelReport& Builder::kernel(uint32_t signature) {
  const bool undefined = signature == SignatureTable::kUndefined;
  const uint32_t name = undefined ? kNoIndex : model_.signatures[signature].name;
  const auto [entry, fresh] = kernel_index_.try_emplace(name, report_.kernels.size());
  if (fresh) {
    KernelReport& k = report_.kernels.emplace_back();
    k.mangled = undefined ? "" : cut(model_.names[name], 2048);
    k.name = undefined ? "(lost kernel)" : demangle(model_.names[name]);
    if (k.name.empty()) k.name = "(kernel without a name)";
  }
  return report_.kernels[entry->second];
}

void Builder::add_rows() {
  for (size_t i = 0; i < totals_.rows.size(); ++i) {
    const Row& row = totals_.rows[i];
    const auto [work, flop] = work_.next(i);
    report_.total.add(work);
    report_.flop.add(flop);
    KernelReport& k = kernel(row.signature);
    k.work.add(work);
    k.flop.add(flop);
    const auto parameters = model_.signatures[row.signature].parameter_class;
    if (parameters == ParameterClass::kMerged) add_saturating(k.merged_launches, work.launches);
    if (parameters == ParameterClass::kUnknown) add_saturating(k.opaque_launches, work.launches);
    report_.rules[row.rule].work.add(work);
    PhaseReport& p = phase(rules_.rules()[row.rule].phase);
    p.work.add(work);
    p.flop.add(flop);
    exclusive_[row.path].add(work);
    if (p.name == "forward") add_saturating(forward_matrix_[row.path], work.matrix_flop);
  }
}

// Per kernel: how many signatures, and those whose samples disagree.
void Builder::add_signatures() {
  uint32_t last_signature = kNoIndex;
  uint32_t last_chip = kNoIndex;
  for (const auto& row : totals_.rows) {  // sorted by signature and chip
    if (row.signature == last_signature && row.chip == last_chip) continue;
    KernelReport& k = kernel(row.signature);
    if (row.signature != last_signature) ++k.signatures;
    last_signature = row.signature;
    last_chip = row.chip;
    const SignatureResult& result = work_.result(row.signature, row.chip);
    if (!result.flop.varying && !result.flop.inexact) continue;
    for (const auto& part : result.flop.parts) {
      if (part.stat.fixed()) continue;
      k.varying.push_back({shape_string(model_.signatures[row.signature]),
                           model_.names[part.stat.metric], part.stat.n, result.counts.launches,
                           part.stat.mean, part.stat.spread(), part.stat.min, part.stat.max});
    }
  }
}

void Builder::add_phases() {
  for (const char* name : {"forward", "backward", "optimizer"}) phase(name);
  for (const auto& rule : rules_.rules())
    report_.rules.push_back({PhaseRules::describe(rule), rule.phase, {}});
}

void Builder::add_ranges() {
  std::vector<Work> inclusive = exclusive_;
  std::vector<std::vector<uint32_t>> children(model_.paths.size());
  for (auto i = static_cast<uint32_t>(model_.paths.size()); i-- > PathTable::kLost + 1;) {
    const uint32_t parent = model_.paths[i].parent;
    if (parent != PathTable::kRoot) inclusive[parent].add(inclusive[i]);
    children[parent].push_back(i);  // in falling order, so a stack pops them in rising order
  }
  std::vector<uint32_t> stack = children[PathTable::kRoot];
  stack.insert(stack.begin(), PathTable::kLost);
  stack.push_back(PathTable::kRoot);
  while (!stack.empty()) {
    const uint32_t path = stack.back();
    stack.pop_back();
    if (path != PathTable::kRoot)
      stack.insert(stack.end(), children[path].begin(), children[path].end());
    if (inclusive[path].launches == 0) continue;
    const std::string name = path > PathTable::kLost ? model_.names[model_.paths[path].name] : "";
    report_.ranges.push_back({path_string(model_, path),
                              path > PathTable::kLost ? cut(name, 256) : path_string(model_, path),
                              model_.paths[path].depth, inclusive[path], exclusive_[path]});
  }
}

void Builder::add_traces() {
  std::unordered_map<uint64_t, uint64_t> handed_out;
  for (const auto& state : model_.traces) {
    TraceReport& t = report_.traces.emplace_back();
    t.has_header = state.has_header;
    t.has_end = state.has_end;
    t.has_overhead = state.has_overhead;
    t.header = state.header;
    t.end = state.end;
    t.overhead = state.overhead;
    t.ledger = state.ledger;
    t.diagnostics = state.diagnostics;
    t.diagnostics_left_out = state.diagnostics_left_out;
    if (state.has_header && state.header.simulated()) report_.simulated = true;
  }
  for (const auto& row : totals_.device_rows) {
    const Device& device = model_.devices[row.device];
    TraceReport& t = report_.traces[device.trace];
    add_saturating(t.launches, row.launches);
    const SignatureResult& result = work_.result(row.signature, device.chip);
    if (result.flop.status != FlopStatus::kMeasured) {
      add_saturating(t.unmeasured, row.launches);
      continue;
    }
    uint64_t& from = handed_out[static_cast<uint64_t>(row.signature) << 32 | device.chip];
    const uint64_t count = std::min(row.launches, result.counts.launches - from);
    add_saturating(t.flop, result.flop.of(from, count, result.counts.launches).total);
    from += count;
  }
}

Report Builder::build() {
  const bool headers = std::all_of(model_.traces.begin(), model_.traces.end(),
                                   [](const auto& t) { return t.has_header; });
  if (headers) report_.simulated = false;
  report_.fma = formulas_.fma();
  add_phases();
  add_rows();
  phase("other");
  add_signatures();
  add_ranges();
  add_traces();
  build_ledger(model_, totals_, work_, report_);
  const Work forward = phase("forward").work;
  const Work backward = phase("backward").work;
  report_.ratio = backward_forward(model_, rules_, phases_, forward, backward, forward_matrix_);
  report_.precisions = formulas_.precisions();
  std::stable_sort(report_.kernels.begin(), report_.kernels.end(),
                   [](const auto& a, const auto& b) {
                     return a.work.flop != b.work.flop ? a.work.flop > b.work.flop
                                                       : a.work.launches > b.work.launches;
                   });
  return std::move(report_);
}

}  // namespace

Report build_report(const Model& model, const Totals& totals, const PhaseRules& rules,
                    const PhaseMap& phases, Formulas& formulas) {
  return Builder(model, totals, rules, phases, formulas).build();
}

}  // namespace flopinj::reduce
