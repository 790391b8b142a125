// Operators by function: executed, formula, ratio and why; and where backward found its forward.
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// Of FLOP by formula, which hold gradients of which nothing is known, or lack places.
Figure by_formula(const std::optional<u128>& flop, const OperatorReport& o) {
  if (!flop) return {};
  if (o.formula_partial && o.formula_at_most) return {*flop, Mark::kEstimate};
  return {*flop, mark_if(!o.calls_counted, Mark::kEstimate) |
                     mark_if(o.formula_at_most, Mark::kAtMost) |
                     mark_if(o.formula_partial, Mark::kAtLeast)};
}

Figure counted_calls(u128 number, const OperatorReport& o) {
  return {number, mark_if(!o.calls_counted, Mark::kEstimate)};
}

// Of the columns of both tables, those that come after the name and the place.
void add_executed(Columns<OperatorReport>& c) {
  const auto work = &OperatorReport::work;
  c.figure(
       "calls", "calls", Kind::kCount,
       [](const OperatorReport& o) { return counted_calls(o.calls, o); }, "calls of the operator")
      .detail();
  add_launches(c, work);
  c.figure(said::headed(said::kFlop, "executed"), [](const auto& o) {
     return flop_of(o.work);
   }).main();
  c.figure(
      "formula_flop", "formula", Kind::kFlop,
      [](const OperatorReport& o) { return by_formula(o.formula_flop, o); },
      "FLOP of all calls by the operator's formula, from the sizes of its arguments, without what "
      "is computed again, as fused attention's backward does with the scores; null where there is "
      "no formula, or sizes are missing");
  c.figure(
       "executed_formula_ratio", "ratio", Kind::kRatio,
       [](const OperatorReport& o) { return Figure::exact(o.ratio); },
       "executed FLOP / FLOP by formula; above 1: padding of tiles, another algorithm")
      .main();
  add_gpu_time(c, work);
  c.text("cause", "cause", &OperatorReport::cause,
         "why executed and formula differ, as far as the trace shows; empty where they do not");
}

void add_formula_details(Columns<OperatorReport>& c) {
  c.for_programs();
  c.flag("calls_counted", "counted", &OperatorReport::calls_counted,
         "calls are recorded, or by sequence numbers; else the launches of the kernel that does "
         "most are taken for calls");
  c.flag(
      "formula_partial", "partial",
      [](const OperatorReport& o) { return o.formula_flop && o.formula_partial; },
      "some places of the function have no formula: formula_flop is of the others; or numbers are "
      "complex, and the formula counts real ones");
  c.flag(
      "formula_at_most", "at most",
      [](const OperatorReport& o) { return o.formula_flop && o.formula_at_most; },
      "formula_flop is of both gradients of some calls, and nothing shows which were computed");
  c.figure(
      "model_flop", "model", Kind::kFlop,
      [](const OperatorReport& o) {
        return o.model.flop().with(by_formula(o.formula_flop, o).marks());
      },
      "of formula_flop, the FLOP that count for MFU: without gradients that were not computed and "
      "without what a mask leaves out, and no more than was executed where nothing explains less; "
      "of fused attention without a formula, what counts of its products as they were executed");
  c.figure(
      "formula_uncounted", "uncounted", Kind::kOperations,
      [](const OperatorReport& o) { return counted_calls(o.formula_uncounted, o); },
      "comparisons, exponentials and the like, which no FLOP counter counts and formula_flop "
      "leaves out");
  c.text(
      "formula_given", "given",
      [](const OperatorReport& o) {
        return o.given.empty() ? std::nullopt : std::optional(o.given);
      },
      "where a formula of your own is from: FILE:LINE of --formulas, or the program; null: it is "
      "flopinj's");
  add_work_details(c, &OperatorReport::work);
}

constexpr const char* kEvidenceOf = "what in the trace the cause is taken from";

Columns<OperatorReport> operator_columns() {
  Columns<OperatorReport> c;
  c.text("operator", "operator", &OperatorReport::name);
  c.text("phase", "phase", &OperatorReport::phase).main();
  add_executed(c);
  c.for_programs();
  c.text("evidence", "evidence", &OperatorReport::evidence, kEvidenceOf);
  add_formula_details(c);
  return c;
}

// Every place of its own, with the evidence.
Columns<OperatorReport> place_columns() {
  Columns<OperatorReport> c;
  c.text("range", "range", &OperatorReport::range, "the range that names it, with sizes");
  c.text("layer", "layer", &OperatorReport::layer);
  c.text("phase", "phase", &OperatorReport::phase);
  add_executed(c);
  c.text("evidence", "evidence", &OperatorReport::evidence, kEvidenceOf);
  c.text("operator", "operator", &OperatorReport::name);
  add_formula_details(c);
  return c;
}

// Backward launches with an autograd sequence number, by what became of it.
struct JoinedNumbers {
  const char* found;
  uint64_t launches;
};
std::vector<JoinedNumbers> joined_numbers(const Report& report) {
  const OperatorsReport& o = report.operators;
  return {{"forward_operator", o.joined},       {"no_forward", o.without_forward},
          {"other_operator", o.other_operator}, {"ambiguous", o.ambiguous},
          {"out_of_window", o.out_of_window},   {"differentiated_again", o.differentiated_again}};
}
Columns<JoinedNumbers> joined_columns() {
  Columns<JoinedNumbers> c;
  c.text(
      "found", "found", &JoinedNumbers::found,
      "forward_operator: it was found. differentiated_again: of gradients that are differentiated "
      "again, which have numbers of their own. Else why no forward operator was found");
  c.count(said::kLaunches, &JoinedNumbers::launches);
  return c;
}

const TableSource kOperatorTable =
    TableSource(
        "operators", "executed against formula, by operator", operator_columns,
        [](const Report& report) -> const auto& { return report.operators.types; })
        .long_list()
        .titled("Operators: executed against formula");
const TableSource kOperatorPlaces(
    "operator_places", "the same by range", place_columns,
    [](const Report& report) -> const auto& { return report.operators.places; });
const TableSource kJoinedNumbers(
    "sequence_numbers", "backward launches by what became of their autograd sequence number",
    joined_columns, joined_numbers);

Section operators_section(const Report& report) {
  constexpr size_t kMostEvidence = 12;
  const OperatorsReport& operators = report.operators;
  if (operators.types.empty()) return {};
  Section out = kOperatorTable.section(report);
  const auto is_bound = [](const OperatorReport& o) {
    return o.formula_flop && (o.formula_partial || o.formula_at_most);
  };
  for (const bool bounds : {true, false})
    for (const auto& o : operators.types)
      if (is_bound(o) == bounds && !o.cause.empty() && !o.evidence.empty() &&
          out.below.size() < kMostEvidence)
        out.below.push_back({o.name + ", " + o.phase + (o.cause == o.phase ? "" : ": " + o.cause) +
                                 ": " + o.evidence,
                             Tone::kDim});
  const uint64_t lost = operators.without_forward + operators.other_operator + operators.ambiguous +
                        operators.out_of_window;
  if (lost > 0)
    out.below.push_back({to_grouped(lost) + " of " + to_grouped(lost + operators.joined) +
                             " backward launches with a sequence number found no forward operator.",
                         Tone::kWarn});
  if (operators.differentiated_again > 0)
    out.below.push_back(
        {to_grouped(operators.differentiated_again) +
             " backward launches are of gradients that are differentiated again: they are listed "
             "under their nodes, since no number leads to their forward operators.",
         Tone::kWarn});
  return out;
}

}  // namespace

const Subject kOperators = {{&kOperatorTable, &kOperatorPlaces, &kJoinedNumbers},
                            operators_section};

}  // namespace flopinj::reduce
