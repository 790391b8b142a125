// Two reports side by side: their tables joined row by row. The join is made on figures and not in
// SQL, which has no bounds and no integers of 128 bits.
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

// A figure of both sides.
struct Compared {
  Figure a, b;
  Figure ratio;  // b / a, after normalization where it is of counts, FLOP and times
};

enum class Change : uint8_t {
  kSame,      // FLOP agree, and counts where nothing is normalised; times may differ
  kAppeared,  // only in B: another kernel, or another algorithm's
  kVanished,  // only in A
  kChanged,
};
const char* change_word(Change change);

struct ComparedRow {
  std::vector<std::string> names;  // by ComparedTable::names
  Change change = Change::kSame;
  std::vector<Compared> figures;  // by ComparedTable::figures
};

struct Comparison {
  Normalization normalization;
  bool simulated = false;  // a side is
  ComparedRow run;         // of both reports' table `figures`
  ComparedRow total;       // the same, with the figures of a phase
  // By compared_tables(). Phases and steps by name, the others by the largest difference of
  // normalised time first.
  std::vector<std::vector<ComparedRow>> tables;
  std::vector<ComparedRow> absent_phases;  // that the rules know, and no launch of either side had
  std::vector<GateResult> gates;           // of --fail-if
};
Comparison compare(const Report& a, const Report& b, const Normalization& normalization);
// The rows of one of its tables: "compared_kernels".
const std::vector<ComparedRow>& compared_rows(const Comparison& comparison, std::string_view key);

// For people. `a`, `b`: the reports that were compared, whose programs are named.
std::vector<Section> comparison_sections(const Comparison& comparison, const Report& a,
                                         const Report& b);
// For programs, and for conditions on figures.
std::vector<Table> comparison_tables(const Comparison& comparison);

}  // namespace flopinj::reduce
