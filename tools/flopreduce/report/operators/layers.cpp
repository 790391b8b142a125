#include <algorithm>

#include "analytic/operator_name.h"
#include "report/build_report.h"
#include "report/operators/forward_backward.h"

namespace flopinj::reduce {
namespace {

// The layers of a forward pass are the ranges directly below a range that says forward (the
// outermost one that does, and no operator), as far as they hold matrix work. Paths are in the
// order in which they were first entered.
void find_layers(const ReportSources& from, const std::vector<u128>& inclusive,
                 RatioReport& report) {
  const TraceTables& tables = from.tables;
  const PhaseMap& phases = from.phases;
  u128& first = report.first_layers_flop;
  u128& all = report.layered_flop;
  const auto is_forward = [&](uint32_t rule) {
    return rule != kNoIndex && from.rules.rules()[rule].phase == "forward";
  };
  std::vector<bool> seen_layer(tables.paths.size(), false);  // of a forward range
  for (uint32_t i = PathTable::kLost + 1; i < tables.paths.size(); ++i) {
    const uint32_t parent = tables.paths[i].parent;
    if (parent <= PathTable::kLost || inclusive[i] == 0) continue;
    const uint32_t grandparent = tables.paths[parent].parent;
    const bool layer =
        is_forward(phases.own_rule(parent)) &&
        !parse_operator_name(tables.names[tables.paths[parent].name]) &&
        (grandparent <= PathTable::kLost || !is_forward(phases.path_rule(grandparent)));
    if (!layer) continue;
    const bool is_first = !seen_layer[parent];
    seen_layer[parent] = true;
    if (is_first) {
      add_saturating(first, inclusive[i]);
      add_saturating(all, inclusive[parent]);  // forward ranges without layers say nothing
    }
    report.layers.push_back({tables.path_string(i), inclusive[i], is_first});
  }
  if (report.layers.empty() || all == 0) return;
  report.first_layer_share = quotient(first, all);
}

// Says of how much of forward the expectation is; returns the words.
std::string say_part(ExpectedRatio& expected, double share) {
  std::string part =
      "of " + std::to_string(static_cast<int>(share * 100)) + " % of forward's matrix work";
  expected.basis += (expected.basis.empty() ? "" : "; ") + part;
  return part;
}

// Nothing is known of the rest.
void lack_rest(ExpectedRatio& expected, double share) {
  const std::string part = say_part(expected, share);
  expected.lacks = "theory is " + part + (expected.lacks.empty() ? "" : "; ") + expected.lacks;
}

// Of all layers that have an expectation.
std::optional<ExpectedRatio> expected_of_layers(const Work& forward,
                                                const OperatorsReport& operators) {
  double least = 0, most = 0, matrix = 0, assumed = 0;
  ExpectedRatio expected;
  bool any = false;  // a layer of matrix work is named in backward too
  for (const ForwardBackward& layer : operators.layers) {
    any = any || (layer.forward.matrix_flop > 0 && layer.backward.launches > 0);
    if (!layer.expected) continue;
    const auto weight = static_cast<double>(layer.forward.matrix_flop);
    matrix += weight;
    if (layer.expected->assumed()) assumed += weight;
    least += weight * layer.expected->least;
    most += weight * layer.expected->most;
    if (!layer.expected->basis.empty() && expected.basis.size() < 256)
      expected.basis +=
          (expected.basis.empty() ? "" : "; ") + layer.name + ": " + layer.expected->basis;
  }
  if (!any || 2 * matrix < static_cast<double>(forward.matrix_flop)) return std::nullopt;
  expected.least = least / matrix;
  expected.most = most / matrix;
  expected.lacks = lacks_gradients(assumed / matrix);
  const double share = matrix / static_cast<double>(forward.matrix_flop);
  if (share < 1 - kRatioTolerance) lack_rest(expected, share);
  return expected;
}

// Where the trace names no layer or operator in backward.
std::optional<ExpectedRatio> expected_of_whole(const RatioReport& report) {
  if (!report.first_layer_share) return std::nullopt;
  return ExpectedRatio{2 - *report.first_layer_share, 2,
                       "first layer with or without input gradient, all layers trained: "
                       "no range of backward names a layer",
                       "backward names no layer"};
}

// All of the error of a side's FLOP may be of its matrix FLOP.
std::optional<Limits> matrix_limits(const Work& work) {
  const auto matrix = static_cast<double>(work.matrix_flop);
  if (work.varying == 0) return Limits{matrix, matrix};
  const auto interval = work.interval();
  if (!interval) return std::nullopt;
  const auto flop = static_cast<double>(work.flop);
  return Limits{std::max(0.0, matrix - (flop - static_cast<double>(interval->low))),
                matrix + (static_cast<double>(interval->high) - flop)};
}

void add_interval(const Work& forward, const Work& backward, RatioReport& report) {
  const auto below = matrix_limits(forward), above = matrix_limits(backward);
  if (has(report.matrix_ratio.marks(), Mark::kEstimate) && below && above && below->low > 0)
    report.matrix_interval = Limits{above->low / below->high, above->high / below->low};
}

// What is assumed decides nothing: a healthy run would raise an alarm, and a fault pass for right.
void judge(RatioReport& report) {
  const auto ratio = report.matrix_ratio.number();
  if (!ratio || (!report.expected && report.expected_missing.empty())) return;
  report.verdict = RatioVerdict::kInside;
  if (!report.expected) return report.leave_undecided(report.expected_missing);
  if (report.expected->assumed()) return report.leave_undecided(report.expected->lacks);
  if (has(report.matrix_ratio.marks(), Mark::kEstimate) && !report.matrix_interval)
    return report.leave_undecided("the estimates have no interval");
  const Limits found = report.matrix_interval.value_or(Limits{*ratio, *ratio});
  const double aside = kRatioTolerance + report.expected->beside;
  const double least = report.expected->least * (1 - aside);
  const double most = report.expected->most * (1 + aside);
  if (found.high < least || found.low > most)
    report.verdict = RatioVerdict::kOutside;
  else if (found.low < least || found.high > most)
    report.leave_undecided("the 95 % interval of the ratio reaches beyond it");
}

// Theory may be lacking of some products. What is known to be none is few, or leaves it open.
ExpectedRatio expected_of_products(const OperatorsReport& operators, u128 whole) {
  ExpectedRatio expected = *operators.products_expected;
  const double share = whole == 0 ? 1 : quotient(operators.products_matrix_flop, whole);
  const double beside = whole == 0 ? 0 : quotient(operators.beside_products, whole);
  const bool some = !operators.products_missing.empty() || beside > kMostBesideProducts;
  if (some || share + beside < 1 - kRatioTolerance) {
    lack_rest(expected, share);
  } else if (share < 1 - kRatioTolerance) {
    say_part(expected, share);
    expected.beside = beside;
  }
  return expected;
}

std::optional<ExpectedRatio> expected_of(const RatioReport& report, const Work& forward,
                                         const OperatorsReport& operators) {
  if (operators.products_expected &&
      2 * operators.products_matrix_flop >= std::max<u128>(1, forward.matrix_flop))
    return expected_of_products(operators, forward.matrix_flop);
  if (!operators.products_missing.empty()) return std::nullopt;
  if (auto expected = expected_of_layers(forward, operators)) return expected;
  return expected_of_whole(report);
}

}  // namespace

RatioReport backward_forward(const ReportSources& from, const Work& forward, const Work& backward,
                             const OperatorsReport& operators, std::vector<u128> forward_matrix) {
  RatioReport report;
  if (forward.flop > 0 && backward.launches > 0 && backward.flop_known()) {
    const Figure ratio = flop_of(backward) / flop_of(forward);
    const bool complete = forward.flop_complete() && backward.flop_complete();
    if (complete)
      report.ratio = ratio;
    else
      report.ratio_partial = ratio.number();
    // What may be no arithmetic is no matrix work.
    if (complete && forward.matrix_flop > 0)
      report.matrix_ratio = {quotient(backward.matrix_flop, forward.matrix_flop),
                             mark_if(has(ratio.marks(), Mark::kEstimate), Mark::kEstimate)};
    add_interval(forward, backward, report);
  }
  for (size_t i = forward_matrix.size();
       i-- > PathTable::kLost + 1;)  // children come after their parents
    add_saturating(forward_matrix[from.tables.paths[static_cast<uint32_t>(i)].parent],
                   forward_matrix[i]);
  find_layers(from, forward_matrix, report);
  if (operators.differentiated_again > 0)
    report.expected_missing = "gradients are differentiated again: theory is of one backward pass";
  else if (report.expected = expected_of(report, forward, operators); !report.expected)
    report.expected_missing = operators.products_missing;
  judge(report);
  return report;
}

}  // namespace flopinj::reduce
