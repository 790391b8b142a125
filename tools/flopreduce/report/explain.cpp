#include "report/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "edit_distance.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// By FigureKind.
constexpr const char* kWords[] = {"total", "ratio",    "utilization", "precision", "phase",
                                  "layer", "operator", "kernel",      "range"};

// Layers, and what they are inside of.
std::set<std::string> layers_of(const Report& report) {
  std::set<std::string> layers;
  for (std::string layer : report.work.layers)
    for (; !layer.empty() && layers.insert(layer).second; layer.resize(layer.rfind('/')))
      if (layer.find('/') == std::string::npos) break;
  return layers;
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

// Operators that forward did not call. Their launches belong to those of forward, too.
std::set<std::string> only_in_backward(const Report& report) {
  std::set<std::string> operators;
  for (const RangeReport& range : report.ranges)
    if (!range.ran.empty()) operators.insert(range.ran);
  for (const std::string& of_forward : report.work.operators) operators.erase(of_forward);
  return operators;
}

// A layer is itself and what is below it.
bool below(const std::string& path, const std::string& layer) {
  return path.starts_with(layer) && (path.size() == layer.size() || path[layer.size()] == '/');
}

FormatWork flop_of(const WorkRow& row, size_t precision) {
  const auto found = std::ranges::find(row.formats, precision, &FormatWork::format);
  return found == row.formats.end() ? FormatWork{} : *found;
}

template <typename Visit>
void for_each_figure(const Report& report, Visit&& visit) {
  using Row = const WorkRow&;
  using Home = const WorkHome&;
  using enum FigureKind;
  const auto add = [&](FigureKind kind, const std::string& name, auto holds, std::string also = {},
                       std::optional<size_t> precision = {}) {
    visit(NamedFigure{kind, name, std::move(also), holds, precision});
  };
  const auto all = [](Row, Home) { return true; };
  add(kTotal, "total", all);
  add(kBackwardForward, "ratio", [&](Row row, Home) {
    const std::string& phase = report.phases[row.phase].name;
    return phase == "forward" || phase == "backward";
  });
  add(kShareOfPeak, "utilization", all);
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (report.flop.by_precision[i] > 0)  // what was not measured may have any precision
      add(
          kPrecision, report.precisions[i],
          [i](Row row, Home) { return row.work.unmeasured > 0 || flop_of(row, i).operations > 0; },
          {}, i);
  for (size_t i = 0; i < report.phases.size(); ++i)
    add(kPhase, report.phases[i].name, [i](Row row, Home) { return row.phase == i; });
  for (const auto& layer : layers_of(report))
    add(kLayer, layer, [&report, layer](Row, Home home) {
      return home.layer != kNoIndex && below(report.work.layers[home.layer], layer);
    });
  for (size_t i = 0; i < report.work.operators.size(); ++i)
    add(kOperator, report.work.operators[i],
        [i](Row, Home home) { return home.operator_name == i; });
  for (const std::string& name : only_in_backward(report))
    add(kOperator, name, [&report, name](Row row, Home) {
      return row.range != kNoRange && report.ranges[row.range].ran == name;
    });
  for (size_t i = 0; i < report.kernels.size(); ++i)
    add(
        kKernel, report.kernels[i].name, [i](Row row, Home) { return row.kernel == i; },
        report.kernels[i].mangled);
  const auto ends = ends_of(report.ranges);
  for (size_t i = 0; i < report.ranges.size(); ++i) {
    const auto holds = [i, end = ends[i]](Row row, Home) {
      return row.range >= i && row.range < end;
    };
    add(kRange, report.ranges[i].path, holds, report.ranges[i].name);
  }
}

bool is_of_homes(FigureKind kind) {
  return kind == FigureKind::kLayer || kind == FigureKind::kOperator;
}
// It has all launches of a signature, or none.
bool keeps_whole(FigureKind kind) {
  return kind == FigureKind::kTotal || kind == FigureKind::kShareOfPeak ||
         kind == FigureKind::kKernel;
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
    const WorkRows& all = report.work;
    std::vector<size_t> homes;
    for (size_t i = 0; i < all.homes.size(); ++i)
      if (figure.holds(all.rows[all.homes[i].row], all.homes[i])) homes.push_back(i);
    return !seen.emplace(figure.kind == FigureKind::kPrecision, std::move(homes)).second;
  });
  return std::move(figures);
}

// What a precision's figure has of a row.
void keep_only(WorkRow& row, size_t precision, Explanation& out) {
  const FormatWork of = flop_of(row, precision);
  if (row.work.varying > 0 && of.operations != row.work.flop)
    add_saturating(out.mixed_estimates, row.work.varying);
  row.work = of_format(std::move(row.work), row, of);
  row.varying_in_whole = row.work.varying;
  row.uncertainty_in_whole = row.work.uncertainty;
  std::erase_if(row.formats, [&](const FormatWork& f) { return f.format != precision; });
}
void keep_only(SignatureReport& signature, const std::string& precision) {
  std::erase_if(signature.metrics, [&](const auto& m) { return m.precision != precision; });
  const Work& work = signature.work;
  if (signature.flop_per_launch && work.launches > 0)
    signature.flop_per_launch = work.flop / work.launches;
  signature.flop_mean.reset();  // of all precisions
  signature.flop_spread.reset();
}

// Of a list that rows have places in, the elements that the part's rows have.
template <typename T>
void keep_used(Report& part, const WorkKey& key, std::vector<T> Report::*list, const Report& whole,
               uint32_t WorkRow::*place) {
  std::vector<uint32_t> places((whole.*list).size(), kNoIndex);
  for (WorkGroup& of : group(part, {key})) {
    places[of.ids[0]] = static_cast<uint32_t>((part.*list).size());
    (part.*list).push_back((whole.*list)[of.ids[0]]);
    if constexpr (requires(T one) { one.work; }) (part.*list).back().work = std::move(of.work);
  }
  for (WorkRow& row : part.work.rows) row.*place = places[row.*place];
}

// What the part's rows add up to.
void add_up(const Report& whole, Report& part) {
  for (WorkGroup& all : group(part, {})) {
    part.total = std::move(all.work);
    part.flop = all.flop;
  }
  keep_used(part, by::kKernel, &Report::kernels, whole, &WorkRow::kernel);
  keep_used(part, by::kSignature, &Report::signatures, whole, &WorkRow::signature);
  keep_used(part, by::kPhase, &Report::phases, whole, &WorkRow::phase);
  keep_used(part, by::kRule, &Report::rules, whole, &WorkRow::rule);
  std::map<std::string, uint64_t> reasons;
  for (const SignatureReport& signature : part.signatures)
    if (signature.work.unmeasured > 0)
      add_saturating(reasons[signature.unmeasured_reason], signature.work.unmeasured);
  for (const auto& [reason, launches] : reasons)
    part.ledger.unmeasured.push_back({reason, launches});
  std::ranges::stable_sort(part.ledger.unmeasured, std::greater<>(), &Reason::launches);
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
  part.chips = report.chips;
  part.work.chosen = true;
  if (figure.holds)
    part.work =
        is_of_homes(figure.kind)
            ? where_home(report.work, figure.holds)
            : where(
                  report.work, [&](const WorkRow& row) { return figure.holds(row, WorkHome{}); },
                  keeps_whole(figure.kind));
  if (figure.precision)
    for (WorkRow& row : part.work.rows) keep_only(row, *figure.precision, out);
  add_up(report, part);
  if (figure.precision)
    for (SignatureReport& signature : part.signatures) keep_only(signature, figure.name);
  const std::vector<WorkGroup> chips = group(part, {by::kChip});
  for (DevicePeaksReport device : report.utilization.devices) {
    device.launches = 0;
    for (const WorkGroup& of : chips)
      if (of.ids[0] == device.chip) device.launches = of.work.launches;
    if (device.launches > 0) part.utilization.devices.push_back(std::move(device));
  }
  return out;
}

}  // namespace flopinj::reduce
