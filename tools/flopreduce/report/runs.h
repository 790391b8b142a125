// Which recordings belong together: a run is one command, or one job of a launcher, with all its
// processes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "flop_trace.pb.h"

namespace flopinj::reduce {

// Of one process. The header must outlive it.
struct RecordedProcess {
  const trace::Header* header;
  std::string command;
  // By CLOCK_REALTIME. The end of a killed process may not be known.
  uint64_t begin_ns, end_ns = UINT64_MAX;

  explicit RecordedProcess(const trace::Header& of);
  auto process() const {
    return std::tuple(header->hostname(), header->pid(), header->rank(), command);
  }
};

// Recordings are of several runs where their jobs, their world sizes or how often they were started
// again differ; where two processes have one rank; where ranks without a job ran more than an hour
// apart; and, where nothing gives a rank, where another `flopinj run` started them and they ran one
// after another, or, not having been started by it, they ran so (of one job: on different hosts),
// or without a job on different hosts. Recordings of one process, as of repeated attaching, are of
// one run.
class Run {
 public:
  explicit Run(const RecordedProcess& first);
  bool fits(const RecordedProcess& recording) const;
  // It fits, and is of a process or a program that is in the run.
  bool same_program(const RecordedProcess& recording) const;
  void add(const RecordedProcess& recording);
  // Of processes without rank and job.
  const std::set<std::string>& commands() const { return commands_; }
  // What its first recording says.
  const trace::Header& header() const { return *header_; }

 private:
  const trace::Header* header_;
  std::string first_command_;
  uint32_t world_size_ = 0;
  uint64_t end_ns_ = 0;
  std::set<std::tuple<std::string, uint32_t, int32_t, std::string>> processes_;
  std::set<int32_t> ranks_;
  std::set<std::string> hosts_, commands_;
};

struct Runs {
  std::vector<Run> runs;   // in the order in which they began
  std::vector<size_t> of;  // by recording, the place in `runs`
};
// Of more than `most` the last ones are one.
Runs runs_of(const std::vector<RecordedProcess>& recordings, size_t most = 256);

}  // namespace flopinj::reduce
