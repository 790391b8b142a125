// Columns of what a set of launches did. `work`: a member of the row, or a function of the row.
#pragma once
#include "sections/parts/cells.h"
#include "sections/parts/said.h"

namespace flopinj::reduce {

template <typename Row, typename W>
void add_flop(Columns<Row>& c, W work) {
  c.figure(said::kFlop, [work](const Row& row) { return flop_of(std::invoke(work, row)); });
}
// `mark`: what else its figures are marked with, of the row and its report.
template <typename Row, typename W, typename M>
void add_flop_or_formula(Columns<Row>& c, W work, M mark) {
  c.figure(said::kFlopOrFormula, [work, mark](const Row& row, const Report& report) {
    return flop_or_formula(std::invoke(work, row)).with(mark(row, report));
  });
  c.figure(said::kUtilizationOrFormula, [work, mark](const Row& row, const Report& report) {
     const Figure share = utilization_or_formula(std::invoke(work, row), report);
     return share.known() ? share.with(mark(row, report)) : Figure();
   }).range();
}
template <typename Row, typename W>
void add_flop_share(Columns<Row>& c, W work) {
  c.figure(said::kFlopShare, [work](const Row& row, const Report& report) {
    return flop_share(std::invoke(work, row), report.total);
  });
}
template <typename Row, typename W>
void add_launches(Columns<Row>& c, W work) {
  c.count(said::kLaunches, through(work, &Work::launches));
}
template <typename Row, typename W>
void add_gpu_time(Columns<Row>& c, W work) {
  c.figure(said::kGpuTime, [work](const Row& row) { return gpu_time_of(std::invoke(work, row)); });
}

template <typename Row, typename W>
void add_varying(Columns<Row>& c, W work) {
  c.count("varying_launches", "varying", through(work, &Work::varying),
          "launches of kernels whose samples disagree, or whose parameters were too many to keep "
          "apart: flop is an estimate");
}

// Over GPU time.
template <typename Row, typename W>
void add_rate(Columns<Row>& c, W work) {
  c.figure(said::headed(said::kRate, "rate"), [work](const Row& row) {
     return rate_of(std::invoke(work, row));
   }).dash();
}
template <typename Row, typename W>
void add_share_of_peak(Columns<Row>& c, W work) {
  c.figure(said::kUtilization, [work](const Row& row) {
     return utilization_of(std::invoke(work, row));
   }).dash(kAbovePeak);
}
template <typename Row, typename W>
void add_share_of_roof(Columns<Row>& c, W work) {
  c.figure(said::kRoofShare, [work](const Row& row) {
     return roofline_of(std::invoke(work, row));
   }).dash(kAbovePeak);
}

// Of rows that launches of others belong to: their Mark. Here of none.
struct Unmarked {
  template <typename Row>
  Mark operator()(const Row&, const Report&) const {
    return Mark::kNone;
  }
};

// For programs: how far the figures are known, launch by launch. `mark`: of the sums.
template <typename Row, typename W, typename M = Unmarked>
void add_work_details(Columns<Row>& c, W work, M mark = {}) {
  const auto get = [work](auto of) { return through(work, of); };
  const auto get_time = [work](auto of) { return through(through(work, &Work::time), of); };
  const auto end = [work](u128 Interval::*of) {
    return [work, of](const Row& row) {
      const auto interval = std::invoke(work, row).interval();
      return interval ? std::optional(*interval.*of) : std::nullopt;
    };
  };
  c.for_programs();
  add_flop_or_formula(c, work, mark);
  c.figure(said::kMatrixFlop, [work, mark](const Row& row, const Report& report) {
    const Figure flop = matrix_flop_of(std::invoke(work, row));
    return flop.known() ? flop.with(mark(row, report)) : Figure();
  });
  c.count(said::kUnmeasured, get(&Work::unmeasured));
  add_varying(c, work);
  c.exact("flop_low", "at least", Kind::kFlop, end(&Interval::low),
          "lower end of the 95 % interval of flop; null where nothing varies, and where a varying "
          "kernel has too few samples or also ran where nothing was sampled");
  c.exact("flop_high", "at most", Kind::kFlop, end(&Interval::high),
          "upper end of the 95 % interval");
  c.count("too_few_samples_launches", "too few samples",
          get([](const Work& w) { return w.uncertainty.unknown_launches(); }),
          "varying launches whose kernel was measured in too few windows for an interval");
  c.count("not_sampled_everywhere_launches", "not sampled",
          get([](const Work& w) { return w.uncertainty.elsewhere_launches(); }),
          "varying launches whose kernel also ran where nothing was sampled: in other processes, "
          "on other devices, in graphs");
  c.exact("flop_doubtful", "doubtful", Kind::kFlop, get(&Work::doubtful),
          "of flop: at most so much is no arithmetic: instructions that load constants, move or "
          "convert values, or that were not counted one by one (bounded_launches)");
  c.exact("flop_left_out", "left out", Kind::kFlop, get(&Work::left_out),
          "not in flop: counted by the counters' metrics, and known from the kernels' code to be "
          "no arithmetic");
  c.count("agreeing_launches", "agreeing", get(&Work::agreeing),
          "launches that have the count of their signature's samples, which agree, and not each "
          "its own");
  c.count("fewest_windows", "readings", get([](const Work& w) {
            return w.agreeing > 0 ? std::optional(w.fewest_windows) : std::nullopt;
          }),
          "of agreeing_launches: windows with samples, of the signature that has fewest");
  c.exact("unseen_share_95", "unseen", Kind::kShare, get([](const Work& w) {
            return w.agreeing > 0 ? std::optional(unseen_share(w.fewest_windows)) : std::nullopt;
          }),
          "1 - 0.05^(1 / fewest_windows): were more of a signature's launches to differ, so many "
          "windows had met one of them with 95 %");
  c.count("bounded_launches", "bounded", get(&Work::bounded),
          "measured launches of kernels that cannot be instrumented: tensor FLOP are counted, and "
          "others have an upper bound, the instructions of their pipes");
  c.count("unscreened_launches", "unscreened", get(&Work::unscreened),
          "in flop with their instructions; whether they do tensor work too is not known, so flop "
          "is at least so much");
  c.count("gpu_time_estimated_launches", "time estimated", get_time(&GpuTime::estimated),
          "launches that are in gpu_time_ns with their signature's mean");
  c.count("gpu_time_windowed_launches", "time too long", get_time(&GpuTime::windowed),
          "launches timed only while counters were read: their time is an upper bound");
  c.count("gpu_time_unknown_launches", "no time", get_time(&GpuTime::unknown),
          "launches that are not in gpu_time_ns");
}

template <typename Row, typename W>
void add_work(Columns<Row>& c, W work) {
  add_flop(c, work);
  add_launches(c, work);
  add_gpu_time(c, work);
  add_work_details(c, work);
}

}  // namespace flopinj::reduce
