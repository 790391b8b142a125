// FLOP by phase of training.
#include "phases/phases.h"

#include "report/named_part.h"
#include "sections/launch_tables.h"
#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::string flop_in_brackets(const Work& work) {
  if (!work.flop_complete()) return ", some of them not measured,";
  return " (" + to_human(work.flop, "FLOP") + ")";
}

Section phases_section(const Report& report) {
  Section out = launch_table("phases").section(report);
  out.below = unclear_lines(report);
  if (report.named.launches_without > 0)
    out.below.push_back({"Phases and their shares are of " + names_text(report) +
                             ". The rest is unnamed, and its share is of all.",
                         Tone::kWarn});
  if (const Work& nameless = report.named.nameless; report.named.much_nameless)
    out.below.push_back({to_grouped(nameless.launches) + " launches of other" +
                             flop_in_brackets(nameless) +
                             " are by no operator that has a name: they may be of any phase.",
                         Tone::kWarn});
  if (report.operators.recompute_unclear())
    out.below.push_back(
        {"Gradients are differentiated again: operators that a checkpoint runs again "
         "may be among the launches of backward.",
         Tone::kWarn});
  if (const Work& outside = report.part(PhasePart::kGradients); outside.launches > 0)
    out.below.push_back({to_grouped(outside.launches) + " launches of other" +
                             flop_in_brackets(outside) +
                             " are outside of autograd's nodes and as large as gradients that "
                             "backward lacks: they may be these.",
                         Tone::kWarn});
  if (const Work& products = report.part(PhasePart::kProducts); products.launches > 0)
    out.below.push_back({to_grouped(products.launches) + " launches of optimizer" +
                             flop_in_brackets(products) +
                             " are products that no sequence number places: the optimizer's own, "
                             "as of Muon and Shampoo, or those of a closure.",
                         Tone::kDim});
  return out;
}

}  // namespace

Work whole_of_phase(const PhaseReport& phase, const Report& report) {
  return report.named.launches_without == 0 || phase.name == kUnnamedPhase ? report.total
                                                                           : named_work(report);
}

Mark phase_mark(const PhaseReport& phase, const Report& report) {
  if (report.operators.recompute_unclear()) {
    if (phase.name == "recompute") return Mark::kAtLeast;
    if (phase.name == "backward") return Mark::kAtMost;
  }
  Mark marks = Mark::kNone;
  if (report.part(PhasePart::kGradients).launches > 0)
    marks = mark_if(phase.name == "backward", Mark::kAtLeast) |
            mark_if(phase.name == "other", Mark::kAtMost);
  const Work& unclear = report.part(PhasePart::kUnclear);
  if (unclear.flop == 0 && unclear.flop_complete()) return marks;
  if (phase.name == "forward") return Mark::kAtLeast;
  return marks | mark_if(phase.name == "other" || phase.at_most, Mark::kAtMost);
}

std::vector<Line> unclear_lines(const Report& report) {
  const Work& unclear = report.part(PhasePart::kUnclear);
  if (unclear.launches == 0) return {};
  return {{to_grouped(unclear.launches) + " launches of other" + flop_in_brackets(unclear) +
               " may have run forward: their sequence numbers do not show it.",
           Tone::kWarn},
          {"Data preparation, layers without gradients and evaluation with gradients on look the "
           "same. Give the forward pass a range, or use the rule 'forward number is unclear'.",
           Tone::kDim}};
}

const Subject kPhases = {
    {&launch_table("phases"), &launch_table("phase_precisions"), &launch_table("phase_parts")},
    phases_section};

}  // namespace flopinj::reduce
