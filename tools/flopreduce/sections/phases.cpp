// FLOP by phase of training.
#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::string flop_in_brackets(const Work& work) {
  if (!work.flop_complete()) return ", some of them not measured,";
  return " (" + to_human(work.flop, "FLOP") + ")";
}

Section phases_section(const Report& report) {
  Table table{"phases",
              {{"phase", "phase"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_exact", "exact", Kind::kExactFlop},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"launches", "launches", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds}}};
  for (const auto& p : report.phases) {
    const Mark mark = phase_mark(p.name, report);
    table.rows.push_back({p.name, marked(flop_cell(p.work), mark), marked(exact_cell(p.work), mark),
                          marked(flop_share_cell(p.work, report.total), mark), p.work.launches,
                          time_cell(p.work)});
  }
  Section out{"By phase", {}, std::move(table), {}};
  out.below = unclear_lines(report);
  if (const Work& products = report.optimizer_products; products.launches > 0)
    out.below.push_back({to_grouped(products.launches) + " launches of optimizer" +
                             flop_in_brackets(products) +
                             " are products that no sequence number places: the optimizer's own, "
                             "as of Muon and Shampoo, or those of a closure.",
                         Tone::kDim});
  return out;
}

void phase_fields(Fields& f, const Report& report) {
  f.map(
      "phases", report.phases, "those with launches", [](const PhaseReport& p) { return p.name; },
      [&](Fields& phase, const PhaseReport& p) {
        work_part(phase, p.work);
        precision_fields(phase, report, p.flop);
      });
  work_object(f, "phase_unclear", report.unclear,
              "of phase other: launches that may have run forward; sequence numbers do not say");
  work_object(f, "optimizer_products", report.optimizer_products,
              "of phase optimizer: launches of operators that multiply matrices, which no sequence "
              "number places: the optimizer's own, as of Muon and Shampoo, or those of a closure");
}

}  // namespace

Mark phase_mark(const std::string& phase, const Report& report) {
  if (report.unclear.flop == 0 && report.unclear.flop_complete()) return Mark::kNone;
  if (phase == "forward") return Mark::kAtLeast;
  return phase == "other" ? Mark::kAtMost : Mark::kNone;
}

std::vector<Line> unclear_lines(const Report& report) {
  const Work& unclear = report.unclear;
  if (unclear.launches == 0) return {};
  return {{to_grouped(unclear.launches) + " launches of other" + flop_in_brackets(unclear) +
               " may have run forward: their sequence numbers do not show it.",
           Tone::kWarn},
          {"Data preparation, layers without gradients and evaluation with gradients on look the "
           "same. Give the forward pass a range, or use the rule 'forward number is unclear'.",
           Tone::kDim}};
}

const Subject kPhases = {phases_section, phase_fields};

}  // namespace flopinj::reduce
