#include "passes/lost_marks.h"

#include <algorithm>

#include "phases/phases.h"

namespace flopinj::reduce {
namespace {

using enum LostLine;

constexpr LostLines kIdle{kIdleStartEnd,     kIdleCopies,   kIdleHostLate, kIdleQueued,
                          kIdleBetweenSteps, kIdleLongGaps, kIdleShortGaps};
constexpr LostLines kOther{kOtherMemory, kOtherBelowRoof};
constexpr LostLines kMatrix{kMatrixMemory, kMatrixBlocks, kMatrixBelowRoof};
constexpr LostLines kBelowRoof{kOtherBelowRoof, kMatrixBelowRoof};
constexpr LostLines kKernels =
    LostLines{kCommunication, kUncounted, kInteger, kProfiler} | kOther | kMatrix;
constexpr LostLines kFormula{kPadding, kModel};
constexpr LostLines kOnce = kFormula | LostLines{kOtherFlop};  // work that is not done again

uint64_t whole_ns(double ns) { return static_cast<uint64_t>(std::clamp(ns, 0.0, 1e19)); }

// The lines that a phase's work is in.
LostLines work_lines(const std::string& phase, const Report& report) {
  if (phase == "recompute") return {kRecompute};
  return report.operators.counts_for_model(phase) || phase == kUnnamedPhase ? kOnce
                                                                            : LostLines{kOtherFlop};
}

// What kernels without a count did is in the line for these. Other counts may be off.
void add_counts(const Work& work, LostLines its, LostMarks& marks) {
  if (!work.flop_complete())
    marks.may_be_too({kUncounted}, LostLines{kInteger} | kOther | kMatrix | its);
  if (work.flop_at_most())
    marks.may_be(its, kBelowRoof,
                 whole_ns(work.roof.compute_ns * quotient(work.doubtful, work.flop)));
  if (work.varying > 0) {
    marks.about(its, kBelowRoof);
    marks.about(kBelowRoof, its);
  }
}

// Work without a name may be done twice, and the model's, and that of products.
void add_names(const std::string& phase, const Report& report, LostMarks& marks) {
  const NamedPart& named = report.named;
  const auto products = named.perhaps_products_ns.find(phase);
  if (products != named.perhaps_products_ns.end())
    marks.may_be(kOther, kMatrix, whole_ns(static_cast<double>(products->second)));
  if (phase != kUnnamedPhase && phase != "other") return;
  const Work& nameless =
      phase == kUnnamedPhase ? phase_work(report, kUnnamedPhase) : named.nameless;
  if (nameless.matrix_flop > 0)
    marks.may_be({kOtherFlop}, LostLines{kRecompute} | kFormula,
                 whole_ns(nameless.roof.compute_ns + 1));
}

void add_formulas(const std::string& phase, const Report& report, LostMarks& marks) {
  const OperatorsReport& operators = report.operators;
  if (report.utilization.given_formula_ns) {
    // By what part of the work it is shared out: some of that may be no work of the model.
    if (phase == kUnnamedPhase) marks.may_be({kPadding}, {kOtherFlop, kRecompute});
    return;
  }
  const auto found = operators.model_by_phase.find(phase);
  if (found == operators.model_by_phase.end()) return;
  const ModelFlop& model = found->second;
  // Work of the model without a formula is in other FLOP, and so is its padding.
  marks.may_be({kOtherFlop}, kFormula, report.lost.formula ? model.lacking_ns() : UINT64_MAX);
  if (model.may_need_more()) marks.may_be({kPadding}, {kModel});
  if (has(model.marks(), Mark::kAtMost)) marks.may_be({kModel}, {kPadding});
  if (has(model.marks(), Mark::kEstimate)) {
    marks.about({kModel}, {kPadding});
    marks.about({kPadding}, {kModel});
  }
  if (phase == "backward" && operators.recompute_unclear()) marks.may_be(kOnce, {kRecompute});
}

// When copies ran: recorders say so since minor version 12, one by one.
bool all_copies_known(const TraceTables& tables) {
  return std::ranges::all_of(tables.traces, [](const TraceState& trace) {
    return trace.header.copies() && trace.header.level() == trace::LEVEL_LAUNCHES &&
           trace.ledger.activity_lost() == 0;
  });
}

// Of time, whatever the phase.
LostMarks of_time(const LostEvidence& of, const Report& report) {
  LostMarks marks;
  if (of.unplaced || of.uneven.spread) marks.about(kIdle | kKernels, kIdle | kKernels);
  if (of.unknown.other_bytes) marks.may_be({kOtherBelowRoof}, {kOtherMemory});
  if (of.unknown.matrix_bytes)
    marks.may_be(LostLines{kMatrixBlocks, kMatrixBelowRoof}, {kMatrixMemory});
  if (of.unknown.uneven_blocks) {
    marks.about({kMatrixBlocks}, {kMatrixBelowRoof});
    marks.about({kMatrixBelowRoof}, {kMatrixBlocks});
  }
  if (of.unknown.uncounted_communication)
    marks.may_be_too(LostLines{kCommunication} | kBelowRoof, {kOtherFlop});
  // Kernels that only ran while counters were read: how much slower is not known.
  if (report.total.time.windowed > 0 || of.uneven.slowed)
    marks.may_be(kBelowRoof | LostLines{kUncounted}, {kProfiler});
  const auto is_uneven = [&](KernelClass one) {
    return of.uneven.classes[static_cast<size_t>(one)];
  };
  if (is_uneven(KernelClass::kMatrix)) {
    marks.may_be({kMatrixMemory}, {kMatrixBelowRoof});
    marks.about({kMatrixBlocks}, {kMatrixMemory, kMatrixBelowRoof});
  }
  if (is_uneven(KernelClass::kOther)) marks.may_be({kOtherMemory}, {kOtherBelowRoof});
  for (const auto& [one, line] : {std::pair(KernelClass::kInteger, kInteger),
                                  {KernelClass::kUncounted, kUncounted},
                                  {KernelClass::kCommunication, kCommunication}})
    if (is_uneven(one)) marks.about({line}, kKernels);
  // Nor does an old summary say which gaps are between steps, or beside slowed kernels.
  const bool summed = std::ranges::any_of(of.tables.devices, only_times);
  if (summed) marks.may_be({kIdleLongGaps, kIdleShortGaps}, {kIdleBetweenSteps, kProfiler});
  if (summed || of.lost_copies || !all_copies_known(of.tables))
    marks.may_be_too(kIdle, {kIdleCopies});
  return marks;
}

// Of these sums: they are of operators whose launches all have counts.
void mark_rest(Report& report) {
  LostReport& lost = report.lost;
  const Mark unnamed = mark_if(!report.named.whole(), Mark::kAtLeast);
  lost.fp32_marks = flop_mark(report.total) | unnamed;
  const bool given = report.utilization.given_formula_ns.has_value();
  lost.saved_marks =
      missing_mark(report.total) | unnamed | (given ? Mark::kNone : report.operators.model.marks());
}

}  // namespace

bool only_times(const Device& device) { return device.times && !device.times->at_once(); }

void mark_lines(const LostEvidence& evidence, Report& report) {
  LostReport& lost = report.lost;
  const LostMarks time = of_time(evidence, report);
  lost.marks = time;
  lost.marks_by_phase[""] = time;
  for (const PhaseReport& phase : report.phases) {
    LostMarks work;
    add_counts(phase.work, work_lines(phase.name, report), work);
    add_names(phase.name, report, work);
    add_formulas(phase.name, report, work);
    lost.marks.add(work);
    work.add(time);
    lost.marks_by_phase[phase.name] = std::move(work);
  }
  mark_rest(report);
}

}  // namespace flopinj::reduce
