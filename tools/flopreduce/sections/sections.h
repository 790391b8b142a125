// The subjects of a report, in the order in which people read them. Each has a file here that says
// it: as a Section for people, as tables for programs.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "sections/parts/columns.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

struct Subject {
  std::vector<const TableSource*> sources;
  Section (*say)(const Report&) = nullptr;  // null: the first table, where it has a title

  Section section(const Report& report) const {
    return say != nullptr ? say(report) : sources.front()->section(report);
  }
};
extern const Subject kScreen, kHead, kFigureRow, kPhases, kPrecisions, kIntegerOperations, kRatio,
    kKernels, kSignatures, kRanges, kPhaseRules, kOperators, kOperatorWork, kLayers, kLedger,
    kProcesses, kDiagnostics, kDamage, kUtilization, kPeakByRange, kRoofline, kEstimates, kStacks,
    kMachineCode, kMeasuring, kCoverage, kRanks, kRankCommunication, kCollectives, kBusyTime,
    kIdleGaps, kLost, kCopies, kSteps, kNumbers, kFacts, kRankSpread, kGates;

// What people read, in order; empty sections are left out.
std::vector<Section> report_sections(const Report&);

// Keys of the sections, for good: "kernels", "roofline", ...
std::vector<std::string> section_keys();
// Of those keys, in the order of the report, behind the warnings. One that has nothing to say in
// this report is a line that says so.
std::vector<Section> chosen_sections(const Report&, const std::vector<std::string>& keys);

// The answer on one screen: in 30 lines, as far as rows and notes can give way. `most_kernels`: as
// the user wants it; `lines_of`: how many lines of the terminal one takes.
enum class KernelOrder : uint8_t { kTime, kFlop, kLaunches, kEach, kName };
std::vector<Section> screen(const Report&, KernelOrder, std::optional<size_t> most_kernels,
                            const std::function<size_t(const Line&)>& lines_of);
std::vector<WorkGroup> kernels_by(const Report&, KernelOrder);
const char* order_words(KernelOrder);  // "GPU time"

// The parts of that screen, for forms that lay them out in another way.
std::vector<Line> screen_warnings(const Report&);
struct ScreenProgram {
  std::string command, where, gpus;  // where: host, process and duration, or how many
};
ScreenProgram screen_program(const Report&);
std::vector<ShownFigure> screen_figures(const Report&);  // HFU and MFU first
// For behind those two, where HFU is known.
std::vector<ShownFigure> lost_figures(const Report&);
// One line of where the peak went: what it means, how much it is, and by phase and layer.
std::vector<Section> lost_line_sections(const LostRow&, const Report&);
std::vector<Table> lost_line_tables(const LostRow&, const Report&);

// What to know before any figure: SIMULATED, PARTIAL, and the notices.
void add_warnings(const Report&, std::vector<Line>&);
// Where FLOP come from, if not from machine code.
void add_origin(const Report&, std::vector<Line>&);
// How many FLOP and how much GPU time the launches have, and how far that is known.
void add_total(const Report&, std::vector<Line>&);
// Every table of the report, in order: those of the sections, and those for programs only. Rows
// are handed out and not held.
std::vector<Table> report_tables(const Report&);
std::vector<Table> subject_tables(const Subject&, const Report&);
// One of them, by a key that there is.
Table report_table(const Report&, std::string_view key);

// Keys of tables that need ReduceOptions::launch_times.
std::vector<std::string> tables_of_durations();
// Whether a table, or where `key` is empty one of all, needs ReduceOptions::facts.
bool needs_facts(std::string_view key);

// All tables that a report can have; one that the traces give no row for may be missing.
std::vector<const TableSource*> table_sources();
// The table of phases, and in it also those that the rules know and no launch had, with 0 launches
// and 0 FLOP.
Table all_phases(const Report&);
// What conditions on figures are looked up in: the report's tables, their rows held, with
// all_phases(), and without the words of the first screen.
std::vector<Table> gate_tables(const Report&);

}  // namespace flopinj::reduce
