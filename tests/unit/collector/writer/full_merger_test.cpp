// More launches at once than the writer thread keeps waiting for their times.
#include <collector/writer/launch_merger.h>

#include "catch.h"
#include "recording.h"

using namespace flopinj;
using test::Recording;

TEST_CASE("launches that fill the writer's memory while threads end are all in the trace") {
  constexpr uint32_t kEnded = 32, kNodes = 65'536, kGraphLaunches = 17;
  static_assert(uint64_t{kNodes} * kGraphLaunches > kMaxPending);
  // Nothing is drained before flush().
  CollectorConfig config;
  config.drain_period_ms = config.flush_period_ms = 3'600'000;
  config.close_timeout_ms = 120'000;
  Recording r(config);
  r.start();
  REQUIRE(r.started);
  r.collector.add_device(DeviceId{1}, {});
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 7);
  const KernelFunction* const kernel = r.function("k");
  ThreadState* const thread = r.collector.add_thread(1);
  REQUIRE(thread != nullptr);
  for (uint32_t i = 0; i < kEnded; ++i) {
    ThreadState* const ended = r.collector.add_thread(100 + i);
    REQUIRE(ended != nullptr);
    r.launch(*ended, *kernel, 1, stream);
    r.collector.retire_thread(ended);
  }
  GraphNode node;
  node.signature = r.collector.signature(*thread, *kernel, {}, {})->id;
  LaunchRecord record;
  record.flags = LaunchRecord::kGraph;
  record.stream = stream;
  record.graph = r.collector.add_graph(std::vector<GraphNode>(kNodes, node));
  for (uint32_t i = 0; i < kGraphLaunches; ++i) {
    record.correlation = ++r.correlation;
    r.collector.record(*thread, DeviceId{1}, record, kNodes);
  }
  r.collector.flush();
  r.collector.close(EndReason::kExit);

  uint64_t recorded = 0, dropped = 0;
  for (const auto& packet : r.read().packets)
    for (const auto& device : packet.ledger().device()) {
      recorded = device.recorded();
      dropped = device.dropped();
    }
  CHECK(recorded == kEnded + uint64_t{kNodes} * kGraphLaunches);
  CHECK(dropped == 0);
}
