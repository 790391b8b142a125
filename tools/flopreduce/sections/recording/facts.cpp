// What single processes did, for programs that ask about many of them.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>

#include "sections/launch_tables.h"
#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

const std::string& range_text(const PathReport& path, const Report& report) {
  static const std::string kNone;
  return path.range == kNoRange ? kNone : report.ranges[path.range].path;
}
const std::string& phase_of_path(const PathReport& path, const Report& report) {
  return report.rules[path.rule].phase;
}

Figure flop_of_fact(const FactReport& fact) {
  if (fact.launches > 0 && fact.unmeasured >= fact.launches) return {};
  return {fact.flop, mark_if(fact.unmeasured + fact.unscreened > 0, Mark::kAtLeast) |
                         mark_if(fact.varying, Mark::kEstimate) |
                         mark_if(fact.at_most, Mark::kAtMost)};
}

// A getter of what the fact's path or signature has.
template <typename F>
auto of_path(F get) {
  return [get](const FactReport& fact, const Report& r) { return get(r.paths[fact.path], r); };
}
template <typename F>
auto of_signature(F get) {
  return [get](const FactReport& fact, const Report& r) {
    return std::invoke(get, r.signatures[fact.signature]);
  };
}

// Of launches of any processes.
template <typename Row>
void what_they_did(Columns<Row>& c) {
  c.count(said::kLaunches, &FactReport::launches);
  c.count("windowed_launches", "windowed", &FactReport::windowed,
          "launches made while counters were read");
  c.count("graph_launches", "in graphs", &FactReport::graph, "launches of CUDA graphs");
  c.count(said::kUnmeasured, &FactReport::unmeasured);
  c.count("timed_launches", "timed", &FactReport::timed,
          "launches that were timed while no counters were read");
  c.count("timed_ns", "timed GPU time", &FactReport::time_ns, "their GPU time");
  c.figure(said::kGpuTime,
           [](const FactReport& fact) { return gpu_time_of(fact.time, fact.launches); });
  c.figure(said::kFlop, flop_of_fact);
}

Columns<FactReport> fact_columns() {
  Columns<FactReport> c;
  c.text(said::kSession, of_trace(session_of));
  c.count(said::kRank, of_trace(&TraceReport::rank));
  c.text(said::kHost, of_trace([](const TraceReport& t) { return t.header.hostname(); }));
  c.count(said::kPid, of_trace(pid_of));
  c.count("device", "device", &FactReport::device, "CUDA's number of it in the process");
  c.text("chip", "chip",
         [](const FactReport& fact, const Report& r) { return r.chips[fact.chip]; });
  c.count("thread", "thread", unless_zero(&FactReport::thread),
          "the process's threads that launched, numbered from 1");
  c.text("thread_name", "thread's name",
         [](const FactReport& fact, const Report& r) { return r.thread_names[fact.thread_name]; });
  c.count("stream", "stream", unless_zero(&FactReport::stream),
          "the process's streams, numbered from 1");
  c.text("range", "range", of_path(range_text));
  c.text("phase", "phase", of_path(phase_of_path));
  c.text("layer", "layer",
         of_path([](const PathReport& path, const Report&) { return path.layer; }));
  c.text("kernel", "kernel", of_signature(&SignatureReport::kernel));
  c.text(said::kStableHash,
         of_signature([](const SignatureReport& s) { return hash_text(s.stable_hash); }));
  what_they_did(c);
  return c;
}

void each_fact(const Report& report, const std::function<void(const FactReport&)>& visit) {
  for (const FactReport& fact : report.facts) visit(fact);
}

const TableSource kFactTable =
    TableSource::pass_on("rows", "launches by process, thread, stream, range and signature",
                         fact_columns, each_fact)
        .of_facts();

// Launches of facts that agree in a text, added up.
struct FactGroup : FactReport {
  std::string text;
};
// A table of them is a line of kFactTables.
struct FactTable {
  const char *key, *about, *column, *heading;
  std::string (*text)(const FactReport&, const Report&);
};
constexpr FactTable kFactTables[] = {
    {"threads", "launches by the name of the thread that made them, of all processes",
     "thread_name", "thread's name",
     [](const FactReport& fact, const Report& r) { return r.thread_names[fact.thread_name]; }},
};

std::vector<FactGroup> group(const Report& report, const FactTable& table) {
  std::map<std::string, FactGroup> groups;
  for (const FactReport& fact : report.facts) {
    FactGroup& to = groups[table.text(fact, report)];
    to.Counts::add(fact);
    add_saturating(to.unmeasured, fact.unmeasured);
    add_saturating(to.unscreened, fact.unscreened);
    to.time.add(fact.time);
    add_saturating(to.flop, fact.flop);
    to.varying = to.varying || fact.varying;
    to.at_most = to.at_most || fact.at_most;
  }
  std::vector<FactGroup> all;
  for (auto& [text, of] : groups) {
    all.push_back(std::move(of));
    all.back().text = text;
  }
  std::ranges::stable_sort(all, std::greater<>(), &FactGroup::launches);
  return all;
}

const std::deque<TableSource>& fact_tables() {
  static const std::deque<TableSource> all = [] {
    std::deque<TableSource> made;
    for (const FactTable& table : kFactTables)
      made.emplace_back(
              table.key, table.about,
              [&table] {
                Columns<FactGroup> c;
                c.text(table.column, table.heading, &FactGroup::text);
                what_they_did(c);
                return c;
              },
              [&table](const Report& report) { return group(report, table); })
          .of_facts();
    return made;
  }();
  return all;
}

Subject facts() {
  Subject all = {{&launch_table("paths"), &kFactTable}};
  for (const TableSource& table : fact_tables()) all.sources.push_back(&table);
  return all;
}

}  // namespace

const Subject kFacts = facts();

}  // namespace flopinj::reduce
