// A collector with an edge made of lambdas, for tests: launches by number, times by correlation id.
#pragma once
#include <collector/collector.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "memory_sink.h"
#include "trace_reader.h"

namespace flopinj::test {

class Recording {
 public:
  // Without a clock, the machine's.
  explicit Recording(CollectorConfig config = {}, std::function<uint64_t()> now_ns = {})
      : collector(config, hooks(std::move(now_ns))) {}

  // The trace stays readable after the collector let go of its sink.
  class SharedSink : public MemorySink {
   public:
    explicit SharedSink(std::shared_ptr<std::string> copy) : copy_(std::move(copy)) {}
    bool write(std::string_view packets) override {
      if (!MemorySink::write(packets)) return false;
      *copy_ += packets;
      return true;
    }

   private:
    std::shared_ptr<std::string> copy_;
  };
  std::unique_ptr<SharedSink> sink() { return std::make_unique<SharedSink>(bytes); }
  void start() { start(sink()); }
  void start(std::unique_ptr<Sink> s) {
    ProcessInfo process;
    process.pid = 1;
    started = collector.start(std::move(s), process);
  }
  ReadTrace read() const { return read_trace(*bytes); }

  const KernelFunction* function(const std::string& mangled) {
    FunctionInfo info;
    info.name = mangled;
    return collector.add_function(info);
  }
  // One launch of `function` with grid `x`, timed as 100 ns x `x` when times are asked for next.
  void launch(ThreadState& thread, const KernelFunction& kernel, uint32_t x, StreamId stream,
              uint32_t flags = 0, DeviceId device = DeviceId{1}) {
    LaunchShape shape;
    shape.grid[0] = x;
    LaunchRecord record;
    record.signature = collector.signature(thread, kernel, shape, {})->id;
    record.path = thread.ranges.path();
    record.stream = stream;
    record.correlation = ++correlation;
    record.flags = flags;
    thread.callbacks.begins();
    collector.record(thread, device, record);
    time({record.correlation, 0, 1000ULL * record.correlation,
          1000ULL * record.correlation + 100ULL * x});
  }
  void rename(const std::string& to) {
    const std::lock_guard lock(mutex_);
    name = to;
  }
  void time(const KernelTime& t) {
    const std::lock_guard lock(mutex_);
    due_.push_back(t);
  }

  std::shared_ptr<std::string> bytes = std::make_shared<std::string>();
  std::atomic<uint32_t> correlation{0};
  std::atomic<uint64_t> lost{0};
  std::vector<std::string> log;  // read after close()
  std::string name = "worker";
  bool started = false;

 private:
  CollectorHooks hooks(std::function<uint64_t()> now_ns) {
    CollectorHooks h;
    h.now_ns = std::move(now_ns);
    h.flush_times = [this] {
      std::vector<KernelTime> due;
      {
        const std::lock_guard lock(mutex_);
        due.swap(due_);
      }
      collector.times(due);
    };
    h.thread_cpu_ns = [] { return uint64_t{77}; };
    h.thread_name = [this](uint32_t) {
      const std::lock_guard lock(mutex_);
      return name;
    };
    h.activity_lost = [this] { return lost.load(); };
    h.log_error = [this](std::string_view line) { log.emplace_back(line); };
    return h;
  }
  std::mutex mutex_;
  std::vector<KernelTime> due_;

 public:
  Collector collector;  // last: its writer thread uses the rest until it is closed
};

}  // namespace flopinj::test
