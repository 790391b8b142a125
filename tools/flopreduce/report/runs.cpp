#include "report/runs.h"

#include <algorithm>
#include <numeric>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr uint64_t kRanksApartNs = 3'600'000'000'000;

// The children that Python's multiprocessing spawns have command lines of their own.
bool spawned(const std::string& command) {
  return command.find("multiprocessing") != std::string::npos;
}

}  // namespace

RecordedProcess::RecordedProcess(const trace::Header& of)
    : header(&of), command(joined(of.command_line(), " ")), begin_ns(of.clock_realtime_ns()) {}

Run::Run(const RecordedProcess& first) : header_(first.header), first_command_(first.command) {
  add(first);
}

bool Run::fits(const RecordedProcess& r) const {
  const trace::Header &h = *r.header, &first = *header_;
  if (h.job_id() != first.job_id()) return false;
  if (h.requeues() != first.requeues() || h.restarts() != first.restarts()) return false;
  if (h.world_size() != 0 && world_size_ != 0 && h.world_size() != world_size_) return false;
  if (processes_.contains(r.process())) return true;
  const bool together = r.begin_ns <= end_ns_ && first.clock_realtime_ns() <= r.end_ns;
  const bool same_host = hosts_.contains(h.hostname());
  if (h.rank() >= 0 && ranks_.contains(h.rank())) return false;
  if (h.rank() < 0 && h.run_id() != 0 && first.run_id() != 0) {
    if (h.run_id() == first.run_id()) return true;
    return together && !h.job_id().empty();
  }
  if (!h.job_id().empty()) return h.rank() >= 0 || together || same_host;
  if (h.rank() < 0) return together && same_host;
  if (ranks_.empty()) return together;
  return r.begin_ns <= end_ns_ || r.begin_ns - end_ns_ <= kRanksApartNs;
}

bool Run::same_program(const RecordedProcess& r) const {
  return fits(r) && (processes_.contains(r.process()) || first_command_ == r.command);
}

void Run::add(const RecordedProcess& r) {
  const trace::Header& h = *r.header;
  world_size_ = std::max(world_size_, h.world_size());
  end_ns_ = std::max(end_ns_, r.end_ns);
  processes_.insert(r.process());
  hosts_.insert(h.hostname());
  if (h.rank() >= 0)
    ranks_.insert(h.rank());
  else if (h.job_id().empty() && !spawned(r.command))
    commands_.insert(r.command);
}

Runs runs_of(const std::vector<RecordedProcess>& recordings, size_t most) {
  std::vector<size_t> order(recordings.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return recordings[i].begin_ns; });
  Runs found;
  auto& runs = found.runs;
  found.of.resize(recordings.size());
  for (const size_t i : order) {
    const RecordedProcess& r = recordings[i];
    // Of several that fit, the one of the same program.
    auto to =
        std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return run.same_program(r); });
    if (to == runs.end())
      to = std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return run.fits(r); });
    if (to == runs.end() && runs.size() < most)
      to = runs.emplace(runs.end(), r);
    else
      (to == runs.end() ? runs.back() : *to).add(r);
    found.of[i] = std::min(static_cast<size_t>(to - runs.begin()), runs.size() - 1);
  }
  return found;
}

}  // namespace flopinj::reduce
