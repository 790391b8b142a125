// Figures by name in the tables of a report: what conditions of --fail-if name.
//
//   NAME              a column of the table `figures`: hfu, ratio, flop; total.NAME is the same
//   TABLE.ROW.KEY     the column KEY of the row ROW: phases.backward.flop, kernels."a".launches.
//                     ROW is the text in the row's first column where no other row has it, or the
//                     row's number, from 0
//   TABLE.KEY         of a table of one row
//   lost.LINE         lost.LINE.share
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gates/gate.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// `path` has at least one part. The tables hold their rows.
FoundFigure find_figure(std::span<const Table> tables, const FigurePath& path);

// Why no tables with these columns can have the figures of a comparison, whatever rows they have;
// nothing where they may. Beside a figure of names is one of them.
std::optional<std::string> wrong_name(std::span<const Table> tables, const Gate::Sides& sides);

struct NamedValue {
  std::string name, value;
};
// All figures that there are, lists by their first row, with what they are; for people.
std::vector<NamedValue> list_figures(std::span<const Table> tables);

}  // namespace flopinj::reduce
