// Words for what is missing from a report and why, with the remedy where there is one.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// "read", "refused", "busy", "not asked", ...
const char* reading_word(CounterReading reading);
// The same for programs: "not_asked".
const char* reading_code(CounterReading reading);

// True where the first of notices() says why no launch has a FLOP count.
bool notice_of_no_counts(const Report& report);
// Why most of the launches without a FLOP count have none; empty where all have one.
std::string unmeasured_cause(const Report& report);

// kRatioVerdicts; nothing where there is no verdict.
std::optional<std::string> ratio_verdict(const RatioReport& ratio);
inline constexpr std::span kVerdictNames = std::span(kRatioVerdicts).subspan<1>();
// Why backward / forward is not known; empty where it is.
std::string ratio_missing(const Report& report);

// Of a phase's FLOP: launches of other that may have run forward are missing from it, or one too
// many.
Mark phase_mark(const PhaseReport& phase, const Report& report);
// What its share is of: where names were off in a part of the run, the launches with names.
Work whole_of_phase(const PhaseReport& phase, const Report& report);
// Under figures of forward: launches that may have run there, and sequence numbers do not say.
std::vector<Line> unclear_lines(const Report& report);

// That the traces are of several runs, which traces are of which, and how to read one; empty where
// they are of one. Raw bytes.
std::string runs_notice(const Report& report);

// What took something from the report, with the file: at most `most` of them, and whether there is
// more. Raw bytes, as all texts here.
std::string damage_words(const Report& report, size_t most);

// One line each, most important first: what a reader has to know before any figure.
std::vector<std::string> notices(const Report& report);

}  // namespace flopinj::reduce
