// Writes a trace from lines: write_trace < LINES > TRACE. What the lines say is the caller's; here
// is only the format. Fields are parted by tabs:
//   device NAME                                         the first line
//   tensor_device NAME                                  instead: of a GPU with tensor cores
//   tensor_groups                                       it has groups of counters for these, and
//                                                       one that says which kernels need them
//   thread ID NAME
//   path   ID PARENT NAME                               of ranges; parent 0: outermost
//   kernel ID ADDITIONS MULTIPLY_ADDS NAME              what each launch counts; - -: nothing was
//                                                       counted
//   screened KERNEL 0|1                                 whether it uses tensor cores was counted
//   tensor KERNEL MULTIPLY_ADDS                         and so was what each launch does there
//   launch THREAD KERNEL PATH SEQUENCE DURATION_NS      sequence: autograd's number + 1; 0: none;
//                                                       a call begins where it or the outermost
//                                                       operator changes
// Or the calls of NVTX as a program makes them, which the collector's own code turns into paths and
// sequence numbers; such a trace has no lines `path` and `launch`:
//   push   THREAD DOMAIN NAME                           DOMAIN: a name, or - for the default one
//   pop    THREAD DOMAIN
//   start  KEY DOMAIN NAME                              KEY: any number that `end` gives back
//   end    KEY
//   run    THREAD KERNEL DURATION_NS                    a launch within the ranges open there; with
//                                                       a fourth field "?": its time is not in the
//                                                       trace
//   step   THREAD                                       the next training step begins, which is the
//                                                       innermost range open there; 0: ends
#include <collector/ranges/range_stack.h>
#include <operator_range.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "support/trace_builder.h"

namespace {

using flopinj::PathId;
using flopinj::ProcessRanges;
using flopinj::RangePathTable;
using flopinj::RangeStack;
using flopinj::StringId;
using flopinj::test::sass_metrics;
using flopinj::test::TraceBuilder;

// Strings share one space of ids: paths have 1,000 more than their own, threads 2,000 more. Beyond
// them are those of threads, domains and kernels.
constexpr uint32_t kMaxPath = 39'000, kThreads = 40'000, kDomains = 50'000, kKernels = 60'000;

// The ranges of a program, as the collector keeps them.
class Ranges {
 public:
  StringId domain(const std::string& name) {
    return name == "-" ? StringId{} : table_.intern_string(name);
  }
  RangeStack& of(uint32_t thread) {
    auto& stack = stacks_[thread];
    if (!stack) stack = std::make_unique<RangeStack>(table_, process_);
    return *stack;
  }
  void start(uint64_t key, StringId domain, const std::string& name) {
    started_[key] = process_.start(domain, name);
  }
  bool end(uint64_t key) {
    const auto found = started_.find(key);
    if (found == started_.end()) return false;
    process_.end(found->second);
    started_.erase(found);
    return true;
  }
  // What was defined since the last call; whether it found room.
  bool define(TraceBuilder& trace) {
    const auto paths = table_.paths_after(last_path_);
    const auto strings = table_.strings_after(last_string_);
    for (const auto& s : strings) names_[s.id.value] = s.value;
    for (const auto& p : paths) {
      if (p.domain && domains_.emplace(p.domain.value, true).second)
        trace.string(kDomains + p.domain.value, names_[p.domain.value]);
      trace.path(p.id.value, p.parent.value, names_[p.name.value],
                 p.domain ? kDomains + p.domain.value : 0);
    }
    if (!paths.empty()) last_path_ = paths.back().id;
    if (!strings.empty()) last_string_ = strings.back().id;
    return last_path_.value < kMaxPath;
  }

 private:
  RangePathTable table_;
  ProcessRanges process_{table_};
  std::map<uint32_t, std::unique_ptr<RangeStack>> stacks_;
  std::map<uint64_t, uint64_t> started_;
  std::map<uint32_t, std::string> names_;
  std::map<uint32_t, bool> domains_;
  PathId last_path_;
  StringId last_string_;
};

class Writer {
 public:
  // Whether the line was understood.
  bool line(const std::string& text) {
    std::istringstream in(text);
    std::string word;
    in >> word;
    if (word == "device" || word == "tensor_device")
      return device(rest(in), word == "tensor_device");
    if (word == "tensor_groups") return tensor_groups();
    uint32_t id = 0, parent = 0;
    double count = 0;
    std::string additions, multiply_adds;
    if (word == "thread" && in >> id) {
      trace_.thread(id + kThreads, rest(in));
    } else if (word == "path" && in >> id >> parent) {
      const std::string name = rest(in);
      const uint32_t around = operator_of_[parent];
      operator_of_[id] = around != 0 ? around : flopinj::is_operator_range(name) ? id : 0;
      trace_.path(id, parent, name);
    } else if (word == "kernel" && in >> id >> additions >> multiply_adds) {
      trace_.kernel(id + kKernels, rest(in), id);
      if (additions != "-")
        trace_.samples(kInstructions, id + kKernels,
                       {{std::stod(additions), 0, std::stod(multiply_adds), 0, 0, 0, 0, 0, 0}});
    } else if (word == "screened" && in >> id >> count) {
      trace_.samples(kScreening, id + kKernels, {{count}});
    } else if (word == "tensor" && in >> id >> count) {
      trace_.samples(kTensor, id + kKernels, {{2 * count}});
    } else {
      return word == "launch" ? launch(in) : range(word, in);
    }
    return true;
  }
  const std::string& end() {
    flush();
    for (const auto& [step, path] : steps_) trace_.steps({step}, path);
    trace_.ledger(launches_, launches_, 0);
    trace_.overhead(0, now_ns_);
    trace_.end();
    return trace_.bytes();
  }

 private:
  static std::string rest(std::istringstream& in) {
    std::string text;
    std::getline(in >> std::ws, text);
    return text;
  }
  bool device(const std::string& name, bool has_tensor_cores) {
    trace_.header(1, false, 1, 100, 0, true);
    if (has_tensor_cores) {
      flopinj::trace::TracePacket p;
      p.mutable_device()->set_id(1);
      p.mutable_device()->set_name(name);
      p.mutable_device()->set_chip("GH100");
      p.mutable_device()->set_compute_major(9);
      trace_.add(p);
    } else {
      trace_.device(1, "GH100", name);
    }
    trace_.stream();
    trace_.group(kInstructions, "sass", sass_metrics());
    return true;
  }
  bool tensor_groups() {
    const std::string screening = "sm__inst_executed_pipe_tensor_op_hmma.sum";
    trace_.group(kScreening, "screening", {screening}, false);
    flopinj::trace::TracePacket p;
    auto* group = p.mutable_metric_group();
    group->set_id(kTensor);
    group->set_device(1);
    group->set_name("tensor");
    group->add_metric("sm__ops_path_tensor_src_bf16_dst_fp32.sum");
    group->add_needed_if()->set_metric(screening);
    trace_.add(p);
    return true;
  }
  bool range(const std::string& word, std::istringstream& in) {
    uint64_t id = 0;
    std::string domain;
    if (!(in >> id)) return false;
    const auto thread = static_cast<uint32_t>(id);
    if (word == "run") {
      TraceBuilder::Launch l;
      if (!(in >> l.signature >> l.duration_ns)) return false;
      l.path = ranges_.of(thread).path().value;
      l.sequence = ranges_.of(thread).sequence_plus_1();
      l.call = ranges_.of(thread).call_begins();
      l.step = in_step_ ? static_cast<uint32_t>(steps_.size()) : 0;
      ranges_.of(thread).launch_written();
      std::string unknown;
      in >> unknown;
      if (unknown == "?")
        add_untimed(thread, l);
      else
        add(thread, l);
    } else if (word == "step") {
      step(thread);
    } else if (word == "end") {
      return ranges_.end(id);
    } else if (!(in >> domain)) {
      return false;
    } else if (word == "push") {
      ranges_.of(thread).push(ranges_.domain(domain), rest(in));
    } else if (word == "start") {
      ranges_.start(id, ranges_.domain(domain), rest(in));
    } else {
      return word == "pop" && ranges_.of(thread).pop(ranges_.domain(domain)) >= 0;
    }
    return true;
  }
  void step(uint32_t thread) {
    flush();
    if (in_step_) steps_.back().first.duration_ns = now_ns_ - steps_.back().first.start_ns;
    in_step_ = thread != 0;
    if (!in_step_) return;
    const auto number = static_cast<uint32_t>(steps_.size() + 1);
    steps_.push_back({{number, now_ns_, 0}, ranges_.of(thread).path().value});
  }
  // Those of one thread are a batch; one begins 10 ns after the end of the one before.
  bool launch(std::istringstream& in) {
    uint32_t thread = 0;
    TraceBuilder::Launch l;
    if (!(in >> thread >> l.signature >> l.path >> l.sequence >> l.duration_ns)) return false;
    const std::pair call{operator_of_[l.path], l.sequence};
    l.call = std::exchange(last_[thread], call) != call;
    add(thread, l);
    return true;
  }
  void add(uint32_t thread, TraceBuilder::Launch l) {
    if (thread != thread_ || batch_.size() == kBatch) flush();
    thread_ = thread;
    l.signature += kKernels;
    batch_.push_back(l);
    ++launches_;
  }
  // What comes after it begins when it would.
  void add_untimed(uint32_t thread, TraceBuilder::Launch l) {
    flush();
    const auto took = static_cast<uint64_t>(l.duration_ns) + kGapNs;
    l.duration_ns = -1;
    add(thread, l);
    flush();
    now_ns_ += took;
  }
  void flush() {
    if (batch_.empty()) return;
    if (!ranges_.define(trace_))
      std::fprintf(stderr, "write_trace: too many paths\n"), std::exit(2);
    trace_.launches(batch_, thread_ + kThreads, 1, now_ns_);
    for (const auto& l : batch_)
      if (l.duration_ns >= 0) now_ns_ += static_cast<uint64_t>(l.duration_ns) + kGapNs;
    batch_.clear();
  }

  static constexpr uint32_t kInstructions = 1, kScreening = 2, kTensor = 3;  // groups of counters
  static constexpr uint64_t kGapNs = 10;    // between launches, as TraceBuilder has it
  static constexpr size_t kBatch = 32'768;  // launches at most, proto/FORMAT.md
  TraceBuilder trace_;
  Ranges ranges_;
  std::vector<TraceBuilder::Launch> batch_;
  uint32_t thread_ = 0;
  uint64_t now_ns_ = 1000, launches_ = 0;
  std::vector<std::pair<TraceBuilder::Step, uint32_t>> steps_;  // and the ranges' paths
  bool in_step_ = false;                                        // the last of them
  std::map<uint32_t, uint32_t> operator_of_;                    // the outermost one, by path
  std::map<uint32_t, std::pair<uint32_t, uint64_t>> last_;      // of these and numbers, by thread
};

}  // namespace

int main() {
  Writer writer;
  int number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (writer.line(line)) continue;
    std::fprintf(stderr, "write_trace: line %d is not understood: %s\n", number, line.c_str());
    return 2;
  }
  const std::string& bytes = writer.end();
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() ? 0 : 3;
}
