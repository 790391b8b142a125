// The figures that people ask for first, by short names: for programs, and for gates.
#include "sections/parts/peak_cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

void short_names_fields(Fields& f, const Report& report) {
  const UtilizationReport& u = report.utilization;
  const auto share = [&](const char* key, const UtilizationMethod* method,
                         Attained UtilizationMethod::*time, const char* about) {
    const auto value = method == nullptr ? std::nullopt : (method->*time).share;
    f.bounded(key, Kind::kShare, number_cell(value),
              method == nullptr ? Mark::kNone : bound_mark(*method), about);
  };
  share("hfu", u.hfu(), &UtilizationMethod::wall,
        "hardware FLOP utilization: executed FLOP at peak / wall time");
  share("mfu", u.mfu(), &UtilizationMethod::wall,
        "model FLOP utilization: FLOP by formula at peak / wall time");
  share("hfu_kernel_time", u.hfu(), &UtilizationMethod::gpu_time,
        "executed FLOP at peak / sum of kernels' time: not HFU, since idle time is not in it");
  f.bounded("ratio", Kind::kRatio, number_cell(report.ratio.ratio),
            report.ratio.at_most ? Mark::kAtMost : Mark::kNone,
            "FLOP of phase backward / FLOP of phase forward; null where either is unmeasured or "
            "missing");
  f("matrix_ratio", report.ratio.matrix_ratio,
    "of fused multiply-adds and tensor work only: compare it with expected_ratio");
  const LedgerLine& all = report.ledger.total;
  f.share("coverage",
          all.launches > 0
              ? std::optional(quotient(u128{all.measured} + all.extrapolated, all.launches))
              : std::nullopt,
          "share of launches that have a FLOP count");
  const std::optional<Spread>& step = report.steps.wall_ns;
  f("step_time", step ? std::optional(step->median / 1e9) : std::nullopt,
    "seconds of a training step, the median of steps; null where no range marks them");
}

}  // namespace

const Subject kShortNames = {nullptr, short_names_fields};

}  // namespace flopinj::reduce
