// What single processes did, for programs that ask about many of them.
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

const char* range_text(const Report& report, const PathReport& path) {
  return path.range == kNoRange ? "" : report.ranges[path.range].path.c_str();
}

Table path_table(const Report& report) {
  Table table{"paths",
              {{"range", "range"},
               {"phase", "phase"},
               {"rule", "rule"},
               {"layer", "layer"},
               {"launches", "launches", Kind::kCount}}};
  for (const PathReport& path : report.paths)
    table.rows.push_back({range_text(report, path), report.rules[path.rule].phase,
                          report.rules[path.rule].rule, path.layer, path.launches});
  return table;
}

TableRow fact_row(const Report& report, const FactReport& fact) {
  const TraceReport& trace = report.traces[fact.trace];
  const PathReport& path = report.paths[fact.path];
  const SignatureReport& signature = report.signatures[fact.signature];
  Work work;  // as cells of work read it
  work.launches = fact.launches;
  work.unmeasured = fact.unmeasured;
  work.varying = fact.varying ? fact.launches : 0;
  work.flop = fact.flop;
  work.time = fact.time;
  Cell flop = exact_cell(work);
  if (fact.at_most) flop = marked(std::move(flop), Mark::kAtMost);
  Cell time = time_cell(work);
  if (fact.time.estimated > 0) time = marked(std::move(time), Mark::kEstimate);
  return {session_cell(trace),
          rank_cell(trace),
          trace.header.hostname(),
          trace.has_header ? Cell(uint64_t{trace.header.pid()}) : Cell::none(),
          fact.device ? Cell(uint64_t{*fact.device}) : Cell::none(),
          report.chips[fact.chip],
          fact.thread != 0 ? Cell(uint64_t{fact.thread}) : Cell::none(),
          report.thread_names[fact.thread_name],
          fact.stream != 0 ? Cell(uint64_t{fact.stream}) : Cell::none(),
          range_text(report, path),
          report.rules[path.rule].phase,
          path.layer,
          signature.kernel,
          hash_text(signature.stable_hash),
          fact.launches,
          fact.windowed,
          fact.graph,
          fact.unmeasured,
          fact.timed,
          fact.timed_ns,
          std::move(time),
          std::move(flop)};
}

Table fact_table(const Report& report) {
  Table table{"rows",
              {{"session", "session"},
               {"rank", "rank", Kind::kCount},
               {"hostname", "host"},
               {"pid", "pid", Kind::kCount},
               {"device", "device", Kind::kCount},
               {"chip", "chip"},
               {"thread", "thread", Kind::kCount},
               {"thread_name", "thread's name"},
               {"stream", "stream", Kind::kCount},
               {"range", "range"},
               {"phase", "phase"},
               {"layer", "layer"},
               {"kernel", "kernel"},
               {"stable_hash", "hash"},
               {"launches", "launches", Kind::kCount},
               {"windowed_launches", "windowed", Kind::kCount},
               {"graph_launches", "in graphs", Kind::kCount},
               {"unmeasured_launches", "unmeasured", Kind::kCount},
               {"timed_launches", "timed", Kind::kCount},
               {"timed_ns", "timed GPU time", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"flop", "FLOP", Kind::kFlop}}};
  table.each = [&report](const auto& visit) {
    for (const FactReport& fact : report.facts) visit(fact_row(report, fact));
  };
  return table;
}

std::vector<Table> fact_tables(const Report& report) {
  std::vector<Table> tables;
  if (!report.paths.empty()) tables.push_back(path_table(report));
  if (!report.facts.empty()) tables.push_back(fact_table(report));
  return tables;
}

}  // namespace

const Subject kFacts = {nullptr, nullptr, fact_tables};

}  // namespace flopinj::reduce
