// Two reports side by side: their tables joined row by row, by the columns that name a row. The
// join is made on figures and not in SQL, which has no bounds and no integers of 128 bits.
#pragma once
#include <string>
#include <vector>

#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// What each side's figures are divided by before they are compared: batch sizes, steps.
struct Normalization {
  std::string name;  // empty: none
  double a = 1, b = 1;
};
// NAME=A,B or NAME=A:B, numbers above 0: batch=64,128. False for anything else.
bool parse_normalization(const std::string& text, Normalization& out);

struct Comparison {
  Normalization normalization;
  std::vector<std::string> also = {};                // keys of tables that were asked for
  bool simulated = false;                            // a side is
  bool simulated_clock = false, ptx_counts = false;  // of a side
  // "total", "kernel_counts", "compared_kernels" and others. Phases and steps by name, the others
  // by the largest difference of normalised time first.
  std::vector<Table> tables = {};
  std::vector<GateResult> gates = {};  // of --fail-if
};
// The keys of tables that have names and figures: any of them can be compared.
std::vector<std::string> comparable_tables();
// `also`: of those keys, beside what is always compared.
Comparison compare(const Report& a, const Report& b, const Normalization& normalization,
                   const std::vector<std::string>& also = {});

// For people. `a`, `b`: the reports that were compared, whose programs are named.
std::vector<Section> comparison_sections(const Comparison& comparison, const Report& a,
                                         const Report& b);
// For programs, and for conditions on figures.
std::vector<Table> comparison_tables(const Comparison& comparison);

}  // namespace flopinj::reduce
