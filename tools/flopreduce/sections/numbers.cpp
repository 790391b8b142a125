// Numbers that the program gave to its ranges, and the FLOP for each.
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// One number in one range, or all of it.
struct NumberRow {
  const NumberReport& number;
  const NumberReport::InRange* in = nullptr;  // null: all
};

std::vector<NumberRow> number_rows(const Report& report) {
  std::vector<NumberRow> rows;
  for (const NumberReport& number : report.numbers) {
    rows.push_back({number});
    for (const auto& one : number.ranges) rows.push_back({number, &one});
  }
  return rows;
}

std::string given_range(const NumberRow& row) {
  if (row.in == nullptr) return "(all executed FLOP)";
  return row.in->range.empty() ? "(in no range)" : row.in->range;
}

// Of all: in ranges that are not inside of one that was given the same number.
uint64_t times_of(const NumberRow& row) {
  if (row.in != nullptr) return row.in->times;
  uint64_t times = 0;
  for (const auto& one : row.number.ranges) times += one.outermost ? one.times : 0;
  return times;
}

Figure flop_each(const NumberRow& row, const Report& report) {
  if (row.in == nullptr) return Figure::exact(row.number.flop_each).with(flop_mark(report.total));
  return Figure::exact(row.in->flop_each)
      .with(mark_if(row.in->estimate, Mark::kEstimate) | mark_if(row.in->at_least, Mark::kAtLeast));
}

Columns<NumberRow> number_columns() {
  Columns<NumberRow> c;
  c.text(
      "number", "number", [](const NumberRow& row) { return row.number.name; },
      "its name, as of range(\"data\", tokens=4096)");
  c.text("range", "given to range", given_range);
  c.count(
       "total", "total",
       [](const NumberRow& row) { return row.in == nullptr ? row.number.total : row.in->total; },
       "sum over all processes; of all executed FLOP without ranges inside of one that was given "
       "the same number")
      .main();
  c.count("times", "times", times_of, "how often it was given");
  c.figure("flop_each", "FLOP each", Kind::kFlop, flop_each,
           "FLOP / total: all executed, or those of launches in the range, of a training step on "
           "any thread; null where none were, or not each step was given it")
      .main();
  c.for_programs();
  c.text(
      "path", "path",
      [](const NumberRow& row) {
        return row.in == nullptr || row.in->range.empty() ? std::nullopt
                                                          : std::optional(row.in->range);
      },
      "of the range, as in table ranges; null: all, or given in no range");
  c.flag(
      "whole", "whole", [](const NumberRow& row) { return row.in == nullptr; },
      "the row is of all executed FLOP");
  c.count(
      "processes", "processes",
      [](const NumberRow& row) {
        return row.in == nullptr ? std::optional(row.number.processes) : std::nullopt;
      },
      "processes that gave it");
  return c;
}

const TableSource kNumberTable =
    TableSource("numbers", "FLOP for each token, image or other number of a range", number_columns,
                number_rows)
        .long_list()
        .titled("Numbers of ranges");

}  // namespace

const Subject kNumbers = {{&kNumberTable}};

}  // namespace flopinj::reduce
