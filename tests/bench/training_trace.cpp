// The trace of a training program that never ran, written by the real encoder: the reducer's
// benchmark reads it. training_trace LAUNCHES TRACE.pb [--operators] [EVENTS.json]
//
// A step of a transformer with 24 blocks: forward in NVTX ranges of block and operator, backward on
// a thread of its own in a range for each operator, its gradients summed up on a second stream
// meanwhile, an optimizer. 624 launches of 242 signatures; durations with a spread of 1 %, gaps
// with a long tail, flushed every 250 ms as the collector does. With --operators ranges are named
// as PyTorch's emit_nvtx names operators. EVENTS.json has the same events as a Chrome trace. Prints
// what a reader has to find: launches and their GPU time.
#include <collector/trace/trace_writer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace flopinj;

namespace {

// xorshift64*, and sums of its parts for what should look normal.
struct Random {
  uint64_t state = 88172645463325252;
  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ULL;
  }
  // About normal, standard deviation 1, from -3.5 to 3.5.
  double normal() {
    const uint64_t r = next();
    double sum = 0;
    for (unsigned i = 0; i < 4; ++i) sum += static_cast<double>(r >> (16 * i) & 0xFFFF);
    return (sum / 65535 - 2) * 1.732;
  }
};

struct Kernel {
  std::string name;
  uint32_t grid = 0;
};
// One launch of the step.
struct Place {
  uint32_t signature = 0, path = 0, thread = 1, stream = 1;
  uint64_t sequence_plus_1 = 0;
  double mean_ns = 0;
};

class Program {
 public:
  static constexpr uint32_t kBlocks = 24;
  static constexpr uint32_t kAutograd = 2, kGradients = 2;  // thread, stream

  explicit Program(bool names_operators) {
    const uint32_t step = path(0, "step");
    const uint32_t forward = path(step, "forward");
    for (uint32_t b = 0; b < kBlocks; ++b) {
      const uint32_t block = path(forward, "blocks." + std::to_string(b));
      for (size_t k = 0; k < kForward.size(); ++k)
        add(kForward[k], b,
            path(block, (names_operators ? "aten::" : "") + std::string(kForward[k])), 1, 1,
            sequence_of(b, k), 3'000 + 4'000.0 * static_cast<double>(k));
    }
    for (uint32_t b = kBlocks; b-- > 0;) {
      double mean_ns = 4'000;
      for (const Backward& back : kBackward) {
        const std::string forward_name = kForward[back.forward];
        add(back.kernel, b,
            path(0, names_operators ? forward_name + "Backward0" : "backward of " + forward_name),
            kAutograd, 1, sequence_of(b, back.forward), mean_ns);
        mean_ns += 5'000;
      }
      add("all_reduce", 0, path(0, "all_reduce"), kAutograd, kGradients, 0, 90'000);
    }
    const uint32_t optimizer = path(step, "optimizer");
    for (uint32_t i = 0; i < kBlocks; ++i) add("multi_tensor_adam", 0, optimizer, 1, 1, 0, 8'000);
  }

  Definitions definitions() {
    Definitions d;
    for (const auto& [parent, name] : paths_) {
      const auto id = static_cast<uint32_t>(d.paths.size() + 1);
      d.strings.push_back({StringId{id}, name});
      d.paths.push_back({PathId{id}, PathId{parent}, StringId{id}, {}});
    }
    for (const Kernel& kernel : kernels_) {
      FunctionInfo info;
      info.name = kernel.name;
      const KernelFunction* function = table_.intern_function(info);
      LaunchShape shape;
      shape.grid[0] = kernel.grid;
      shape.block[0] = 256;
      d.signatures.push_back(table_.intern_signature(*function, shape, 1, 0));
      if (function->id.value <= d.functions.size()) continue;
      const auto id = StringId{static_cast<uint32_t>(paths_.size() + function->id.value)};
      d.strings.push_back({id, kernel.name});
      d.functions.push_back(function);
      d.function_names.push_back(id);
    }
    const auto last = StringId{static_cast<uint32_t>(10'000)};
    d.strings.push_back({last, "pt_autograd_0"});
    d.threads = {{ThreadId{1}, 100, {}}, {ThreadId{kAutograd}, 101, last}};
    d.streams = {{StreamId{1}, DeviceId{1}, 1, 7}, {StreamId{kGradients}, DeviceId{1}, 1, 13}};
    return d;
  }
  const std::vector<Place>& step() const { return step_; }
  static constexpr uint64_t operators() { return kBlocks * kForward.size(); }  // of a step
  size_t signatures() const { return kernels_.size(); }
  const Kernel& kernel(uint32_t signature) const { return kernels_[signature - 1]; }
  std::string path_name(uint32_t id) const {
    if (id == 0) return "";
    const auto& [parent, name] = paths_[id - 1];
    return parent == 0 ? name : path_name(parent) + "/" + name;
  }

 private:
  static constexpr std::array kForward = {"layer_norm", "gemm_qkv", "attention", "gemm_out",
                                          "add",        "rms_norm", "gemm_up",   "gelu",
                                          "gemm_down",  "residual"};
  struct Backward {
    const char* kernel;
    size_t forward;  // index in kForward
  };
  static constexpr std::array<Backward, 14> kBackward = {{{"d_residual", 9},
                                                          {"d_gemm_down", 8},
                                                          {"d_weight_down", 8},
                                                          {"d_gelu", 7},
                                                          {"d_gemm_up", 6},
                                                          {"d_weight_up", 6},
                                                          {"d_rms_norm", 5},
                                                          {"d_add", 4},
                                                          {"d_gemm_out", 3},
                                                          {"d_weight_out", 3},
                                                          {"d_attention", 2},
                                                          {"d_gemm_qkv", 1},
                                                          {"d_weight_qkv", 1},
                                                          {"d_layer_norm", 0}}};

  // Plus 1, in the first step.
  static uint64_t sequence_of(uint32_t block, size_t forward) {
    return 1 + block * kForward.size() + forward;
  }
  uint32_t path(uint32_t parent, const std::string& name) {
    for (size_t i = 0; i < paths_.size(); ++i)
      if (paths_[i] == std::pair(parent, name)) return static_cast<uint32_t>(i + 1);
    paths_.emplace_back(parent, name);
    return static_cast<uint32_t>(paths_.size());
  }
  void add(const std::string& name, uint32_t block, uint32_t path, uint32_t thread, uint32_t stream,
           uint64_t sequence_plus_1, double mean_ns) {
    const uint32_t grid = 64 + block % 10 * 32;  // widths differ between blocks
    uint32_t id = 0;
    for (size_t i = 0; i < kernels_.size() && id == 0; ++i)
      if (kernels_[i].name == name && kernels_[i].grid == grid) id = static_cast<uint32_t>(i + 1);
    if (id == 0) {
      kernels_.push_back({name, grid});
      id = static_cast<uint32_t>(kernels_.size());
    }
    step_.push_back({id, path, thread, stream, sequence_plus_1, mean_ns * (1 + block % 10 * 0.1)});
  }

  SignatureTable table_;
  std::vector<Kernel> kernels_;
  std::vector<std::pair<uint32_t, std::string>> paths_;  // parent, name
  std::vector<Place> step_;
};

// Samples of fused multiply-adds for every kernel but the collectives, which are never measured.
void write_samples(TraceWriter& writer, const Program& program) {
  MetricGroupPlan plan;
  plan.name = "sass";
  plan.metrics = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"};
  plan.required = true;
  writer.metric_group(GroupId{1}, DeviceId{1}, plan);
  SampleBatch samples;
  samples.group = GroupId{1};
  samples.window = 1;
  for (uint32_t s = 1; s <= program.signatures(); ++s) {
    if (program.kernel(s).name == "all_reduce") continue;
    samples.signatures.push_back(SignatureId{s});
    samples.paths.push_back({});
    samples.values.push_back(1e6 + s);
  }
  writer.samples(samples);
}

class Events {
 public:
  explicit Events(const char* path) : file_(path != nullptr ? std::fopen(path, "w") : nullptr) {
    if (file_ != nullptr) std::fputs("{\"traceEvents\":[", file_);
  }
  ~Events() {
    if (file_ == nullptr) return;
    std::fputs("\n]}\n", file_);
    std::fclose(file_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  void add(const Program& program, const Place& p, uint64_t begin, uint64_t end) {
    if (file_ == nullptr) return;
    const Kernel& kernel = program.kernel(p.signature);
    std::fprintf(file_,
                 "%s\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":%u,"
                 "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"grid\":%u,\"range\":\"%s\"}}",
                 first_ ? "" : ",", kernel.name.c_str(), p.stream, static_cast<double>(begin) / 1e3,
                 static_cast<double>(end - begin) / 1e3, kernel.grid,
                 program.path_name(p.path).c_str());
    first_ = false;
  }

 private:
  std::FILE* file_;
  bool first_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const uint64_t wanted = std::strtoull(argv[1], nullptr, 10);
  const bool names_operators = argc > 3 && std::strcmp(argv[3], "--operators") == 0;
  const int events_at = names_operators ? 4 : 3;
  SinkOptions options;
  options.force = true;
  auto opened = open_sink(argv[2], options);
  if (!opened.sink) {
    std::fprintf(stderr, "training_trace: %s\n", opened.error.c_str());
    return 3;
  }
  TraceWriter writer(std::move(opened.sink));
  Events events(argc > events_at ? argv[events_at] : nullptr);
  Program program(names_operators);
  ProcessInfo process;
  process.pid = 1;
  process.hostname = "generated";
  process.simulated = process.simulated_clock = true;
  process.session_id = 1;
  writer.header(process, Level::kLaunches);
  DeviceInfo device;
  device.name = "simgpu GA100 (simulated)";  // whose peaks are known, for the ledger
  device.chip = "GA100";
  writer.device(DeviceId{1}, device);
  writer.definitions(program.definitions());
  write_samples(writer, program);

  constexpr uint64_t kFlushNs = 250'000'000;
  constexpr uint64_t kBegin = 1'000'000'000'000;
  Random random;
  std::map<std::pair<uint32_t, uint32_t>, LaunchColumns> columns;
  std::array<uint64_t, 3> free_at{kBegin, kBegin, kBegin};  // by stream
  uint64_t launches = 0;
  uint64_t gpu_ns = 0;
  uint64_t flushed_at = kBegin;
  uint64_t steps = 0;
  const auto flush = [&] {
    for (auto& [key, c] : columns) {
      writer.launches(c);
      c.clear();
    }
    writer.flush();
  };
  for (; launches < wanted; ++steps)
    for (const Place& p : program.step()) {
      if (launches == wanted) break;
      uint64_t& free = free_at[p.stream];
      if (p.stream == Program::kGradients) free = std::max(free, free_at[1]);
      const auto gap = static_cast<uint64_t>(900 + 300 * std::abs(random.normal()));
      const bool stalls = random.next() % 2000 == 0;  // the program was late with a launch
      const uint64_t begin = free + gap + (stalls ? random.next() % 2'000'000 : 0);
      const auto duration = static_cast<uint64_t>(p.mean_ns * (1 + 0.01 * random.normal()));
      const uint64_t end = free = begin + duration;
      TimedLaunch launch;
      launch.signature = SignatureId{p.signature};
      launch.path = PathId{p.path};
      if (p.sequence_plus_1 != 0)
        launch.sequence_plus_1 = p.sequence_plus_1 + steps * Program::operators();
      launch.start_ns = begin;
      launch.end_ns = end;
      auto& to =
          columns.try_emplace(std::pair(p.thread, p.stream), ThreadId{p.thread}, StreamId{p.stream})
              .first->second;
      if (to.full()) {
        writer.launches(to);
        to.clear();
      }
      (void)to.add(launch);
      events.add(program, p, begin, end);
      ++launches;
      gpu_ns += duration;
      if (end > flushed_at + kFlushNs) {
        flushed_at = end;
        flush();
      }
    }
  flush();
  LedgerSnapshot ledger;
  ledger.devices = {{DeviceId{1}, launches, launches, 0}};
  writer.ledger(ledger);
  const uint64_t end = *std::max_element(free_at.begin(), free_at.end());
  OverheadSnapshot overhead;
  overhead.wall_ns = overhead.real_wall_ns = end - kBegin;
  writer.self_overhead(overhead);
  writer.end(EndReason::kExit, end);
  if (!writer.close()) return 3;
  std::printf("{\"launches\": %llu, \"gpu_time_ns\": %llu, \"signatures\": %zu, \"bytes\": %llu}\n",
              static_cast<unsigned long long>(launches), static_cast<unsigned long long>(gpu_ns),
              program.signatures(), static_cast<unsigned long long>(writer.bytes()));
  return 0;
}
