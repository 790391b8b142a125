// Numbers that a program gives to its ranges.
#include <collector/ranges/range_numbers.h>

#include <string>

#include "catch.h"
#include "recording.h"
#include "trace_reader.h"

using namespace flopinj;
using namespace flopinj::test;

TEST_CASE("numbers of a range are added up, by range and name") {
  RangeNumbers numbers;
  CHECK(numbers.take().empty());
  numbers.add(PathId{2}, StringId{7}, 4096);
  numbers.add(PathId{1}, StringId{7}, 5);
  numbers.add(PathId{2}, StringId{7}, 1000);
  numbers.add(PathId{2}, StringId{8}, 0);
  const auto all = numbers.take();
  REQUIRE(all.size() == 3);
  CHECK(all[0].path == PathId{1});
  CHECK(all[1].total == 5096);
  CHECK(all[1].times == 2);
  CHECK(all[2].name == StringId{8});
  CHECK(all[2].times == 1);
  CHECK(numbers.take().empty());  // nothing new
  numbers.add(PathId{1}, StringId{7}, 1);
  CHECK(numbers.take().size() == 3);  // all of them
  CHECK(numbers.lost() == 0);
}

TEST_CASE("numbers that find no room, or are too large to be added, are counted") {
  RangeNumbers numbers;
  numbers.add(PathId{1}, StringId{1}, UINT64_MAX);
  numbers.add(PathId{1}, StringId{1}, 1);
  CHECK(numbers.lost() == 1);
  for (uint32_t i = 0; i < RangeNumbers::kMost + 9; ++i) numbers.add(PathId{2 + i}, StringId{1}, 1);
  CHECK(numbers.lost() == 1 + 10);
  const auto all = numbers.take();
  REQUIRE(all.size() == RangeNumbers::kMost);
  CHECK(all[0].total == UINT64_MAX);
  CHECK(all[0].times == 1);
}

TEST_CASE("numbers of ranges are in the trace, with a diagnostic of those that are lost") {
  CollectorConfig config;
  config.level = GENERATE(Level::kLaunches, Level::kTally);
  config.flush_period_ms = 10;
  Recording r(config);
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 7);
  ThreadState* program = r.collector.add_thread(1);
  uint64_t total = 0;
  constexpr uint32_t kSteps = 30;
  for (uint32_t n = 1; n <= kSteps; ++n) {
    program->ranges.push({}, "data");
    const StringId name = r.collector.paths().intern_string("tokens");
    r.collector.range_numbers().add(program->ranges.path(), name, 1000 + n);
    total += 1000 + n;
    r.launch(*program, *kernel, 1, stream);
    program->ranges.pop({});
    if (n % 10 == 0) r.collector.flush();  // each time all sums so far are written
  }
  r.collector.range_numbers().add(PathId{}, r.collector.paths().intern_string("n"), UINT64_MAX);
  r.collector.range_numbers().add(PathId{}, r.collector.paths().intern_string("n"), 1);
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");
  pb::RangeNumbers last;
  size_t messages = 0, lost = 0;
  for (const auto& p : trace.packets) {
    if (p.has_range_numbers()) last = p.range_numbers(), ++messages;
    lost += p.diagnostic().code() == "ranges.numbers_lost";
  }
  CHECK(messages >= 1);
  CHECK(lost == 1);
  REQUIRE(last.range_path_size() == 2);
  CHECK(last.range_path(0) == 0);
  CHECK(last.total(0) == UINT64_MAX);
  CHECK(last.total(1) == total);
  CHECK(last.times(1) == kSteps);
}
