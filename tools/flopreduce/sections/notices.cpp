#include "sections/notices.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <set>

#include "open_trace_words.h"
#include "sections/parts/rough_times.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

struct ReadingText {
  const char* word;
  const char* code;
  const char* cause;  // why no FLOP were measured
};

const ReadingText& text_of(CounterReading reading) {
  static constexpr std::array<ReadingText, 8> kText = {{
      {"-", "unknown", "no counters were read"},
      {"not asked", "not_asked", "counters were not asked for"},
      {"other ranks", "other_ranks", "other ranks of the job read the counters"},
      {"read", "read", ""},
      {"refused", "refused", "counters were refused: no permission"},
      {"busy", "busy", "another profiler held the counters"},
      {"failed", "failed", "reading counters failed"},
      {"none read", "none_read", "no counters were read"},
  }};
  return kText[static_cast<size_t>(reading)];
}

// What all processes' counters came to, where none was read.
const TraceReport* first_without(const Report& report) {
  const TraceReport* worst = nullptr;
  for (const TraceReport& t : report.traces) {
    if (t.counters.reading == CounterReading::kRead) return nullptr;
    const auto rank = [](const TraceReport& trace) {  // a problem says more than a setting
      return trace.counters.reading < CounterReading::kRefused ? 0 : 1;
    };
    if (worst == nullptr || rank(t) > rank(*worst)) worst = &t;
  }
  return worst;
}

// Where nothing went wrong with the counters, the reason that all launches share says more.
std::string reason_of_all(const Report& report, const TraceReport& t) {
  if (!t.counters.problem.empty() || (t.counters.reading != CounterReading::kUnknown &&
                                      t.counters.reading != CounterReading::kNoneRead))
    return {};
  const auto& reasons = report.ledger.unmeasured;
  const bool says_why = !reasons.empty() && std::ranges::all_of(reasons, [](const Reason& r) {
    return r.reason == kGraphOnly || r.reason == kGreenContext || r.reason == kNeverMeasured;
  });
  return says_why ? reason_words(reasons.front().reason) : std::string();
}

std::string remedy_of(const TraceReport& t) {
  switch (t.counters.reading) {
    case CounterReading::kNotAsked:  // nothing is wrong
      return "mode '" + t.header.mode() + "' reads none, and FLOP are known by formula alone.";
    case CounterReading::kOtherRanks:
      return "add the traces of ranks that read them (by default rank 0), or record with "
             "--measure-ranks all.";
    case CounterReading::kUnknown:  // another program made the recording
      if (t.header.mode().empty() && t.diagnostics.empty())
        return "FLOP are known by formula alone.";
      [[fallthrough]];
    default:
      return t.counters.problem.empty() ? "see Diagnostics below."
                                        : cut(t.counters.problem, 600) + ".";
  }
}

void add_counters(const Report& report, std::vector<std::string>& lines) {
  if (report.total.launches == 0 || report.total.flop_complete()) return;
  if (const TraceReport* t = first_without(report)) {
    if (t->counters.reading == CounterReading::kNotAsked && !t->header.imported_from().empty()) {
      lines.push_back("No FLOP were measured: the recording is " + t->header.imported_from() +
                      "'s, and has no counters. FLOP are known by formula alone; --counters adds "
                      "those of Nsight Compute.");
      return;
    }
    const std::string reason = reason_of_all(report, *t);
    lines.push_back("No FLOP were measured: " +
                    (reason.empty() ? text_of(t->counters.reading).cause + ("; " + remedy_of(*t))
                                    : reason + "."));
    return;
  }
  for (const auto reading :
       {CounterReading::kRefused, CounterReading::kBusy, CounterReading::kFailed}) {
    size_t processes = 0;
    const TraceReport* first = nullptr;
    for (const TraceReport& t : report.traces) {
      if (t.counters.reading != reading) continue;
      ++processes;
      if (first == nullptr) first = &t;
    }
    if (first != nullptr)
      lines.push_back("Counters of " + std::to_string(processes) + " of " +
                      std::to_string(report.traces.size()) + " processes, first " + first->name +
                      ": " + text_of(reading).cause + "; " + remedy_of(*first));
  }
}

void add_ranks(const Report& report, std::vector<std::string>& lines) {
  const RanksReport& ranks = report.ranks;
  const bool one = ranks.missing.size() == 1;
  if (!ranks.missing.empty())
    lines.push_back(
        "No trace of " + std::string(one ? "rank " : "ranks ") +
        first_few(ranks.missing, 16, [](uint32_t rank) { return std::to_string(rank); }) +
        (ranks.world_size ? " of " + std::to_string(*ranks.world_size) : std::string()) +
        ": totals are of the other ranks only; add " + (one ? "its trace." : "their traces."));
}

std::string to_utc(uint64_t ns) {
  const auto seconds = static_cast<time_t>(ns / 1'000'000'000);
  std::tm time{};
  std::array<char, 40> text{};
  if (::gmtime_r(&seconds, &time) == nullptr) return "-";
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &time);
  return text.data();
}

// "train.py --lr 1 (job 17, 2026-05-01 10:00:00 UTC): a.pb, b.pb and 6 more".
std::string run_text(const Report& report, const RunReport& run) {
  const TraceReport& first = report.traces[run.traces.front()];
  std::string text = cut(joined(first.header.command_line(), " ") + " ", 60) + "(";
  if (!run.header.job_id().empty()) text += "job " + cut(run.header.job_id(), 40) + ", ";
  for (const auto& [count, what] :
       {std::pair(run.header.requeues(), "requeue "), std::pair(run.header.restarts(), "restart ")})
    if (count > 0) text += what + to_grouped(count) + ", ";
  if (run.begin_ns) text += to_utc(*run.begin_ns) + ", ";
  const auto name = [&](size_t place) -> const std::string& {
    const TraceReport& trace = report.traces[place];
    return trace.files.empty() ? trace.name : trace.files.front();
  };
  return text + cut(first.header.hostname(), 40) + "): " + first_few(run.traces, 2, name);
}

bool lacks_more(const Report& report, const std::string& file) {
  return std::ranges::any_of(report.damage, [&](const DamageReport& d) {
    return d.file == file && damage_text(d.kind).partial;
  });
}

// A recording without its end, and nothing else missing from it. How far it goes is known, and not
// how much was done after that.
void add_endings(const Report& report, Damage kind, const std::string& one, const std::string& many,
                 const std::string& what, std::vector<std::string>& lines) {
  size_t open = 0;
  std::string first;
  for (const DamageReport& d : report.damage) {
    if (d.kind != kind || lacks_more(report, d.file)) continue;
    if (open++ == 0) first = d.file;
  }
  if (open == 0) return;
  lines.push_back((open == 1 ? first + ": the " + one
                             : std::to_string(open) + " " + many + ", first " + first) +
                  what + ": " + kLaterIsMissing + ".");
}

// The recorder says why in its last packets.
void add_failed_writes(const Report& report, std::vector<std::string>& lines) {
  for (const TraceReport& t : report.traces)
    for (const trace::Diagnostic& diagnostic : t.diagnostics)
      if (diagnostic.code() == "trace.write") {
        lines.push_back(t.name + ": " + cut(diagnostic.message(), 200) + ": " + kLaterIsMissing +
                        ", and totals are lower bounds (>=).");
        return;
      }
}

// The first of one code: that the program ran on without us, and of how much nothing says; or of
// how many launches another file had counters.
void add_diagnostic(const Report& report, std::string_view code, std::vector<std::string>& lines) {
  for (const TraceReport& t : report.traces)
    for (const trace::Diagnostic& diagnostic : t.diagnostics)
      if (diagnostic.code() == code) {
        lines.push_back(t.name + ": " + cut(diagnostic.message(), 300) + ".");
        return;
      }
}

// Launches that the user chose not to record.
void add_clock_units(const Report& report, std::vector<std::string>& lines) {
  const uint64_t below_ns = rough_below_ns(report), unit_ns = below_ns / kFewUnits;
  if (below_ns > 0)
    lines.push_back("Times were recorded in whole " +
                    (unit_ns == 1'000 ? std::string("microseconds")
                                      : "units of " + to_grouped(unit_ns) + " ns") +
                    ": a time or a gap below " + to_human_time(below_ns) +
                    " may be wrong by 2 % and more (~).");
}

void add_choice(const Report& report, std::vector<std::string>& lines) {
  std::set<std::string> choices;
  uint64_t passed_over = 0;
  for (const TraceReport& t : report.traces) {
    if (t.header.choice().empty()) continue;
    choices.insert(cut(t.header.choice(), 200));
    add_saturating(passed_over, t.ledger.passed_over());
  }
  if (choices.empty()) return;
  lines.push_back("Only some launches were recorded, by " + *choices.begin() +
                  (choices.size() > 1 ? " and other choices" : "") + ": " +
                  to_grouped(passed_over) +
                  " others were passed over meanwhile and are in no total.");
}

}  // namespace

std::string runs_notice(const Report& report) {
  constexpr size_t kShown = 3;
  const auto& runs = report.runs;
  if (runs.size() > 1) {
    std::string text = "These traces are of " + to_grouped(runs.size()) +
                       " runs, and every figure is of all of them together; for one run, give "
                       "its traces only. ";
    for (size_t i = 0; i < std::min(kShown, runs.size()); ++i)
      text += (i == 0 ? "" : "; ") + std::to_string(i + 1) + ": " + run_text(report, runs[i]);
    return text + (runs.size() > kShown ? "; and more, see runs in --format json" : "");
  }
  if (runs.empty() || runs.front().programs.empty()) return {};
  const auto& programs = runs.front().programs;
  std::string text = "These traces are of " + to_grouped(programs.size()) +
                     " programs that ran together, and every figure is of all of them: ";
  for (size_t i = 0; i < std::min(kShown, programs.size()); ++i)
    text += (i == 0 ? "" : "; ") + cut(programs[i], 60);
  return text + (programs.size() > kShown ? "; and more" : "") +
         ". For one of them, give its traces only.";
}

const char* reading_word(CounterReading reading) { return text_of(reading).word; }
const char* reading_code(CounterReading reading) { return text_of(reading).code; }

bool notice_of_no_counts(const Report& report) {
  return report.total.launches > 0 && !report.total.flop_complete() &&
         first_without(report) != nullptr;
}

std::string unmeasured_cause(const Report& report) {
  if (report.ledger.unmeasured.empty()) return {};
  const TraceReport* const t = first_without(report);
  if (t != nullptr && reason_of_all(report, *t).empty()) return text_of(t->counters.reading).cause;
  const std::string& reason = report.ledger.unmeasured.front().reason;
  const bool by_other_ranks = reason.starts_with("not_sampled") &&
                              std::ranges::any_of(report.traces, [](const TraceReport& trace) {
                                return trace.counters.reading == CounterReading::kOtherRanks;
                              });
  return reason_words(reason) +
         (by_other_ranks ? "; not all ranks read any: record with --measure-ranks all" : "");
}

std::string damage_words(const Report& report, size_t most) {
  std::string text;
  size_t kinds = 0;
  for (const auto& d : report.damage) {
    if (!damage_text(d.kind).partial || ++kinds > most) continue;
    const std::string count = d.count > 1 ? to_grouped(d.count) + " " : std::string();
    text += (text.empty() ? "" : "; ") + d.file + ": " + count + damage_text(d.kind).meaning;
  }
  return kinds > most ? text + "; and more, see Damage in the report" : text;
}

std::vector<std::string> notices(const Report& report) {
  std::vector<std::string> lines;
  if (std::string runs = runs_notice(report); !runs.empty()) lines.push_back(std::move(runs));
  add_choice(report, lines);
  add_counters(report, lines);
  add_ranks(report, lines);
  add_diagnostic(report, "cupti.fatal", lines);
  add_diagnostic(report, "import.counters", lines);
  add_failed_writes(report, lines);
  add_endings(report, Damage::kNoEnd, "trace was", "traces were",
              " not closed (by a program that a signal ended, say)", lines);
  add_endings(report, Damage::kGoesOn, "program was", "programs were",
              " still running when it was read", lines);
  add_clock_units(report, lines);
  const bool ours = std::ranges::any_of(
      report.traces, [](const TraceReport& t) { return t.header.imported_from().empty(); });
  if (ours && report.total.launches > 0 && report.ranges.empty())
    lines.push_back(
        "No NVTX range was seen: use `flopinj run`, and give it ranges (PyTorch: `flopinj run "
        "--torch`).");
  return lines;
}

}  // namespace flopinj::reduce
