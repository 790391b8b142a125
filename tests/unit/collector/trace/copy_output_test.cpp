// Copies against a model: in the trace are the instants at which each device copied, and sums by
// direction.
#include <collector/trace/copy_output.h>
#include <collector/writer/inbox.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "catch.h"
#include "memory_sink.h"
#include "trace_reader.h"

using namespace flopinj;
namespace pb = flopinj::trace;

namespace {

struct Written {
  explicit Written(Level level = Level::kLaunches) : output(writer, level) {}
  test::ReadTrace read(bool everything = true) {
    output.write(everything);
    REQUIRE(writer.flush());
    return test::read_trace(sink->bytes);
  }

  test::MemorySink* sink = new test::MemorySink;
  TraceWriter writer{std::unique_ptr<Sink>(sink)};
  CopyOutput output;
};

// By device: when it copied.
std::map<uint32_t, std::set<uint64_t>> instants(const test::ReadTrace& trace) {
  std::map<uint32_t, std::set<uint64_t>> of;
  for (const auto& packet : trace.packets) {
    const pb::Copies& copies = packet.copies();
    uint64_t now = copies.first_start_ns();
    for (int i = 0; i < copies.gap_ns_size(); ++i) {
      now += copies.gap_ns(i);
      for (uint64_t ns = 0; ns < copies.duration_ns(i); ++ns) of[copies.device()].insert(now + ns);
      now += copies.duration_ns(i);
    }
  }
  return of;
}

CopyTime copy(uint32_t device, uint64_t start, uint64_t end) {
  return {start, end, 10, {DeviceId{device}}, CopyKind::kHostToDevice, false};
}

}  // namespace

TEST_CASE("copies: the trace has the instants at which each device copied") {
  std::mt19937_64 random(7);
  Written w;
  std::map<uint32_t, std::set<uint64_t>> expected;
  std::map<std::tuple<uint32_t, int, int>, uint64_t> sums;  // by device, kind and column
  for (int group = 0; group < 20; ++group) {
    std::vector<CopyTime> copies;
    for (int i = 0; i < 100; ++i) {
      const auto device = static_cast<uint32_t>(1 + random() % 3);
      CopyTime one = copy(device, 1000 + random() % 20'000, 0);
      one.end_ns = one.start_ns + random() % 30;
      one.bytes = random() % 1000;
      one.kind = static_cast<CopyKind>(random() % 7);
      one.pageable = random() % 2 == 0;
      // A peer: both ends, one of which is the device that it is counted for.
      if (one.kind == CopyKind::kBetweenDevices)
        one.devices = {DeviceId{device}, DeviceId{device}, DeviceId{1 + device % 3}};
      copies.push_back(one);
      for (const DeviceId at : one.devices)
        for (uint64_t ns = one.start_ns; at && ns < one.end_ns; ++ns) expected[at.value].insert(ns);
      const int kind = static_cast<int>(one.kind);
      sums[{device, kind, 0}] += 1;
      sums[{device, kind, 1}] += one.bytes;
      sums[{device, kind, 2}] += one.pageable ? one.bytes : 0;
      sums[{device, kind, 3}] += one.end_ns - one.start_ns;
    }
    w.output.add(copies);
    if (group % 3 == 0) w.output.write(false);
  }
  const auto trace = w.read();
  CHECK(test::first_fault(trace) == "no header first");  // and nothing else
  CHECK(instants(trace) == expected);
  CHECK(w.output.lost() == 0);
  const pb::CopySums* last = nullptr;
  for (const auto& packet : trace.packets)
    if (packet.has_copy_sums()) last = &packet.copy_sums();
  REQUIRE(last != nullptr);
  std::map<std::tuple<uint32_t, int, int>, uint64_t> read;
  for (int i = 0; i < last->device_size(); ++i) {
    read[{last->device(i), last->kind(i), 0}] = last->copies(i);
    read[{last->device(i), last->kind(i), 1}] = last->bytes(i);
    read[{last->device(i), last->kind(i), 2}] = last->pageable_bytes(i);
    read[{last->device(i), last->kind(i), 3}] = last->total_ns(i);
  }
  CHECK(read == sums);
}

TEST_CASE("copies: those that overlap or touch are one time, and cost no more than one") {
  Written w;
  std::vector<CopyTime> copies;
  for (uint64_t i = 0; i < 1000; ++i) copies.push_back(copy(1, 1000 + 10 * i, 1010 + 10 * i));
  for (uint64_t i = 1000; i-- > 0;) copies.push_back(copy(2, 1000 + 10 * i, 1015 + 10 * i));
  w.output.add(copies);
  const auto trace = w.read();
  REQUIRE(trace.packets.size() == 3);
  for (int device = 0; device < 2; ++device)
    CHECK(trace.packets[static_cast<size_t>(device)].copies().duration_ns_size() == 1);
}

TEST_CASE("copies: what waits is bounded, and what has no time or no room is counted") {
  Written w;
  std::vector<CopyTime> copies;
  for (uint64_t i = 0; i <= kMaxCopyTimes; ++i)
    copies.push_back(copy(1, 1000 + 20 * i, 1010 + 20 * i));
  copies.push_back(copy(1, 0, 100));
  copies.push_back(copy(1, 200, 100));
  w.output.add(copies);
  CHECK(w.output.lost() == 2);
  REQUIRE(w.writer.flush());
  CHECK(instants(test::read_trace(w.sink->bytes))[1].size() == 10 * kMaxCopyTimes);  // early
  for (uint32_t device = 2; device < 2 + kMaxCopyDevices; ++device)
    w.output.add(std::vector{copy(device, 10, 20)});
  CHECK(w.output.lost() == 3);

  CopyQueue queue;
  const std::vector<CopyTime> many(kMaxQueuedCopies + 5);
  queue.push(many);
  CHECK(queue.overflowed() == 5);
  std::vector<CopyTime> taken;
  queue.take(taken);
  CHECK(taken.size() == kMaxQueuedCopies);
}

TEST_CASE("copies: at level tally the trace has sums alone") {
  Written w(Level::kTally);
  w.output.add(std::vector{copy(1, 1000, 1010), copy(1, 1020, 1030)});
  const auto trace = w.read();
  REQUIRE(trace.packets.size() == 1);
  CHECK(trace.revised);
  CHECK(trace.packets[0].copy_sums().copies(0) == 2);
}
