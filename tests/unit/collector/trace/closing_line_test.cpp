// The line at the end of a recording.
#include <collector/trace/closing_line.h>

#include "catch.h"

using namespace flopinj;

namespace {

ProcessInfo measuring() {
  ProcessInfo process;
  process.counters = process.measures = true;
  process.mode = "multiplex";
  return process;
}

RecordingSummary of(uint64_t launches, uint64_t covered, uint64_t dropped = 0) {
  RecordingSummary summary;
  summary.bytes = 26'510;
  summary.ledger.devices.push_back({DeviceId{1}, launches, launches - dropped, dropped});
  summary.ledger.covered_launches = covered;
  return summary;
}

}  // namespace

TEST_CASE("the line has launches, coverage, size and the next command") {
  CHECK(closing_line(of(700, 700), measuring(), {"/t/demo.pb", ""}) ==
        "recorded 700 launches, counters read for all kernels (26.5 kB). Next: flopinj report "
        "/t/demo.pb");
  CHECK(closing_line(of(1'234'567, 1, 3), measuring(), {"a b", ""}) ==
        "recorded 1,234,567 launches, counters read for kernels of under 0.1 % of launches, "
        "3 lost (26.5 kB). Next: flopinj report 'a b'");
}

TEST_CASE("coverage is of GPU time where that is known, and never rounded to all or nothing") {
  RecordingSummary summary = of(100, 40);
  summary.ledger.timed_gpu_time_ns = 100'000;
  summary.ledger.covered_gpu_time_ns = 98'600;
  CHECK(closing_line(summary, measuring(), {"t", ""})
            .find("counters read for kernels of 98.6 % of GPU time") != std::string::npos);
  summary.ledger.covered_gpu_time_ns = 99'999;
  CHECK(closing_line(summary, measuring(), {"t", ""}).find("over 99.9 %") != std::string::npos);
}

TEST_CASE("what counters come to is not said: whether a metric covers all is not known here") {
  // A kernel whose tensor work no metric covers has counters, and no FLOP count in a report.
  for (const uint64_t covered : {0, 20, 48})
    CHECK(closing_line(of(48, covered), measuring(), {"t", ""}).find("FLOP") == std::string::npos);
}

TEST_CASE("why there are no counts is said as far as it is known") {
  ProcessInfo process = measuring();
  CHECK(closing_line(of(7, 0), process, {"t", ""}).find("counters read for no kernel") !=
        std::string::npos);
  process.measures = false;
  CHECK(closing_line(of(7, 0), process, {"t", ""}).find("left to the ranks that measure") !=
        std::string::npos);
  process.counters = false;
  process.mode = "timing";
  CHECK(closing_line(of(1, 0), process, {"t", ""}) ==
        "recorded 1 launch, no counters (mode timing) (26.5 kB). Next: flopinj report t");
  CHECK(closing_line({}, process, {"t", ""}) ==
        "recorded no kernel launch (0 B). Next: flopinj report t");
}

TEST_CASE("the first rank speaks for its job, and streams have no file to read") {
  ProcessInfo process = measuring();
  process.rank = 0;
  process.world_size = 4;
  CHECK(closing_line(of(7, 7), process, {"/t/j.rank0.pb", "/t/j.rank*.pb"}) ==
        "rank 0 of 4 recorded 7 launches, counters read for all kernels (26.5 kB). "
        "Next: flopinj report /t/j.rank*.pb");
  const auto streamed = closing_line(of(7, 7), measuring(), {"-", ""});
  CHECK(streamed.ends_with("Read it with flopinj report"));
  CHECK(closing_line(of(7, 7), measuring(), {"unix:/s", ""}).ends_with("at unix:/s has it"));
}
