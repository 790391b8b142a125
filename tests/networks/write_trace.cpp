// Writes a trace from lines: write_trace < LINES > TRACE. What the lines say is the caller's; here is
// only the format. Fields are parted by tabs:
//   device NAME                                         the first line
//   thread ID NAME
//   path   ID PARENT NAME                               of ranges; parent 0: outermost
//   kernel ID ADDITIONS MULTIPLY_ADDS NAME              what each launch counts
//   launch THREAD KERNEL PATH SEQUENCE DURATION_NS      sequence: autograd's number + 1; 0: none
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "support/trace_builder.h"

namespace {

using flopinj::test::sass_metrics;
using flopinj::test::TraceBuilder;

// Strings share one space of ids: kernels have their own, threads 2,000 more, paths 11,000 more.
constexpr uint32_t kPaths = 10'000;

class Writer {
 public:
  // Whether the line was understood.
  bool line(const std::string& text) {
    std::istringstream in(text);
    std::string word;
    in >> word;
    if (word == "device") return device(rest(in));
    uint32_t id = 0, parent = 0;
    double additions = 0, multiply_adds = 0;
    if (word == "thread" && in >> id) {
      trace_.thread(id, rest(in));
    } else if (word == "path" && in >> id >> parent) {
      trace_.path(id + kPaths, parent == 0 ? 0 : parent + kPaths, rest(in));
    } else if (word == "kernel" && in >> id >> additions >> multiply_adds) {
      trace_.kernel(id, rest(in), id);
      trace_.samples(1, id, {{additions, 0, multiply_adds, 0, 0, 0, 0, 0, 0}});
    } else {
      return word == "launch" && launch(in);
    }
    return true;
  }
  const std::string& end() {
    flush();
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
  bool device(const std::string& name) {
    trace_.header();
    trace_.device(1, "GH100", name);
    trace_.stream();
    trace_.group(1, "sass", sass_metrics());
    return true;
  }
  // Those of one thread are a batch; one begins 10 ns after the end of the one before.
  bool launch(std::istringstream& in) {
    uint32_t thread = 0;
    TraceBuilder::Launch l;
    if (!(in >> thread >> l.signature >> l.path >> l.sequence >> l.duration_ns)) return false;
    if (thread != thread_) flush();
    thread_ = thread;
    if (l.path != 0) l.path += kPaths;
    batch_.push_back(l);
    ++launches_;
    return true;
  }
  void flush() {
    if (batch_.empty()) return;
    trace_.launches(batch_, thread_, 1, now_ns_);
    for (const auto& l : batch_) now_ns_ += static_cast<uint64_t>(l.duration_ns) + 10;
    batch_.clear();
  }

  TraceBuilder trace_;
  std::vector<TraceBuilder::Launch> batch_;
  uint32_t thread_ = 0;
  uint64_t now_ns_ = 1000, launches_ = 0;
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
