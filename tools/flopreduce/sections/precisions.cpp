// FLOP by number format, and apart from them integer operations.
#include "sections/parts/by_precision.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// Of one format; `of`: of all.
Figure sum_figure(u128 operations, u128 doubtful, bool estimated, const Work& of) {
  Work work;
  work.flop = operations;
  work.doubtful = doubtful;
  work.unmeasured = of.incomplete();
  work.varying = estimated ? 1 : 0;
  return flop_of(work);
}

std::vector<OneFormat> formats_of(const Report& report) {
  return by_format(report, report.flop, report.total, &report.estimated_flop);
}
std::vector<OneFormat> precisions_of(const Report& report) {
  auto all = formats_of(report);
  std::erase_if(all, [](const OneFormat& one) { return !one.flop.known(); });
  return all;
}
std::vector<OneFormat> integer_formats_of(const Report& report) {
  auto all = formats_of(report);
  std::erase_if(all, [](const OneFormat& one) { return !one.operations.known(); });
  return all;
}

// FLOP that were not measured may be of this precision or of others.
Figure precision_share(const OneFormat& one, const Report& report) {
  const Work& total = report.total;
  const u128 flop = std::get<u128>(one.flop.value());
  const Figure share = Figure::exact(flop) / Figure::exact(total.flop);
  if (total.flop_complete()) return share;
  return share.with(Mark::kAtMost | mark_if(flop < total.flop, Mark::kAtLeast));
}

Columns<OneFormat> precision_columns() {
  Columns<OneFormat> c;
  c.text("precision", "precision", &OneFormat::format);
  c.figure(said::kFlop, &OneFormat::flop).main().and_exact();
  c.figure(said::kFlopShare, precision_share);
  return c;
}

Columns<OneFormat> integer_columns() {
  Columns<OneFormat> c;
  c.text("source", "source", &OneFormat::format);
  c.figure(said::kOperations, &OneFormat::operations).main().and_exact("op_exact");
  return c;
}

const TableSource kPrecisionTable =
    TableSource("precisions", "FLOP by number format", precision_columns, precisions_of)
        .titled("By precision")
        .when_empty("none counted");
const TableSource kIntegerTable =
    TableSource("integer_operations", "integer operations of the tensor cores", integer_columns,
                integer_formats_of)
        .titled("Integer operations of the tensor cores (no FLOP)");

}  // namespace

std::vector<OneFormat> by_format(const Report& report, const Flop& flop, const Work& work,
                                 const Flop* estimated) {
  std::vector<OneFormat> all;
  const auto varies = [&](const auto& of_flop, size_t i) {
    return estimated != nullptr ? of_flop(*estimated)[i] > 0 : work.varying > 0;
  };
  const auto precisions = [](const Flop& f) -> const auto& { return f.by_precision; };
  const auto integers = [](const Flop& f) -> const auto& { return f.integer; };
  for (size_t i = 0; i < report.precisions.size(); ++i) {
    const u128 doubtful = i < kInstructionPrecisions ? flop.doubtful[i] : 0;
    if (const u128 sum = flop.by_precision[i]; sum > 0)
      all.push_back(
          {report.precisions[i], sum_figure(sum, doubtful, varies(precisions, i), work), {}});
  }
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)
    if (const u128 sum = flop.integer[i]; sum > 0)
      all.push_back(
          {std::string(kIntegerFormats[i]), {}, sum_figure(sum, 0, varies(integers, i), work)});
  return all;
}

const Subject kPrecisions = {{&kPrecisionTable}};
const Subject kIntegerOperations = {{&kIntegerTable}};

}  // namespace flopinj::reduce
