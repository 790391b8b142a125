// Each recorded process: where it ran, how its recording ended, and what the profiler cost it.
#include <array>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/parts/terms.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// A getter of what the process's trace says last of its cost, or of its recorder.
auto of_overhead(auto get) { return through(&TraceReport::overhead, get); }
auto of_recorder(auto get) { return through(&TraceReport::ledger, get); }

auto traces_with_overhead(const Report& report) {
  return only(report.traces, [](const TraceReport& t) {
    return t.has_overhead && t.header.imported_from().empty();  // another profiler's is not known
  });
}

Figure cost_share(const TraceReport& t) {
  return Figure::exact(t.own_ns()) / Figure::exact(t.real_wall_ns());
}

Columns<TraceReport> overhead_columns() {
  using Overhead = trace::SelfOverhead;
  Columns<TraceReport> c;
  const auto time = [&](const char* key, const char* heading, auto get, const char* meaning) {
    c.figure(key, heading, Kind::kNanoseconds, exactly(of_overhead(get)), meaning);
  };
  c.text(said::kProcess, &TraceReport::name);
  time("callbacks_ns", "callbacks", &Overhead::launch_callback_ns,
       "the profiler's work inside launches");
  time("windows_ns", "reading", &Overhead::window_ns, "time that reading counters cost");
  time("startup_ns", "start-up", &Overhead::startup_ns,
       "time that the library took to start, and what first launches waited for it");
  time("helper_cpu_ns", "helper CPU", &Overhead::helper_cpu_ns,
       "CPU time of the library's own threads");
  c.detail();
  c.figure("written_bytes", "written", Kind::kBytes, exactly(of_overhead(&Overhead::bytes_written)),
           "size of the trace")
      .detail();
  c.figure("wall_share", "share of wall", Kind::kShare, cost_share,
           "the profiler's cost as a share of the process's wall time, both in real time")
      .main();
  c.for_programs();
  c.count(said::kProcessNumber, number_of);
  c.count("launch_callbacks", "callbacks", of_overhead(&Overhead::launch_callbacks),
          "how often the profiler worked inside a launch");
  c.count("windows", "readings", of_overhead(&Overhead::window_count),
          "stretches of time in which counters were read");
  c.exact("wall_ns", "wall", Kind::kNanoseconds, of_overhead(&Overhead::wall_ns),
          "how long the recording took, by the recorder");
  return c;
}

const TableSource kOverheadTable =
    TableSource("overhead", "what the profiler cost", overhead_columns, traces_with_overhead)
        .long_list()
        .titled("The profiler's own cost")
        .when_empty("not in these traces");

// How the recording ended; empty where nothing says.
const char* end_word(const TraceReport& t) {
  static constexpr std::array<const char*, 3> kEnd = {"exit", "detach", "failure"};
  const auto reason = static_cast<size_t>(t.end.reason());
  return !t.has_end ? "" : reason < kEnd.size() ? kEnd[reason] : "unknown";
}

Columns<TraceReport> process_columns() {
  using trace::Header;
  const auto header = [](auto get) { return through(&TraceReport::header, get); };
  const auto from_header = [](auto get) {  // null where it is lost
    return [get](const TraceReport& t) {
      return t.has_header ? std::optional(std::invoke(get, t.header)) : std::nullopt;
    };
  };
  Columns<TraceReport> c;
  c.count(said::kNumberOf, number_of);
  c.count(
      "run", "run", [](const TraceReport& t) { return t.run + 1; },
      "number of the run it belongs to: runs.run");
  c.text(said::kSession, session_of);
  c.text("files", "files", [](const TraceReport& t) { return joined(t.files, " "); });
  c.text("producer", "producer", header(&Header::producer));
  c.text("imported_from", "imported from", header(&Header::imported_from),
         "the profiler that recorded it, where that was another one");
  c.flag("simulated", "simulated", from_header(&Header::simulated),
         "recorded on the simulated GPU; null where the header is lost");
  c.flag(said::kSimulatedClock, from_header(&Header::simulated_clock));
  c.flag(said::kPtxCounts, from_header(&Header::ptx_counts));
  c.text(said::kHost, header(&Header::hostname));
  c.count(said::kPid, pid_of);
  c.count(said::kRank, &TraceReport::rank);
  c.count("world_size", "ranks", unless_zero(header(&Header::world_size)),
          "ranks of the job, as its launcher said; null where none did");
  c.text("job_id", "job", header(&Header::job_id),
         "of the job, as its scheduler or the user names it; empty where neither did");
  c.text("command_line", "command line",
         [](const TraceReport& t) { return joined(t.header.command_line(), " "); });
  c.count("cupti_version", "CUPTI", from_header(&Header::cupti_version));
  c.count("driver_version", "driver", from_header(&Header::driver_version));
  c.count("devices", "devices", &TraceReport::devices, "devices that it launched on");
  c.count("begin_ns", "began", unless_zero(header(&Header::clock_realtime_ns)),
          "by the host's clock, CLOCK_REALTIME");
  c.figure(said::kWall, exactly(&TraceReport::wall_ns));
  c.text("end", "end", end_word,
         "exit, detach, failure or unknown; empty: killed, or still running");
  const auto work = [](auto get) { return through(&TraceReport::work, get); };
  c.count(said::kLaunches, work(&Work::launches));
  c.count(said::kUnmeasured, work(&Work::unmeasured));
  c.figure("coverage", "coverage", Kind::kShare,
           work([](const Work& w) { return share_figure(w.launches - w.unmeasured, w.launches); }),
           meaning_of_figure("Coverage"));
  c.figure(said::kFlop, work(flop_of));
  c.figure("hfu", "HFU", Kind::kShare, &TraceReport::hfu,
           "executed FLOP at peak / (wall time x devices); null where a part of it is not known");
  c.text("damage", "damage", &TraceReport::damage, "what is missing from its trace, with counts");
  c.text("name", "name", &TraceReport::name, "as other tables name the process");
  c.text("rank_source", "rank from", header(&Header::rank_source), "what said the rank");
  c.text("job_id_source", "job from", header(&Header::job_id_source), "what named the job");
  c.text("choice", "choice", or_null(header(&Header::choice)),
         "the options that chose which launches are recorded; null where all are");
  return c;
}

Columns<TraceReport> recorder_columns() {
  using trace::Ledger;
  Columns<TraceReport> c;
  c.count(said::kNumberOf, number_of);
  c.count(
      "passed_over", "passed over",
      [](const TraceReport& t) {
        return t.header.choice().empty() ? std::nullopt : std::optional(t.ledger.passed_over());
      },
      "launches that were not chosen (processes.choice); null where all are recorded");
  const auto count = [&](const char* key, auto get, const char* meaning = "") {
    c.count(key, key, of_recorder(get), meaning);
  };
  count("windows_opened", &Ledger::windows_opened, "stretches of time in which counters were read");
  count("windows_discarded", &Ledger::windows_discarded);
  count("activity_records", &Ledger::activity_records, "CUPTI's records of kernels");
  count("activity_unmatched", &Ledger::activity_unmatched, "of them: of no launch that it knew");
  count("activity_lost", &Ledger::activity_lost, "records that CUPTI dropped");
  count("names_cut", &Ledger::names_cut);
  count("names_generalised", &Ledger::names_generalised);
  count("ranges_overflowed", &Ledger::ranges_overflowed);
  c.count("diagnostics_left_out", "diagnostics left out", &TraceReport::diagnostics_left_out,
          "diagnostics that were too many to keep");
  return c;
}

using LabelOf = Of<TraceReport, trace::Header::Label>;
Columns<LabelOf> label_columns() {
  using Label = trace::Header::Label;
  Columns<LabelOf> c;
  c.count(said::kProcessNumber,
          [](const LabelOf& row, const Report& report) { return number_of(row.of, report); });
  c.text(said::kProcess, of_outer(&TraceReport::name));
  c.text("name", "label", of_one(&Label::name), "each process has a name once");
  c.text("value", "value", of_one(&Label::value));
  c.text("source", "from", of_one(&Label::source),
         "the environment variable that it came from: FLOPINJ_LABEL is flopinj run --label");
  return c;
}

const TableSource kProcessTable("processes", "recorded processes", process_columns,
                                &Report::traces);
const TableSource kRecorderTable("recorders", "what each process's recorder counted and left out",
                                 recorder_columns, &Report::traces);
const TableSource kLabelTable("labels", "words by which the job is found again", label_columns,
                              each_of(
                                  &Report::traces, [](const TraceReport& t) -> const auto& {
                                    return t.header.label();
                                  }));

}  // namespace

const Subject kProcesses = {{&kOverheadTable, &kProcessTable, &kRecorderTable, &kLabelTable}};

}  // namespace flopinj::reduce
