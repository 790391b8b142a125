// Writes a small trace through the whole collector, for the test that protoc reads it:
// sample_trace FILE
#include <collector/collector.h>

#include <iostream>

int main(int argc, char** argv) {
  using namespace flopinj;
  if (argc != 2) {
    std::cerr << "usage: collector_sample_trace FILE\n";
    return 2;
  }
  auto opened = open_sink(argv[1], {true, 1000});
  if (!opened.sink) {
    std::cerr << opened.error << '\n';
    return 1;
  }
  Collector collector({}, {});
  ProcessInfo process;
  process.hostname = "sample-host";
  collector.start(std::move(opened.sink), process);
  DeviceInfo device;
  device.name = "Sample GPU";
  collector.add_device(DeviceId{1}, device);
  FunctionInfo info;
  info.name = "sample_kernel";
  const KernelFunction* kernel = collector.add_function(info);
  ThreadState* thread = collector.add_thread(1);
  thread->ranges.push({}, "forward");
  for (uint32_t i = 1; i <= 3; ++i) {
    LaunchRecord record;
    record.signature = collector.signature(*thread, *kernel, {}, {})->id;
    record.path = thread->ranges.path();
    record.stream = collector.add_stream(DeviceId{1}, 1, 1);
    record.correlation = i;
    collector.record(*thread, DeviceId{1}, record);
    const KernelTime time{i, 0, 1000ULL * i, 1000ULL * i + 17};
    collector.times({&time, 1});
  }
  collector.diagnostic(Severity::kWarning, "sample.code", "a message");
  collector.close(EndReason::kExit);
  return 0;
}
