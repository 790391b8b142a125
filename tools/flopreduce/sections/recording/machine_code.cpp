// FLOP that machine code would add to the counts of PTX: only simulated devices report them.
#include "sections/parts/cells.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Figure estimated(u128 value) { return Figure::exact(value).with(Mark::kEstimate); }

Columns<MachineCodeReport> machine_code_columns() {
  using Row = MachineCodeReport;
  Columns<Row> c;
  c.text(
      "operation", "operation", [](const Row& row) { return std::string(row.operation->name); },
      "of PTX, that counts no FLOP itself");
  c.count("operations", "times", &Row::count,
          "how often threads did it in launches that have a count; atomic sums: at least so often");
  c.count(
      "fp32_flop_each", "fp32 each", [](const Row& row) { return row.operation->fp32; },
      "FLOP of the machine instructions that ptxas makes of it, on the path that usual operands "
      "take; a multiply-add as two");
  c.count("fp64_flop_each", "fp64 each", [](const Row& row) { return row.operation->fp64; });
  c.figure(
      "flop", "adds", Kind::kFlop, [](const Row& row) { return estimated(row.flop()); },
      "in no other figure: FLOP are PTX's");
  return c;
}

const TableSource kTable =
    TableSource("machine_code", "what machine code adds to the counts of PTX", machine_code_columns,
                &Report::machine_code)
        .titled("Machine code");

}  // namespace

const Subject kMachineCode = {{&kTable}};

}  // namespace flopinj::reduce
