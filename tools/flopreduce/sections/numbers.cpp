// Numbers that the program gave to its ranges, and the FLOP for each.
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Cell cell_of(const std::optional<double>& flop, Mark mark) {
  return flop ? Cell(*flop, mark) : Cell::none();
}

Mark mark_of(const NumberReport::InRange& one) {
  return (one.estimate ? Mark::kEstimate : Mark::kNone) |
         (one.at_least ? Mark::kAtLeast : Mark::kNone);
}

Section numbers_section(const Report& report) {
  if (report.numbers.empty()) return {};
  Table table{"numbers",
              {{"number", "number"},
               {"range", "given to range"},
               {"total", "total", Kind::kCount, Worth::kMain},
               {"times", "times", Kind::kCount},
               {"flop_each", "FLOP each", Kind::kFlop, Worth::kMain}}};
  table.long_list = true;
  for (const NumberReport& number : report.numbers) {
    uint64_t times = 0;
    for (const auto& one : number.ranges) times += one.outermost ? one.times : 0;
    table.rows.push_back({number.name, "(all executed FLOP)", Cell(number.total), times,
                          cell_of(number.flop_each, flop_mark(report.total))});
    for (const auto& one : number.ranges)
      table.rows.push_back({number.name, one.range.empty() ? "(in no range)" : one.range,
                            Cell(one.total), one.times, cell_of(one.flop_each, mark_of(one))});
  }
  return {"Numbers of ranges", {}, std::move(table), {}};
}

void numbers_fields(Fields& f, const Report& report) {
  f.list("numbers", report.numbers,
         "that the program gave to its ranges, as range(\"data\", tokens=4096)",
         [&](Fields& to, const NumberReport& number) {
           to("name", number.name);
           to("total", number.total,
              "of all processes, without ranges inside of one that was given the same number");
           to("processes", uint64_t{number.processes}, "that gave it");
           to.bounded("flop_each", Kind::kRatio, cell_of(number.flop_each, Mark::kNone),
                      missing_mark(report.total), "all executed FLOP / total");
           to.list("ranges", number.ranges, "each that was given it",
                   [](Fields& range, const NumberReport::InRange& one) {
                     range("path", text_or_null(one.range), "null: given in no range");
                     range("total", one.total);
                     range("times", one.times);
                     range.bounded(
                         "flop_each", Kind::kRatio, cell_of(one.flop_each, Mark::kNone),
                         one.at_least ? Mark::kAtLeast : Mark::kNone,
                         "FLOP of launches in the range, of a training step on any thread / total; "
                         "null where none were, or not each step was given it");
                     range("estimate", one.estimate, "flop_each is one");
                   });
         });
}

}  // namespace

const Subject kNumbers = {numbers_section, numbers_fields};

}  // namespace flopinj::reduce
