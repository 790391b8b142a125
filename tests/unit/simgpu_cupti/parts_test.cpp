// Parts of the library alone: environment, counters, images.
#include <cupti_version.h>

#include "catch.h"
#include "chips.h"
#include "counters/config_image.h"
#include "counters/counter_image.h"
#include "counters/metrics.h"
#include "environment.h"

using namespace simgpu::cupti;
using simgpu::Count;
using simgpu::KernelRun;

TEST_CASE("versions are told by release or by API number") {
  CHECK(parse_version("12.1") == 18);
  CHECK(parse_version("12.6") == 24);
  CHECK(parse_version("12.9.1") == 28);
  CHECK(parse_version("13.0") == 130000);
  CHECK(parse_version("26") == 26);
  CHECK(parse_version("130100") == 130100);
  for (const char* text : {"", "12.5", "17", "29", "129999", "thirteen", "24x"})
    CHECK(parse_version(text) == 0);
}

TEST_CASE("metrics read the counts that their names say") {
  KernelRun run{};
  run.start_ns = 100, run.end_ns = 350, run.cycles = 40, run.sm_count = 132;
  run.grid[0] = 2, run.grid[1] = 5, run.grid[2] = 1;
  run.counts[Count::kHfma] = 7;
  run.counts[Count::kDadd] = 3, run.counts[Count::kDfma] = 4;
  run.counts[Count::kFfma] = 20, run.counts[Count::kThreads] = 64;
  run.counts[Count::kTensorFp16] = 600, run.counts[Count::kTensorFp64] = 300,
  run.counts[Count::kTensorInt8] = 100;
  run.counts[Count::kTensorInstructions] = 10;
  run.counts[Count::kGroupFp16] = 3000, run.counts[Count::kGroupInt8] = 1000;
  run.counts[Count::kGroupInstructions] = 8;
  run.counts[Count::kDramReadBytes] = 64, run.counts[Count::kDramWriteBytes] = 32;
  const CounterValues values = observe(run);
  const uint32_t chip = find_chip("GH100").value();
  const auto value = [&](const char* name) {
    return evaluate(find_metric(chip, name).value(), values);
  };
  CHECK(value("smsp__sass_thread_inst_executed_op_hfma_pred_on.sum") == 7);
  CHECK(value("sm__sass_thread_inst_executed_op_hfma_pred_on.sum") == 7);
  CHECK(value("smsp__thread_inst_executed_pipe_fp64_pred_on.sum") == 7);
  CHECK(value("smsp__thread_inst_executed_pipe_fma_type_fp16_pred_on.sum") == 7);
  CHECK(value("smsp__thread_inst_executed_pipe_fma_pred_on.sum") >=
        27);                                            // an upper bound of FP32 and FP16 work
  CHECK(value("sm__inst_executed_pipe_fma.sum") == 3);  // of 20 + 7 + 64 threads' instructions
  CHECK(value("sm__inst_executed_pipe_fp64.sum") == 1);
  CHECK(value("sm__inst_executed_pipe_fma_type_fp16.sum") == 1);
  CHECK(value("sm__ops_path_tensor_src_fp16.sum") == 3600);
  CHECK(value("sm__ops_path_tensor_op_hmma_src_fp16.sum") ==
        600);  // parents include their children
  CHECK(value("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum") == 600);
  CHECK(value("sm__ops_path_tensor_op_hgmma_src_fp16.sum") == 3000);
  CHECK(value("sm__ops_path_tensor_op_igmma_src_int8.sum") == 1000);
  CHECK(value("sm__ops_path_tensor_src_int8.sum") == 1100);
  CHECK(value("sm__inst_executed_pipe_tensor_op_hmma.sum") == 6 + 6);  // HGMMA too
  CHECK(value("sm__inst_executed_pipe_tensor_op_gmma.sum") == 8);
  CHECK(value("sm__inst_executed_pipe_tensor_op_dmma.sum") == 3);
  CHECK(value("sm__inst_executed_pipe_tensor_op_imma.sum") == 1 + 2);  // IGMMA too
  CHECK(value("sm__inst_executed_pipe_tensor.sum") == 10 + 8);
  CHECK(value("dram__bytes.sum") == 96);
  CHECK(value("gpu__time_duration.sum") == 250);
  CHECK(value("sm__cycles_elapsed.max") == 40);
  CHECK(value("sm__cycles_elapsed.sum") == 40 * 132);
  CHECK(value("sm__cycles_active.sum") == 40 * 10);  // ten blocks on ten SMs
  CHECK(value("sm__cycles_active.avg") == Approx(400.0 / 132));
  run.sm_count = 4;
  const CounterValues of_four = observe(run);
  CHECK(evaluate(find_metric(chip, "sm__cycles_active.sum").value(), of_four) == 40 * 4);
}

TEST_CASE("SASS and hardware counters never share a pass, and passes are never overfull") {
  const uint32_t chip = find_chip("GH100").value();
  std::vector<Counter> all;
  for (size_t i = 0; i < kCounters; ++i) all.push_back(static_cast<Counter>(i));
  const Schedule schedule = schedule_passes(chip, all);
  size_t scheduled = 0, sass_passes = 0;
  for (size_t pass = 0; pass < schedule.passes.size(); ++pass) {
    uint32_t load = 0;
    for (const Counter counter : schedule.passes[pass]) {
      CHECK(is_sass(counter) == schedule.pass_is_sass(pass));
      load += weight(counter, chips()[chip].family);
    }
    CHECK(load <= kPassCapacity);
    scheduled += schedule.passes[pass].size();
    sass_passes += schedule.pass_is_sass(pass) ? 1 : 0;
  }
  CHECK(scheduled == kCounters);
  CHECK(sass_passes == 1);
}

TEST_CASE("a configuration image comes back as it went, and no other bytes do") {
  const Schedule schedule =
      schedule_passes(3, {Counter::kImma, Counter::kSassFadd, Counter::kTime, Counter::kHmmaTf32});
  std::vector<uint8_t> image = write_config_image(schedule);
  const auto back = read_config_image(image);
  REQUIRE(back);
  CHECK(back->chip == 3);
  CHECK(back->passes == schedule.passes);
  for (size_t size = 0; size < image.size(); ++size)
    CHECK_FALSE(read_config_image(std::span(image).first(size)));
  for (size_t bit = 0; bit < image.size() * 8; ++bit) {
    auto flipped = image;
    flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ (1U << (bit % 8)));
    CHECK_FALSE(read_config_image(flipped));
  }
  image.resize(image.size() + 100);
  CHECK(read_config_image(image));
}

TEST_CASE("a counter image survives bit flips without reading outside itself") {
  const std::vector<Counter> counters = {Counter::kTime, Counter::kDramRead};
  const size_t bytes = CounterImage::bytes_needed(counters.size(), 3);
  std::vector<uint8_t> memory(bytes);
  CounterImage::initialize(memory, 5, counters, 3);
  auto image = CounterImage::open(std::span<uint8_t>(memory));
  REQUIRE(image);
  RangeValues range{"r", {}, {}};
  range.values[static_cast<size_t>(Counter::kTime)] = 9;
  range.collected[static_cast<size_t>(Counter::kTime)] = true;
  for (int i = 0; i < 3; ++i) CHECK(image->store(range, false));
  CHECK_FALSE(image->store(range, false));
  CHECK(image->store(range, true));
  CHECK(image->ranges() == 3);
  const RangeValues read = image->read(2);
  CHECK(read.name == "r");
  CHECK(read.values[static_cast<size_t>(Counter::kTime)] == 9);
  CHECK_FALSE(read.collected[static_cast<size_t>(Counter::kDramRead)]);
  for (size_t bit = 0; bit < bytes * 8; ++bit) {
    auto flipped =
        memory;  // exactly as large as the image: the address sanitizer sees a step outside
    flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ (1U << (bit % 8)));
    if (auto odd = CounterImage::open(std::span<uint8_t>(flipped)))
      for (size_t i = 0; i < odd->ranges(); ++i) odd->read(i);
  }
}
