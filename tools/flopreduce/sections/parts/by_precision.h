// FLOP of sets of launches by number format, one row a format.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sections/parts/said.h"

namespace flopinj::reduce {

struct OneFormat {
  std::string format;
  Figure flop;        // of a precision
  Figure operations;  // of an integer format of the tensor cores
};

// Those that it used. `work`: of the same launches. `estimated`: of `flop`, of launches whose FLOP
// are an estimate; where it is not known, all of it may be.
std::vector<OneFormat> by_format(const Report& report, const Flop& flop, const Work& work,
                                 const Flop* estimated = nullptr);

// A format of a row of another table.
template <typename Row>
struct FormatOf {
  const Row& row;
  OneFormat one;
};

// Calls visit(FormatOf) for each format of each of `rows`, which have `work` and `flop`.
template <typename Row>
void for_each_format(const Report& report, const std::vector<Row>& rows,
                     const std::function<void(const FormatOf<Row>&)>& visit) {
  for (const Row& row : rows)
    for (OneFormat& one : by_format(report, row.flop, row.work)) visit({row, std::move(one)});
}

template <typename Row>
void add_format(Columns<FormatOf<Row>>& c) {
  c.text("precision", "precision", [](const auto& row) { return row.one.format; });
  c.figure(said::kFlop, [](const auto& row) { return row.one.flop; });
  c.figure(said::kOperations, [](const auto& row) { return row.one.operations; });
}

}  // namespace flopinj::reduce
