#include "report/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "edit_distance.h"
#include "report/build_report.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// By FigureKind.
constexpr const char* kWords[] = {"total", "ratio",    "utilization", "precision", "phase",
                                  "layer", "operator", "kernel",      "range"};

// Layers, and what they are inside of.
std::set<std::string> layers_of(const Report& report) {
  std::set<std::string> layers;
  for (const auto& row : report.rows)
    for (std::string layer = row.layer; !layer.empty() && layers.insert(layer).second;
         layer.resize(layer.rfind('/')))
      if (layer.find('/') == std::string::npos) break;
  return layers;
}

std::set<std::string> operators_of(const Report& report) {
  std::set<std::string> operators;
  for (const auto& row : report.rows)
    if (!row.operator_name.empty()) operators.insert(row.operator_name);
  return operators;
}

// Of each range, in tree order, the first one that is not below it: by their places, since names
// may hold "/" themselves.
std::vector<size_t> ends_of(const std::vector<RangeReport>& ranges) {
  std::vector<size_t> ends(ranges.size());
  for (size_t i = ranges.size(); i-- > 0;)
    for (ends[i] = i + 1; ends[i] < ranges.size() && ranges[ends[i]].depth > ranges[i].depth;)
      ends[i] = ends[ends[i]];
  return ends;
}

// A layer is itself and what is below it.
bool below(const std::string& path, const std::string& layer) {
  return path.starts_with(layer) && (path.size() == layer.size() || path[layer.size()] == '/');
}

u128 flop_of(const RowReport& row, size_t precision) {
  for (const auto& [of, flop] : row.flop)
    if (of == precision) return flop;
  return 0;
}

template <typename Visit>
void for_each_figure(const Report& report, Visit&& visit) {
  using Row = const RowReport&;
  using enum FigureKind;
  const auto add = [&](FigureKind kind, const std::string& name, auto holds, std::string also = {},
                       std::optional<size_t> precision = {}) {
    visit(NamedFigure{kind, name, std::move(also), holds, precision});
  };
  const auto all = [](Row) { return true; };
  add(kTotal, "total", all);
  add(kBackwardForward, "ratio",
      [](Row row) { return row.phase == "forward" || row.phase == "backward"; });
  add(kShareOfPeak, "utilization", all);
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (report.flop.by_precision[i] > 0)  // what was not measured may have any precision
      add(
          kPrecision, report.precisions[i],
          [i](Row row) { return row.work.unmeasured > 0 || flop_of(row, i) > 0; }, {}, i);
  for (const auto& p : report.phases)
    add(kPhase, p.name, [&p](Row row) { return row.phase == p.name; });
  for (const auto& layer : layers_of(report))
    add(kLayer, layer, [layer](Row row) { return below(row.layer, layer); });
  for (const auto& name : operators_of(report))
    add(kOperator, name, [name](Row row) { return row.operator_name == name; });
  for (const auto& k : report.kernels) {
    const auto holds = [&](Row row) { return report.signatures[row.signature].kernel_id == k.id; };
    add(kKernel, k.name, holds, k.mangled);
  }
  const auto ends = ends_of(report.ranges);
  for (size_t i = 0; i < report.ranges.size(); ++i) {
    const auto holds = [i, end = ends[i]](Row row) { return row.range >= i && row.range < end; };
    add(kRange, report.ranges[i].path, holds, report.ranges[i].name);
  }
}

// Of launches that have another name too: only asked for in full.
bool is_quotient(const NamedFigure& figure) {
  return figure.kind == FigureKind::kBackwardForward || figure.kind == FigureKind::kShareOfPeak;
}

// Names are cut, since the work is their product.
size_t distance(std::string_view a, std::string_view b) {
  constexpr size_t kMost = 64;
  return edit_distance(a.substr(0, kMost), b.substr(0, kMost));
}

// Leaves one of figures that are of the same launches: a phase and its only range.
std::vector<NamedFigure> distinct(const Report& report, std::vector<NamedFigure>& figures) {
  constexpr size_t kMost = 8;  // more are no answer anyway
  if (figures.size() < 2 || figures.size() > kMost) return std::move(figures);
  std::set<std::pair<bool, std::vector<size_t>>>
      seen;  // a precision has a part of its launches' FLOP
  std::erase_if(figures, [&](const NamedFigure& figure) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < report.rows.size(); ++i)
      if (figure.holds(report.rows[i])) rows.push_back(i);
    return !seen.emplace(figure.kind == FigureKind::kPrecision, std::move(rows)).second;
  });
  return std::move(figures);
}

// What a precision's figure has of a row. Estimates of several precisions have one interval for
// them all: then there is none.
void keep_only(RowReport& row, size_t precision, Explanation& out) {
  Work& work = row.work;
  const u128 flop = flop_of(row, precision);
  if (work.varying > 0 && flop != work.flop) {
    add_saturating(out.mixed_estimates, work.varying);
    work.uncertainty = {};
    work.uncertainty.add_unknown(work.varying);
  }
  work.flop = flop;
  work.doubtful = precision < row.doubtful.size() ? row.doubtful[precision] : 0;
  work.left_out = 0;
  work.matrix_flop = std::min(work.matrix_flop, flop);
  work.roof = {};
  std::erase_if(row.flop, [&](const auto& of) { return of.first != precision; });
}
void keep_only(SignatureReport& signature, const std::string& precision) {
  std::erase_if(signature.metrics, [&](const auto& m) { return m.precision != precision; });
  const Work& work = signature.work;
  if (signature.flop_per_launch && work.launches > 0)
    signature.flop_per_launch = work.flop / work.launches;
  signature.flop_mean.reset();  // of all precisions
  signature.flop_spread.reset();
}

// What the part's rows add up to.
void add_up(const Report& whole, Report& part) {
  std::map<size_t, Work> signatures, rules;
  std::map<uint32_t, Work> kernels;  // by their ids
  std::map<std::pair<uint32_t, uint32_t>, StackReport> stacks;
  for (const RowReport& row : part.rows) {
    const uint32_t kernel = whole.signatures[row.signature].kernel_id;
    const auto [entry, fresh] = stacks.try_emplace({row.range, kernel});
    StackReport& stack = entry->second;
    if (fresh) stack = {row.range, 0, {}, row.phase};
    if (stack.phase != row.phase) stack.phase.clear();
    for (Work* sum :
         {&part.total, &signatures[row.signature], &rules[row.rule], &kernels[kernel], &stack.work})
      sum->add(row.work);
    for (const auto& [precision, flop] : row.flop)
      add_saturating(part.flop.by_precision[precision], flop);
  }
  for (const KernelReport& named : whole.kernels)
    if (const auto found = kernels.find(named.id); found != kernels.end()) {
      part.kernels.push_back(named);
      part.kernels.back().work = found->second;
    }
  std::ranges::stable_sort(part.kernels, kMoreFlop);
  std::map<uint32_t, uint32_t> places;
  for (uint32_t i = 0; i < part.kernels.size(); ++i) places[part.kernels[i].id] = i;
  for (auto& [key, stack] : stacks) {
    stack.kernel = places[key.second];
    part.stacks.push_back(std::move(stack));
  }
  for (const auto& [rule, work] : rules)
    part.rules.push_back({whole.rules[rule].rule, whole.rules[rule].phase, work});
  std::map<std::string, uint64_t> reasons;
  for (const auto& [signature, work] : signatures) {
    part.signatures.push_back(whole.signatures[signature]);
    part.signatures.back().work = work;
    if (work.unmeasured > 0)
      add_saturating(reasons[part.signatures.back().unmeasured_reason], work.unmeasured);
  }
  for (const auto& [reason, launches] : reasons)
    part.ledger.unmeasured.push_back({reason, launches});
  std::ranges::stable_sort(part.ledger.unmeasured, std::greater<>(), &Reason::launches);
  std::ranges::stable_sort(part.stacks, kMoreFlop);
  std::ranges::stable_sort(part.rules, kMoreFlop);
  std::ranges::stable_sort(part.signatures, kMoreFlop);
}

}  // namespace

std::string asked_by(const NamedFigure& figure, const std::vector<NamedFigure>& others) {
  const auto alike = std::ranges::count_if(others, [&](const NamedFigure& other) {
    return other.kind == figure.kind && other.name == figure.name;
  });
  const bool by_other = figure.kind == FigureKind::kKernel && alike > 1 && !figure.also.empty();
  return std::string(word(figure.kind)) + ":" + (by_other ? figure.also : figure.name);
}

const char* word(FigureKind kind) { return kWords[static_cast<size_t>(kind)]; }

std::optional<FigureKind> figure_kind(std::string_view word) {
  const auto* const found = std::find(std::begin(kWords), std::end(kWords), word);
  if (found == std::end(kWords)) return std::nullopt;
  return static_cast<FigureKind>(found - std::begin(kWords));
}

std::vector<NamedFigure> figures_named(const Report& report, std::string_view name,
                                       std::optional<FigureKind> wanted) {
  std::vector<NamedFigure> named, also_named, alike;
  for_each_figure(report, [&](const NamedFigure& figure) {
    if (wanted && *wanted != figure.kind) return;
    if (figure.name == name)
      named.push_back(figure);
    else if (!figure.also.empty() && figure.also == name)
      also_named.push_back(figure);
    else if (!is_quotient(figure) && lower(figure.name).find(lower(name)) != std::string::npos)
      alike.push_back(figure);
  });
  return distinct(report, !named.empty() ? named : !also_named.empty() ? also_named : alike);
}

std::vector<NamedFigure> figures_near(const Report& report, std::string_view name) {
  constexpr size_t kShown = 3;
  constexpr size_t kMostLooked = 1U << 16;
  std::multimap<size_t, NamedFigure> near;
  size_t looked = 0;
  const std::string wanted = lower(name);
  for_each_figure(report, [&](const NamedFigure& figure) {
    if (++looked > kMostLooked) return;
    size_t edits = distance(lower(figure.name), wanted);
    if (!figure.also.empty()) edits = std::min(edits, distance(lower(figure.also), wanted));
    near.emplace(edits, figure);
    if (near.size() > kShown) near.erase(std::prev(near.end()));
  });
  std::vector<NamedFigure> out;
  for (auto& [edits, figure] : near) out.push_back(std::move(figure));
  return out;
}

Explanation explain(const Report& report, const NamedFigure& asked) {
  NamedFigure figure = asked;
  if (!figure.holds)
    for_each_figure(report, [&](const NamedFigure& known) {
      if (known.kind == asked.kind && known.name == asked.name) figure = known;
    });
  Explanation out{figure.kind, figure.name, {}, 0};
  Report& part = out.part;
  part.fma = report.fma;
  part.precisions = report.precisions;
  part.ranges = report.ranges;
  for (const RowReport& row : report.rows) {
    if (!figure.holds || !figure.holds(row)) continue;
    part.rows.push_back(row);
    if (figure.precision) keep_only(part.rows.back(), *figure.precision, out);
  }
  add_up(report, part);
  if (figure.precision)
    for (SignatureReport& signature : part.signatures) keep_only(signature, figure.name);
  for (DevicePeaksReport device : report.utilization.devices) {
    device.launches = 0;
    for (const RowReport& row : part.rows)
      if (row.chip == device.chip) add_saturating(device.launches, row.work.launches);
    if (device.launches > 0) part.utilization.devices.push_back(std::move(device));
  }
  return out;
}

}  // namespace flopinj::reduce
