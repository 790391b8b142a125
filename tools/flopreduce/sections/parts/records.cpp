#include "sections/parts/records.h"

#include "sections/parts/cells.h"

namespace flopinj::reduce {
namespace {

template <typename Limit>
void interval_object(Fields& f, const char* key, const std::optional<Limit>& interval,
                     const char* about) {
  f.object_if(interval.has_value(), key, about, [&](Fields& object) {
    const Limit limits = interval.value_or(Limit{});
    object.flop("low", limits.low);
    object.flop("high", limits.high);
  });
}

}  // namespace

void work_fields(Fields& f, const Work& w, Known known) {
  const Cell flop = known.flop ? exact_cell(w) : Cell::none();
  f("launches", w.launches);
  f.sum("flop", flop, "executed; null where a launch is unmeasured");
  f("unmeasured_launches", w.unmeasured);
  f("varying_launches", w.varying,
    "of kernels whose samples disagree, or whose parameters were too many to tell apart: flop is "
    "an estimate");
  interval_object(f, "flop_interval_95", known.interval ? w.interval() : std::nullopt,
                  "of flop, or of flop_partial: the 95 % interval. null where nothing varies, and "
                  "where a varying kernel has too few samples or also ran where nothing was "
                  "sampled");
  f("too_few_samples_launches", w.uncertainty.unknown_launches(),
    "varying launches whose kernel was measured in too few windows for an interval");
  f("not_sampled_everywhere_launches", w.uncertainty.elsewhere_launches(),
    "varying launches whose kernel also ran where nothing was sampled: in other processes, on "
    "other devices, in graphs");
  f.flop("flop_doubtful", w.doubtful,
         "of flop: at most so much is of instructions that only load constants, move or convert "
         "values");
  f.flop("flop_left_out", w.left_out,
         "not in flop: counted by the counters' metrics, and known from the kernels' code to be no "
         "arithmetic");
  f("agreeing_launches", w.agreeing,
    "that have the count of their signature's samples, which agree, and not each its own");
  f("fewest_windows", when(w.agreeing > 0, w.fewest_windows),
    "of agreeing_launches: windows with samples, of the signature that has fewest");
  f.share("unseen_share_95",
          w.agreeing > 0 ? std::optional(unseen_share(w.fewest_windows)) : std::nullopt,
          "1 - 0.05^(1 / fewest_windows): were more of a signature's launches to differ, so many "
          "windows had met one of them with 95 %");
  f("unscreened_launches", w.unscreened,
    "in flop with their instructions; whether they do tensor work too is not known");
  f.sum("matrix_flop", flop.empty() ? flop : Cell(w.matrix_flop, flop.marks),
        "of flop: fused multiply-adds and tensor work");
  f.ns("gpu_time_ns", time_cell(w), "sum of kernels; null where no launch has a time");
  f("gpu_time_estimated_launches", w.time.estimated,
    "that are in gpu_time_ns with their signature's mean");
  f("gpu_time_windowed_launches", w.time.windowed,
    "timed only while counters were read: an upper bound");
  f("gpu_time_unknown_launches", w.time.unknown, "not in gpu_time_ns");
}

void precision_fields(Fields& f, const Report& report, const Flop& flop) {
  std::vector<std::pair<std::string, u128>> by_precision, integer;
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (flop.by_precision[i] > 0)
      by_precision.emplace_back(report.precisions[i], flop.by_precision[i]);
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)
    if (flop.integer[i] > 0) integer.emplace_back(kIntegerFormats[i], flop.integer[i]);
  f.flop_by_name("precision", by_precision, "FLOP by number format");
  f.flop_by_name("integer_op", integer,
                 "no FLOP: integer operations of the tensor cores by source, a multiply-add being "
                 "two whatever fma says");
}

void expected_fields(Fields& f, const std::optional<ExpectedRatio>& expected) {
  const bool range = expected && !expected->certain();
  f("expected_ratio", expected ? expected->value() : std::nullopt,
    "of matrix work, by theory and by evidence of which gradients were computed, never by the "
    "ratio that it is to judge: 2 for products and convolutions, 1 without input gradient, 2.5 "
    "for fused attention with keys as wide as values, 0 where nothing is computed backward, and "
    "their mean by forward matrix FLOP. null where nothing is expected, or a range is");
  f.object_if(range, "expected_ratio_range",
              "where it is not known whether a gradient was computed", [&](Fields& object) {
                object("low", expected ? expected->least : 0.0);
                object("high", expected ? expected->most : 0.0);
              });
  f("expected_ratio_assumed", expected && expected->assumed,
    "of some products nothing says which gradients were computed, and both are assumed, or it is "
    "of a part of the matrix work; the basis says so");
  f("expected_ratio_basis", expected ? text_or_null(expected->basis) : std::nullopt,
    "what it is taken from, where it is not two gradients for each product; what is assumed is "
    "named so");
}

void verdict_field(Fields& f, RatioVerdict verdict) {
  const auto word = [&]() -> std::optional<std::string> {
    switch (verdict) {
      case RatioVerdict::kInside:
        return "inside";
      case RatioVerdict::kOutside:
        return "outside";
      case RatioVerdict::kUndecided:
        return "undecided";
      case RatioVerdict::kNone:
        break;
    }
    return std::nullopt;
  };
  f.word("ratio_verdict", word(), {"inside", "outside", "undecided"},
         "matrix_ratio, with all of its interval, against the expected value or range, 1 % left "
         "aside; undecided where the interval reaches beyond it or is not known, and where damage "
         "took launches; null where there is no ratio or no expectation");
}

void first_layer_fields(Fields& f, const LayerReport& layer) {
  f("path", layer.path);
  f.flop("forward_matrix_flop", layer.forward_matrix_flop);
  f("first", layer.first);
}

void ledger_line_fields(Fields& f, const LedgerLine& l) {
  f("launches", l.launches);
  f("measured", l.measured);
  f("extrapolated", l.extrapolated);
  f("unmeasured", l.unmeasured);
  f("dropped", l.dropped);
}

}  // namespace flopinj::reduce
