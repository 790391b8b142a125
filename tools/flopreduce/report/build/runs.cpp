#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "report/build_report.h"

namespace flopinj::reduce {
namespace {

constexpr uint64_t kRanksApartNs = 3'600'000'000'000;
// So many are told apart; further ones count with the last.
constexpr size_t kRunsToldApart = 256;

struct Recording {
  size_t trace = 0;
  uint64_t begin_ns = 0, end_ns = UINT64_MAX;  // the end of a killed one may not be known
  std::string command;
  const trace::Header* header = nullptr;

  auto process() const {
    return std::tuple(header->hostname(), header->pid(), header->rank(), command);
  }
};

struct Run {
  std::string job_id;
  std::string first_command;
  uint32_t world_size = 0;
  uint64_t begin_ns = 0, end_ns = 0;
  std::set<std::tuple<std::string, uint32_t, int32_t, std::string>> processes;
  std::set<int32_t> ranks;
  std::set<std::string> hosts, commands;  // commands: of processes without rank and job

  bool fits(const Recording& r) const;
  void add(const Recording& r);
};

bool Run::fits(const Recording& r) const {
  const trace::Header& h = *r.header;
  if (h.job_id() != job_id) return false;
  if (h.world_size() != 0 && world_size != 0 && h.world_size() != world_size) return false;
  if (processes.contains(r.process())) return true;
  const bool together = r.begin_ns <= end_ns && begin_ns <= r.end_ns;
  const bool same_host = hosts.contains(h.hostname());
  if (h.rank() >= 0 && ranks.contains(h.rank())) return false;
  if (!job_id.empty()) return h.rank() >= 0 || together || same_host;
  if (h.rank() < 0) return together && same_host;
  if (ranks.empty()) return together;
  return r.begin_ns <= end_ns || r.begin_ns - end_ns <= kRanksApartNs;
}

// The children that Python's multiprocessing spawns have command lines of their own.
bool spawned(const std::string& command) {
  return command.find("multiprocessing") != std::string::npos;
}

void Run::add(const Recording& r) {
  const trace::Header& h = *r.header;
  if (processes.empty()) {
    job_id = h.job_id();
    first_command = r.command;
    begin_ns = r.begin_ns;
  }
  world_size = std::max(world_size, h.world_size());
  end_ns = std::max(end_ns, r.end_ns);
  processes.insert(r.process());
  hosts.insert(h.hostname());
  if (h.rank() >= 0)
    ranks.insert(h.rank());
  else if (job_id.empty() && !spawned(r.command))
    commands.insert(r.command);
}

Recording recording_of(const Report& report, size_t index) {
  const TraceReport& t = report.traces[index];
  Recording r{index, t.header.clock_realtime_ns(), UINT64_MAX, {}, &t.header};
  for (const std::string& word : t.header.command_line()) r.command += word + ' ';
  if (!r.command.empty()) r.command.pop_back();
  std::optional<uint64_t> length = t.wall_ns();
  if (!length && t.header.clock_trace_ns() != 0)
    for (const TimeReport::Device& d : report.time.devices) {
      if (d.trace != index || !d.busy_ns || !d.idle_ns) continue;
      u128 end = *d.busy_ns + *d.idle_ns + d.begin_ns;
      if (end >= t.header.clock_trace_ns() && end <= UINT64_MAX)
        length =
            std::max(length.value_or(0), static_cast<uint64_t>(end) - t.header.clock_trace_ns());
    }
  if (length && *length <= UINT64_MAX - r.begin_ns) r.end_ns = r.begin_ns + *length;
  return r;
}

}  // namespace

void build_runs(Report& report) {
  std::vector<Recording> recordings;
  for (size_t i = 0; i < report.traces.size(); ++i) {
    const uint64_t begin = report.traces[i].header.clock_realtime_ns();
    if (report.traces[i].has_header && begin != 0 && begin <= INT64_MAX)
      recordings.push_back(recording_of(report, i));
  }
  std::stable_sort(recordings.begin(), recordings.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Run> runs;
  for (const Recording& r : recordings) {
    // Of several that fit, the one of the same program.
    size_t to = runs.size();
    for (size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i].fits(r)) continue;
      const bool same =
          runs[i].processes.contains(r.process()) || runs[i].first_command == r.command;
      if (to == runs.size() || same) to = i;
      if (same) break;
    }
    if (to == runs.size() && runs.size() < kRunsToldApart) {
      runs.emplace_back();
      report.runs.push_back({{}, r.header->job_id(), r.begin_ns, {}});
    }
    to = std::min(to, runs.size() - 1);
    runs[to].add(r);
    report.traces[r.trace].run = to;
  }
  if (runs.empty() && !report.traces.empty()) report.runs.emplace_back();
  for (size_t i = 0; i < report.traces.size(); ++i)
    report.runs[report.traces[i].run].traces.push_back(i);
  for (size_t i = 0; i < runs.size(); ++i)
    if (runs[i].commands.size() > 1)
      report.runs[i].programs.assign(runs[i].commands.begin(), runs[i].commands.end());
}

}  // namespace flopinj::reduce
