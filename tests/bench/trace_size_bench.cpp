// Bytes per launch at the level `launches`, and the size of a trace of level `tally`, through the
// whole collector. Prints a table; takes no arguments.
#include <collector/collector.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

using namespace flopinj;

namespace {

class CountingSink : public Sink {
 public:
  explicit CountingSink(uint64_t& bytes) : count_(bytes) {}
  bool write(std::string_view packets) override {
    count_ += packets.size();
    bytes_ += packets.size();
    return true;
  }
  bool rewritable() const override { return true; }
  bool rewrite(uint64_t, std::string_view) override { return true; }
  bool close() override { return true; }
  const std::string& target() const override { return name_; }
  const std::string& error() const override { return none_; }

 private:
  uint64_t& count_;
  std::string name_ = "count", none_;
};

// One training step: kernels in order, each in a range, with a mean duration.
struct StepLaunches {
  struct Kernel {
    int function;
    uint32_t grid;
    const char* range;
    double mean_ns;
  };
  const char* name;
  std::vector<Kernel> kernels;
};

// A network of like layers: forward, backward, optimizer; kernels of 2 us to 2 ms.
StepLaunches network(const char* name, int layers, double scale) {
  StepLaunches step{name, {}};
  for (int l = 0; l < layers; ++l)
    for (int k = 0; k < 5; ++k)
      step.kernels.push_back({k, 64U + static_cast<uint32_t>(l % 7) * 32, "forward",
                              scale * (2'000 + 9'000.0 * k * (1 + l % 7))});
  for (int l = layers; l-- > 0;)
    for (int k = 0; k < 9; ++k)
      step.kernels.push_back({5 + k, 64U + static_cast<uint32_t>(l % 7) * 32, "backward",
                              scale * (2'500 + 11'000.0 * k * (1 + l % 7))});
  for (int l = 0; l < layers; ++l) step.kernels.push_back({14, 16, "optimizer", scale * 3'000});
  return step;
}

// The same launches every step, durations with a spread of 1 % (clocks and caches), gaps of about
// 1.3 us with a long tail, timed by a GPU clock that counts in 32 ns, as activity records do.
uint64_t bytes_of(const StepLaunches& step, Level level, int steps, uint64_t& launches) {
  uint64_t bytes = 0;
  std::mutex mutex;
  std::vector<KernelTime> due;
  Collector* self = nullptr;
  CollectorConfig config;
  config.level = level;
  CollectorHooks hooks;
  hooks.flush_times = [&] {
    std::vector<KernelTime> times;
    {
      const std::lock_guard lock(mutex);
      times.swap(due);
    }
    self->times(times);
  };
  Collector collector(config, hooks);
  self = &collector;
  collector.start(std::make_unique<CountingSink>(bytes), {});
  const StreamId stream = collector.add_stream(DeviceId{1}, 1, 7);
  ThreadState* thread = collector.add_thread(1);
  std::vector<const KernelFunction*> functions;
  for (int f = 0; f < 15; ++f) {
    FunctionInfo info;
    info.name = "_ZN2at6native29vectorized_elementwise_kernelILi4E" + std::to_string(f);
    functions.push_back(collector.add_function(info));
  }
  std::mt19937_64 random(1);
  std::normal_distribution<double> spread(1.0, 0.01);
  std::lognormal_distribution<double> gap(7.2, 0.5);
  uint64_t clock = 1'700'000'000'000'000'000;
  uint32_t correlation = 0;
  launches = 0;
  for (int s = 0; s < steps; ++s) {
    thread->ranges.push({}, "step");
    const char* range = nullptr;
    for (const StepLaunches::Kernel& kernel : step.kernels) {
      if (range != kernel.range) {
        if (range != nullptr) thread->ranges.pop({});
        thread->ranges.push({}, range = kernel.range);
      }
      LaunchShape shape;
      shape.grid[0] = kernel.grid;
      LaunchRecord record;
      record.signature =
          collector.signature(*thread, *functions[static_cast<size_t>(kernel.function)], shape, {})
              ->id;
      record.path = thread->ranges.path();
      record.stream = stream;
      record.correlation = ++correlation;
      collector.record(*thread, DeviceId{1}, record);
      clock += static_cast<uint64_t>(gap(random)) / 32 * 32;
      const uint64_t start = clock;
      clock += static_cast<uint64_t>(std::max(32.0, kernel.mean_ns * spread(random))) / 32 * 32;
      const std::lock_guard lock(mutex);
      due.push_back({record.correlation, 0, start, clock});
      ++launches;
    }
    thread->ranges.pop({});
    thread->ranges.pop({});
    if (launches % 8'192 < step.kernels.size()) collector.flush();  // about a second's launches
  }
  collector.close(EndReason::kExit);
  return bytes;
}

}  // namespace

int main() {
  std::printf("%-28s %10s %12s %10s\n", "sequence", "launches", "bytes", "per launch");
  for (const StepLaunches& step :
       {network("short kernels", 40, 1), network("long kernels", 40, 20)}) {
    for (const int steps : {10, 1'000}) {
      for (const Level level : {Level::kLaunches, Level::kTally}) {
        uint64_t launches = 0;
        const uint64_t bytes = bytes_of(step, level, steps, launches);
        const std::string name =
            std::string(step.name) + (level == Level::kTally ? ", tally" : ", launches");
        std::printf("%-28s %10llu %12llu %10.2f\n", name.c_str(),
                    static_cast<unsigned long long>(launches),
                    static_cast<unsigned long long>(bytes),
                    static_cast<double>(bytes) / static_cast<double>(launches));
      }
    }
  }
  return 0;
}
