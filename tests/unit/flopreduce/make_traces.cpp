// Writes the traces that golden and program tests read: make_traces NAME > FILE. The same bytes
// every time. make_traces fleet RANKS FOLDER writes a file for each rank of a job.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "support/trace_builder.h"

namespace {

using flopinj::test::sass_metrics;
using flopinj::test::TraceBuilder;
using Launches = std::vector<TraceBuilder::Launch>;

// A two-layer network: forward, loss, backward, optimizer, two steps; one unmeasured collective;
// one varying kernel.
TraceBuilder training(bool simulated) {
  TraceBuilder t;
  t.header(1, simulated);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.group(2, "screening", {"sm__inst_executed_pipe_tensor_op_hmma.sum", "dram__bytes_read.sum"});
  const auto sass = [](double fadd, double ffma) {
    return std::vector<double>{fadd, 0, ffma, 0, 0, 0, 0, 0, 0};
  };
  t.kernel(1, "_Z13dense_forwardiPKfPf", 101);
  t.kernel(2, "_Z4reluPf", 102);
  t.kernel(3, "_Z14dense_gradientiPKfPf", 103);
  t.kernel(4, "_Z3sgdPf", 104);
  t.kernel(5, "ncclDevKernel_AllReduce", 105);
  t.kernel(6, "_Z6sampleiPf", 106, flopinj::trace::Interned::PARAMETERS_MERGED);
  t.path(1, 0, "step");
  t.path(2, 1, "forward");
  t.path(3, 2, "layer:fc1");
  t.path(4, 2, "layer:fc2");
  t.path(5, 1, "loss");
  t.path(6, 1, "backward");
  t.path(7, 1, "optimizer");
  t.samples(1, 1, {sass(0, 4096), sass(0, 4096)});
  t.samples(1, 2, {sass(0, 0)});
  t.samples(1, 3, {sass(64, 4096)});
  t.samples(1, 4, {sass(0, 512)});
  for (const uint32_t i : {0U, 1U, 2U})
    t.placed_sample(1, 6, i + 1, i, sass(std::array{100, 140, 90}[i], 0));
  for (const uint32_t kernel : {1U, 2U, 3U, 4U}) t.samples(2, kernel, {{0, 1024}});
  t.samples(2, 6, {{0, 64}, {0, 64}});
  for (int step = 0; step < 2; ++step) {
    const bool first = step == 0;
    t.launches(Launches{{1, first ? 90'000 : 2'000, 3, first},
                        {2, 700, 3},
                        {1, 2'100, 4},
                        {6, 900, 5},
                        {6, 950, 5},
                        {3, 4'000, 6},
                        {3, 4'100, 6},
                        {3, 3'900, 6},
                        {5, 10'000, 6},
                        {4, 800, 7},
                        {4, -1, 7}});
  }
  t.ledger(25, 22, 3, 1, 15);
  t.overhead(2'000'000, 1'000'000'000);
  t.diagnostic("cupti.multiple_subscribers",
               "another profiler is in this process: stop it for counters");
  t.end();
  return t;
}

// On an H100, with peaks: a product with a formula and its gradients, attention of a library that
// has none, a product of the optimizer, and kernels that nobody screened for tensor work. Of 10 ms
// two steps of three products, 2 x 4096^3 FLOP each, are the model's by formula: at bf16's peak
// (989.4 TFLOP/s) they take 833 us, so MFU is at least 8.33 %.
TraceBuilder covered_in_part() {
  constexpr double kProduct = 2.0 * 4096 * 4096 * 4096;
  const std::string hmma = "sm__inst_executed_pipe_tensor_op_hmma.sum";
  TraceBuilder t;
  t.header(6);
  t.device(1, "GH100", "NVIDIA H100 80GB HBM3", 132);
  t.thread(1, "main");
  t.thread(2, "pt_autograd_0");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.group(2, "screening", {hmma}, false);
  flopinj::trace::TracePacket tensor;
  auto& group = *tensor.mutable_metric_group();
  group.set_id(3);
  group.set_device(1);
  group.set_name("tensor_bf16");
  group.add_metric("sm__ops_path_tensor_src_bf16_dst_fp32.sum");
  group.add_needed_if()->set_metric(hmma);
  t.add(tensor);
  const std::array<const char*, 6> kernels = {"gemm",  "attention_fwd", "attention_bwd",
                                              "scale", "newton_schulz", "unscreened"};
  const std::array<double, 6> products = {kProduct, kProduct / 2, 5 * kProduct / 4, 0, kProduct, 0};
  for (uint32_t id = 1; id <= kernels.size(); ++id) {
    t.kernel(id, kernels[id - 1], 600 + id);
    const double on_tensor_cores = products[id - 1];
    t.samples(1, id, {{on_tensor_cores > 0 ? 0 : 1e6, 0, 0, 0, 0, 0, 0, 0, 0}});
    if (id < 6) t.samples(2, id, {{on_tensor_cores > 0 ? 1.0 : 0.0}});
    if (on_tensor_cores > 0) t.samples(3, id, {{on_tensor_cores}});
  }
  const std::string mm = "aten::mm, sizes = [[4096, 4096], [4096, 4096]]";
  const std::string node = "autograd::engine::evaluate_function: ";
  t.path(1, 0, "step");
  t.path(2, 1, "forward");
  t.path(3, 2, "layer:fc");
  t.path(4, 3, mm);
  t.path(5, 2, "layer:attention");
  t.path(6, 5, "mylib::attention, sizes = [[1, 4096, 32, 128]]");
  t.path(7, 0, node + "MmBackward0");
  t.path(8, 7, mm);
  t.path(9, 0, node + "AttentionBackward");
  t.path(10, 1, "Optimizer.step#Muon.step");
  t.path(11, 10, mm);
  for (uint32_t step = 1; step <= 2; ++step) {
    const uint64_t start_ns = 1000 + (step - 1) * 5'000'000;
    t.launches(Launches{{.signature = 1, .duration_ns = 200'000, .path = 4, .step = step},
                        {.signature = 4, .duration_ns = 10'000, .path = 2, .step = step},
                        {.signature = 6, .duration_ns = 10'000, .path = 2, .step = step},
                        {.signature = 2, .duration_ns = 150'000, .path = 6, .step = step}},
               1, 1, start_ns);
    t.launches(Launches{{.signature = 3, .duration_ns = 400'000, .path = 9, .step = step},
                        {.signature = 1, .duration_ns = 200'000, .path = 8, .step = step},
                        {.signature = 1, .duration_ns = 200'000, .path = 8, .step = step}},
               2, 1, start_ns + 1'000'000);
    t.launches(Launches{{.signature = 5, .duration_ns = 200'000, .path = 11, .step = step}}, 1, 1,
               start_ns + 3'000'000);
  }
  t.steps({{1, 1000, 4'900'000}, {2, 5'001'000, 4'900'000}}, 1);
  t.ledger(16, 16, 0);
  t.overhead(0, 10'000'000);
  t.end();
  return t;
}

// Figures halfway between two texts: amounts, a mean of half a nanosecond, and shares of 5 and 3
// sixteenths and of one part in 800.
TraceBuilder halfway() {
  TraceBuilder t;
  t.header(1);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  const std::array<uint32_t, 7> flop = {100'250, 100'750, 10'125, 200'000, 120'000, 108'075, 800};
  Launches launches;
  for (uint32_t i = 1; i <= flop.size(); ++i) {
    t.kernel(i, "kernel_" + std::to_string(i), 100 + i);
    t.samples(1, i, {{static_cast<double>(flop[i - 1]), 0, 0, 0, 0, 0, 0, 0, 0}});
    launches.push_back({i, flop[i - 1]});
  }
  t.kernel(9, "halves", 109);
  t.samples(1, 9, {{0, 0, 0, 0, 0, 0, 0, 0, 0}});
  launches.insert(launches.end(), {{9, 1'514}, {9, 1'515}});
  t.launches(launches);
  t.ledger(launches.size(), launches.size(), 0);
  t.end();
  return t;
}

// Rank 1 of the same job: counts and times only.
TraceBuilder other_rank() {
  TraceBuilder t;
  t.header(2, false, 1, 101);
  t.device();
  t.stream(3);
  t.kernel(9, "_Z13dense_forwardiPKfPf", 101);
  t.path(4, 0, "forward");
  t.tally({{9, 1'000'000, 1'000'000, 2'000'000'000, 4}}, 0, 3);
  t.ledger(1'000'000, 1'000'000, 0);
  t.end();
  return t;
}

// Names that want to be markup, scripts, formulas, escapes or frames of their own. Each kernel adds
// 2^60 FLOP and 2^40 bytes a launch, so that sums pass 2^63.
TraceBuilder hostile() {
  const std::vector<std::string> names = {
      "<script>window.hacked=1</script>",
      "</script><script>window.hacked=1</script>",
      "<!--<script>",
      "<img src=x onerror=window.hacked=1>",
      "\"'><svg onload=window.hacked=1>",
      "=HYPERLINK(\"http://example.com\";\"x\")",
      "+1+1",
      "-1+1",
      "@SUM(A1)",
      "\t=1",
      "\r\n=1",
      "\x1b]0;title\x07\x1b[31mred",
      "\xe2\x80\xae"
      "evil\xe2\x80\xac",
      "a;b c|d`e*f_g[h](i)\\j",
      "comma, \"quote\"",
      "http://example.com www.example.com me@example.com",
      "{\"a\":1}\xff",
      "'; DROP TABLE kernels; --",
      "__proto__",
  };
  TraceBuilder t;
  t.header(3);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.group(2, "memory", {"dram__bytes_read.sum"});
  const auto count = static_cast<uint32_t>(names.size());
  for (uint32_t i = 1; i <= count; ++i) {
    const std::string& name = names[i - 1];
    t.kernel(i, name, 300 + i);
    t.path(i, i > 3 ? i - 3 : 0, name);
    t.samples(1, i, {{0, 0, 0x1p59, 0, 0, 0, 0, 0, 0}});
    t.samples(2, i, {{0x1p40}});
    t.launches(Launches{{i, 1000 + i, i}, {i, 1000, 0}});
  }
  t.diagnostic(names[0], names[1] + names[11]);
  t.ledger(2 * count, 2 * count, 0);
  t.end();
  return t;
}

// Kernels first to last with 64 * id fused multiply-adds and up to 128 KiB each: definitions and
// samples.
void add_kernels(TraceBuilder& t, uint32_t first, uint32_t last) {
  flopinj::trace::TracePacket definitions;
  flopinj::trace::TracePacket samples;
  flopinj::trace::TracePacket bytes;
  auto* defined = definitions.mutable_interned();
  auto* sampled = samples.mutable_counter_samples();
  sampled->set_group(1);
  sampled->set_window(1);
  auto* sampled_bytes = bytes.mutable_counter_samples();
  sampled_bytes->set_group(2);
  sampled_bytes->set_window(2);
  for (uint32_t id = first; id <= last; ++id) {
    auto* name = defined->add_strings();
    name->set_id(id);
    name->set_value("kernel_" + std::to_string(id * 7919 % 65537));
    auto* function = defined->add_functions();
    function->set_id(id);
    function->set_name(id);
    auto* signature = defined->add_signatures();
    signature->set_id(id);
    signature->set_function(id);
    signature->set_stable_hash(1000 + id);
    signature->set_parameter_class(flopinj::trace::Interned::PARAMETERS_EXACT);
    sampled->add_signature(id);
    sampled->add_range_path(0);
    for (const double value : {0.0, 0.0, 64.0 * id, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0})
      sampled->add_value(value);
    sampled_bytes->add_signature(id);
    sampled_bytes->add_range_path(0);
    sampled_bytes->add_value(32 * (1 + id * 7919 % 4096));
  }
  t.add(definitions);
  t.add(samples);
  t.add(bytes);
}

// As many kernels as a large program has, each launched once, in ranges of three levels.
TraceBuilder wide() {
  constexpr uint32_t kKernels = 50'000;
  constexpr uint32_t kBatch = 1000;
  constexpr uint32_t kLayers = 200;
  constexpr uint32_t kFirstPath = 60'000;  // names of ranges have ids apart from those of kernels
  TraceBuilder t;
  t.header(4);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.group(2, "memory", {"dram__bytes_read.sum"});
  t.path(kFirstPath, 0, "step");
  t.path(kFirstPath + 1, kFirstPath, "forward");
  t.path(kFirstPath + 2, kFirstPath, "backward");
  for (uint32_t layer = 0; layer < kLayers; ++layer)
    t.path(kFirstPath + 3 + layer, kFirstPath + 1 + layer % 2, "layer" + std::to_string(layer));
  for (uint32_t first = 1; first <= kKernels; first += kBatch) {
    add_kernels(t, first, first + kBatch - 1);
    Launches launches;
    for (uint32_t id = first; id < first + kBatch; ++id)
      launches.push_back({id, 500 + id % 1000, kFirstPath + 3 + id % kLayers});
    t.launches(launches);
  }
  t.ledger(kKernels, kKernels, 0);
  t.end();
  return t;
}

// Names as long as those of kernels made from templates.
std::string template_name(uint32_t id) {
  return "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_" +
         std::to_string(64 << id % 3) + "x128_32x" + std::to_string(id) +
         "_nn_align8_epilogue_with_bias_and_activation>(cutlass_80_tensorop_bf16_s16816gemm::"
         "Params, float const*, float*, unsigned long, unsigned long, unsigned long)";
}

// A rank of a job of 1,000, which has 5,000 kernels. Each rank runs and measures 100 of them, rank
// 7 in twice the time that each usually takes.
TraceBuilder job(int rank) {
  constexpr uint32_t kKernels = 5'000, kOfRank = 100;
  TraceBuilder t;
  t.rank_header(100'000 + static_cast<uint64_t>(rank), rank, 1'700'000'000'000'000'000);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.path(60'000, 0, "step");
  t.path(60'001, 60'000, "forward");
  t.path(60'002, 60'000, "backward");
  t.path(60'003, 60'000, "optimizer");
  t.group(1, "sass", sass_metrics());
  t.group(2, "memory", {"dram__bytes_read.sum"});
  Launches launches;
  for (uint32_t i = 0; i < kOfRank; ++i) {
    const uint32_t id = 1 + (static_cast<uint32_t>(rank) * 37 + i) % kKernels;
    t.kernel(id, template_name(id), 1000 + id);
    t.samples(1, id, {{0, 0, 64.0 * id, 0, 0, 0, 0, 0, 0}});
    t.samples(2, id, {{32.0 * (1 + id * 7919 % 4096)}});
    launches.push_back({id, rank == 7 ? 2'000 : 1'000, 60'001 + id % 3});
  }
  t.launches(launches);
  t.ledger(kOfRank, kOfRank, 0);
  t.end();
  return t;
}

// A rank of a fleet's job: small, since there are thousands of them.
TraceBuilder fleet_rank(int rank, bool simulated) {
  constexpr uint32_t kKernels = 6;
  TraceBuilder t;
  flopinj::trace::TracePacket first;
  auto* h = first.mutable_header();
  h->set_format_major(1);
  h->set_pid(static_cast<uint32_t>(500 + rank % 8));
  h->set_hostname("node" + std::to_string(rank / 8));
  h->set_rank(rank);
  h->set_simulated(simulated);
  h->set_level(flopinj::trace::LEVEL_LAUNCHES);
  h->set_session_id(200'000 + static_cast<uint64_t>(rank));
  t.add(first);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.path(1, 0, "step");
  t.path(2, 1, "forward");
  t.path(3, 1, "backward");
  t.group(1, "sass", sass_metrics());
  Launches launches;
  for (uint32_t id = 1; id <= kKernels; ++id) {
    t.kernel(id, "kernel_" + std::to_string(id), 400 + id);
    if (rank == 0) t.samples(1, id, {{0, 0, 64.0 * id, 0, 0, 0, 0, 0, 0}});
    launches.push_back({id, 1'000 + rank % 7, 2 + id % 2});
  }
  for (int step = 0; step < 3; ++step) t.launches(launches);
  t.ledger(3 * kKernels, 3 * kKernels, 0);
  t.end();
  return t;
}

// The fleet's job: a file for each rank, rank0.pb and so on. False where one cannot be written.
bool write_fleet(int ranks, const std::string& folder) {
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string bytes = fleet_rank(rank, false).bytes();
    std::FILE* file = std::fopen((folder + "/rank" + std::to_string(rank) + ".pb").c_str(), "wb");
    if (file == nullptr) return false;
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    if (std::fclose(file) != 0 || !written) return false;
  }
  return true;
}

// Of one thread, one stream and one H200.
TraceBuilder one_gpu(uint64_t session) {
  TraceBuilder t;
  t.header(session);
  t.device(1, "GH100", "NVIDIA H200", 132);
  t.thread(1, "main");
  t.stream();
  return t;
}

// A product of a matrix and a vector of N = 20,000, against an outer product and its row sums:
// equal FLOP, twice the traffic. Counts are theory, times are made up.
TraceBuilder vectors() {
  TraceBuilder t = one_gpu(5);
  t.group(1, "sass", sass_metrics());
  t.group(2, "screening",
          {"sm__inst_executed_pipe_tensor_op_hmma.sum", "dram__bytes_read.sum",
           "dram__bytes_write.sum"});
  constexpr double kN = 20000;
  constexpr double kVector = 4 * kN;
  constexpr double kMatrix = 4 * kN * kN;
  t.kernel(1, "matrix_vector", 501);
  t.kernel(2, "outer_product", 502);
  t.kernel(3, "row_sum", 503);
  t.path(1, 0, "matrix x vector");
  t.path(2, 0, "outer product, row sum");
  t.samples(1, 1, {{kN * kN - kN, kN * kN, 0, 0, 0, 0, 0, 0, 0}});
  t.samples(1, 2, {{0, kN * kN, 0, 0, 0, 0, 0, 0, 0}});
  t.samples(1, 3, {{kN * kN - kN, 0, 0, 0, 0, 0, 0, 0, 0}});
  t.samples(2, 1, {{0, kMatrix + kVector, kVector}});
  t.samples(2, 2, {{0, 2 * kVector, kMatrix}});
  t.samples(2, 3, {{0, kMatrix, kVector}});
  t.launches(Launches{{1, 400'000, 1}, {2, 410'000, 2}, {3, 390'000, 2}});
  t.ledger(3, 3, 0, 1, 3);
  t.overhead(1'000'000, 2'400'000);
  t.end();
  return t;
}

// Three steps, a millisecond each, of two layers. Products of 2 GFLOP: one of each layer forward,
// and backward one of fc1 and two of fc2.
TraceBuilder network() {
  TraceBuilder t = one_gpu(6);
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "product", 601);
  t.samples(1, 1, {{0, 0, 1e9, 0, 0, 0, 0, 0, 0}});
  t.path(1, 0, "step");
  t.path(2, 1, "forward");
  t.path(3, 1, "backward");
  for (const uint32_t pass : {2U, 3U}) {
    t.path(2 * pass, pass, "layer:fc1");
    t.path(2 * pass + 1, pass, "layer:fc2");
  }
  std::vector<TraceBuilder::Step> steps;
  for (uint32_t step = 1; step <= 3; ++step) {
    Launches launches{
        {1, 60'000, 4}, {1, 80'000, 5}, {1, 70'000, 7}, {1, 90'000, 7}, {1, 50'000, 6}};
    for (auto& launch : launches) launch.step = step;
    t.launches(launches, 1, 1, 1'000'000 * step);
    steps.push_back({step, 1'000'000 * step, 400'000});
  }
  t.steps(steps, 1);
  t.ledger(15, 15, 0, 1, 1);
  t.overhead(100'000, 5'000'000);
  t.end();
  return t;
}

// Two devices, three streams and two threads; batches that overlap on one stream, and that were
// written in another order than they ran. Rank 1 began 1 ms after rank 0, on a clock of its own.
TraceBuilder timeline(int rank) {
  TraceBuilder t;
  flopinj::trace::TracePacket first;
  auto* h = first.mutable_header();
  h->set_format_major(1);
  h->set_producer("trace_builder");
  h->set_pid(static_cast<uint32_t>(500 + rank));
  h->set_hostname("node<" + std::to_string(rank) + ">");
  h->set_rank(rank);
  h->set_level(flopinj::trace::LEVEL_LAUNCHES);
  h->set_session_id(static_cast<uint64_t>(20 + rank));
  const uint64_t begin = 5'000'000 * static_cast<uint64_t>(rank + 1);
  h->set_clock_trace_ns(begin);
  h->set_clock_realtime_ns(1'700'000'000'000'000'000 + 1'000'000 * static_cast<uint64_t>(rank));
  t.add(first);
  t.device(1);
  t.device(2);
  t.thread(1, "main");
  t.thread(2, "pt_autograd_0");
  t.stream(1, 1, 7);
  t.stream(2, 1, 13);
  t.stream(3, 2, 7);
  t.group(1, "sass", sass_metrics(), true, 1);
  t.group(2, "sass", sass_metrics(), true, 2);
  t.path(1, 0, "step");
  t.path(2, 1, "forward");
  t.kernel(1, "_Z13dense_forwardiPKfPf", 701);
  t.kernel(2, "_Z14dense_gradientiPKfPf", 702);
  t.kernel(3, "_Z6sampleiPf", 703, flopinj::trace::Interned::PARAMETERS_MERGED);
  t.samples(1, 1, {{0, 0, 0x1p53 + 2, 0, 0, 0, 0, 0, 0}});
  t.samples(1, 2, {{10, 0, 300, 0, 0, 70, 0, 0, 0}});
  t.samples(1, 3, {{7, 0, 0, 0, 0, 0, 0, 0, 0}, {8, 0, 0, 0, 0, 0, 0, 0, 0}});
  const auto several = [](uint32_t kernel, int count, uint32_t path, bool graph) {
    Launches list;
    for (int i = 0; i < count; ++i) list.push_back({kernel, 2000 + i, path, false, graph, 0});
    return list;
  };
  t.launches(several(2, 40, 1, false), 2, 1, begin + 200'000);    // backward, after
  t.launches(several(1, 40, 2, false), 1, 1, begin + 1'000);      // forward, before it
  t.launches(several(3, 25, 2, true), 1, 1, begin + 1'500);       // beside forward on its stream
  t.launches(several(2, 30, 2, false), 1, 2, begin + 1'000);      // another stream
  t.launches(several(3, 51, 0, false), 1, 3, begin + 2'000'000);  // another device
  t.ledger(135, 135, 0, 1);
  t.ledger(51, 51, 0, 2);
  t.end();
  return t;
}

// Two kernels: `zero` without any FLOP, and `counted` with `fmas` multiply-adds and `adds`
// additions.
TraceBuilder exact(double fmas, double adds) {
  TraceBuilder t = one_gpu(30 + static_cast<uint64_t>(fmas > 0) + static_cast<uint64_t>(2 * adds));
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "counted", 801);
  t.kernel(2, "zero", 802);
  t.samples(1, 1, {{adds, 0, fmas, 0, 0, 0, 0, 0, 0}});
  t.samples(1, 2, {{0, 0, 0, 0, 0, 0, 0, 0, 0}});
  t.launches(Launches{{1, 1'000, 0}, {2, 1'000, 0}});
  t.ledger(2, 2, 0);
  t.end();
  return t;
}

// Of a program that runs: of 20 launches 2 found no room, and 5 are on their way.
TraceBuilder unfinished() {
  TraceBuilder t = one_gpu(40);
  t.kernel(1, "counted", 801);
  t.launches(Launches(13, {1, 1'000, 0}));
  t.ledger(20, 13, 2);
  return t;
}

// A diagnostic with an empty group, which no version of the format has, before bytes that are not
// UTF-8: protobuf would pass over the first and print a line of its own about the second.
TraceBuilder with_group() {
  TraceBuilder t = exact(0, 1);
  t.add_raw(std::string("\x3a\x06\x4b\x4c\x12\x02\xff\xfe"));
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc >= 2 ? argv[1] : "";
  if (name == "fleet" && argc == 4) return write_fleet(std::stoi(argv[2]), argv[3]) ? 0 : 3;
  std::string bytes;
  if (name.starts_with("job")) bytes = job(std::stoi(name.substr(3))).bytes();
  if (name == "fleet_simulated") bytes = fleet_rank(1'000'000, true).bytes();
  if (name == "training") bytes = training(false).bytes();
  if (name == "simulated") bytes = training(true).bytes();
  if (name == "other_rank") bytes = other_rank().bytes();
  if (name == "covered_in_part") bytes = covered_in_part().bytes();
  if (name == "halfway") bytes = halfway().bytes();
  if (name == "hostile") bytes = hostile().bytes();
  if (name == "wide") bytes = wide().bytes();
  if (name == "vectors") bytes = vectors().bytes();
  if (name == "network") bytes = network().bytes();
  if (name == "exact0") bytes = exact(0, 0).bytes();
  if (name == "exact1") bytes = exact(0, 1).bytes();
  if (name == "exact53") bytes = exact(0x1p52, 0).bytes();  // 2^53 FLOP
  if (name == "exact53_1") bytes = exact(0x1p52, 1).bytes();
  if (name == "rounded") bytes = exact(0x1p53 + 2, 0).bytes();
  if (name == "unfinished") bytes = unfinished().bytes();
  if (name == "group") bytes = with_group().bytes();
  if (name == "timeline") bytes = timeline(0).bytes();
  if (name == "timeline_rank1") bytes = timeline(1).bytes();
  if (name == "killed")
    bytes = training(false).bytes().substr(0, training(false).bytes().size() - 40);
  if (name == "damaged") {
    bytes = training(false).bytes();
    bytes[bytes.find("layer:fc2")] = 'X';
  }
  if (bytes.empty()) {
    std::fprintf(
        stderr,
        "use: make_traces training|simulated|other_rank|killed|damaged|covered_in_part|hostile|"
        "wide|vectors|"
        "network|exact0|exact1|exact53|exact53_1|rounded|unfinished|group|timeline|timeline_rank1|"
        "job0 ... job999|"
        "fleet_simulated > FILE, or make_traces fleet RANKS FOLDER\n");
    return 2;
  }
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() ? 0 : 3;
}
