// Where the peak went, of traces with planted losses: each line is what was planted.
#include <functional>
#include <random>

#include "catch.h"
#include "passes/packets/segments.h"
#include "reduce_bytes.h"
#include "sections/advice.h"
#include "sections/parts/cells.h"
#include "sections/screens/comparison.h"
#include "sections/screens/slower.h"
#include "sections/sections.h"
#include "support/lost_sums.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
namespace trace = flopinj::trace;

namespace {

using enum LostLine;

// Peaks that make work round: a nanosecond is 10^6 FLOP of bf16, 10^5 of fp32, or 1,000 bytes.
const std::vector<std::string> kPeaks{"tensor_bf16=1000T", "tensor_int8=2000T", "fp32=100T",
                                      "memory=1T"};
constexpr double kBf16 = 1e6, kInt8 = 2e6, kFp32 = 1e5, kBytes = 1000;
constexpr uint32_t kMultiprocessors = 100;
constexpr uint64_t kStart = 1'000'000;

// One process. Launches are planted where they are to run, each in a batch of its own.
class Planted {
 public:
  explicit Planted(int32_t rank = -1, const std::string& uuid = "", bool copies = false) {
    trace::TracePacket p;
    auto* h = p.mutable_header();
    h->set_format_major(1);
    h->set_pid(static_cast<uint32_t>(500 + rank));
    h->set_hostname("host");
    h->set_rank(rank);
    h->set_level(trace::LEVEL_LAUNCHES);
    h->set_counters(true);
    h->set_copies(copies);
    h->set_session_id(static_cast<uint64_t>(100 + rank));
    h->set_clock_trace_ns(kStart);
    h->set_clock_realtime_ns(1'000'000'000'000);
    trace_.add(p);
    add_device(1, uuid);
    trace_.thread(1, "main");
  }
  void add_device(uint32_t id, const std::string& uuid = "") {
    trace::TracePacket p;
    auto* d = p.mutable_device();
    d->set_id(id);
    d->set_name("Planted GPU");
    d->set_chip("GH100");
    d->set_multiprocessors(kMultiprocessors);
    d->set_uuid(uuid);
    trace_.add(p);
    for (const uint32_t stream : {2 * id - 1, 2 * id}) trace_.stream(stream, id, stream);
    trace_.group(10 * id + 1, "sass", sass_metrics(), true, id);
    trace_.group(10 * id + 2, "bytes", {"dram__bytes_read.sum"}, false, id);
    trace_.group(10 * id + 3, "tensor", {"sm__ops_path_tensor_src_bf16_dst_fp32.sum"}, false, id);
    trace_.group(10 * id + 4, "int8", {"sm__ops_path_tensor_src_int8.sum"}, false, id);
  }
  struct Worth {
    double tensor_ns = 0, fp32_ns = 0, memory_ns = 0, int8_ns = 0;
    uint32_t blocks = kMultiprocessors;
    bool counted = true, bytes = true;
    bool fused = false;  // of fp32: multiply-adds
  };
  uint32_t kernel(const std::string& name, const Worth& worth, bool never_measured = false) {
    const uint32_t id = ++kernels_;
    trace::TracePacket p;
    auto* i = p.mutable_interned();
    auto* s = i->add_strings();
    s->set_id(id);
    s->set_value(name);
    auto* f = i->add_functions();
    f->set_id(id);
    f->set_name(id);
    f->set_never_measured(never_measured);
    auto* g = i->add_signatures();
    g->set_id(id);
    g->set_function(id);
    g->set_grid_x(worth.blocks);
    g->set_grid_y(1);
    g->set_grid_z(1);
    g->set_block_x(128);
    g->set_block_y(1);
    g->set_block_z(1);
    g->set_stable_hash(1000 + id);
    g->set_parameter_class(trace::Interned::PARAMETERS_EXACT);
    trace_.add(p);
    if (!worth.counted) return id;
    const double fp32 = worth.fp32_ns * kFp32;
    trace_.samples(11, id, {worth.fused ? sass(0, 0, fp32 / 2) : sass(fp32, 0, 0)});
    if (worth.bytes) trace_.samples(12, id, {{worth.memory_ns * kBytes}});
    trace_.samples(13, id, {{worth.tensor_ns * kBf16}});
    if (worth.int8_ns > 0) trace_.samples(14, id, {{worth.int8_ns * kInt8}});
    return id;
  }
  uint32_t path(const std::string& name, uint32_t parent = 0) {
    trace_.path(++paths_, parent, name);
    return paths_;
  }
  struct At {
    uint32_t kernel = 0;
    uint64_t begin = 0, end = 0;  // ns after the start of the recording
    uint32_t path = 0, stream = 1, step = 0;
    bool windowed = false;
    // When it was called for, and a range that its thread was in before, likewise; 0: not known.
    uint64_t called = 0;
    uint32_t pause_path = 0;
    uint64_t pause_begin = 0, pause_end = 0;
  };
  // How far the clocks of calls may be off.
  uint64_t clock_error = 0;
  void run(const At& at) {
    if (at.called != 0) return run_called(at);
    trace_.launches({{.signature = at.kernel,
                      .duration_ns = static_cast<int64_t>(at.end - at.begin),
                      .path = at.path,
                      .windowed = at.windowed,
                      .step = at.step}},
                    1, at.stream, kStart + at.begin);
  }
  void run_called(const At& at) {
    constexpr uint64_t kUnit = 128;  // by the format
    trace::TracePacket p;
    auto* b = p.mutable_launch_batch();
    b->set_thread(1);
    b->set_stream(at.stream);
    b->add_signature(at.kernel);
    for (const uint32_t run : {at.path, 1U}) b->add_range_path_run(run);
    for (const uint32_t run : {at.step, 1U}) b->add_step_run(run);
    for (const uint32_t run : {at.windowed ? 1U : 0U, 1U}) b->add_windowed_run(run);
    b->set_first_start_ns(kStart + at.begin);
    b->add_gap_ns(0);
    b->add_duration_delta_ns(static_cast<int64_t>(at.end - at.begin));
    b->add_called_before(1 + (at.begin - at.called) / kUnit);
    if (at.pause_end != 0)
      for (const uint64_t value :
           {uint64_t{0}, uint64_t{at.pause_path}, (at.called - at.pause_end) / kUnit,
            (at.pause_end - at.pause_begin) / kUnit})
        b->add_pause(value);
    b->set_clock_error_ns(clock_error);
    trace_.add(p);
  }
  // When a device copied, likewise.
  void copied(const std::vector<std::pair<uint64_t, uint64_t>>& times, uint32_t device = 1) {
    for (const auto& [begin, end] : times) {
      trace::TracePacket p;
      auto* c = p.mutable_copies();
      c->set_device(device);
      c->set_first_start_ns(kStart + begin);
      c->add_gap_ns(0);
      c->add_duration_ns(end - begin);
      trace_.add(p);
    }
  }
  void untimed(uint32_t kernel, uint32_t path = 0) {
    trace_.launches({{.signature = kernel, .path = path}});
  }
  TraceBuilder& trace() { return trace_; }
  std::string end(uint64_t wall_ns, uint64_t window_ns = 0) {
    trace::TracePacket p;
    p.mutable_self_overhead()->set_window_ns(window_ns);
    p.mutable_self_overhead()->set_wall_ns(wall_ns);
    trace_.add(p);
    trace::TracePacket last;
    last.mutable_end()->set_time_ns(kStart + wall_ns);
    last.mutable_end()->set_packets(1000);
    trace_.add(last);
    return trace_.bytes();
  }

 private:
  TraceBuilder trace_;
  uint32_t kernels_ = 0, paths_ = 0;
};

// One summary of all, in whatever grouping.
std::string summary_of(const std::vector<std::string>& traces) {
  std::vector<Named> all, single;
  for (const std::string& trace : traces) {
    all.push_back({"t", trace});
    single.push_back({"s", merge_bytes({all.back()}).bytes});
  }
  std::string summary = merge_bytes(all).bytes;
  CHECK((merge_bytes(single).bytes == summary));
  return summary;
}

// A summary gives the same ledger. Only in steps it does not say what is lost.
void check_summary(const LostReport& lost, const LostReport& of_summary) {
  REQUIRE(of_summary.missing == lost.missing);
  CHECK(of_summary.ns == lost.ns);
  CHECK(of_summary.capacity_ns == lost.capacity_ns);
  CHECK(of_summary.hidden_ns == lost.hidden_ns);
  for (const LostRow& row : kLostRows)
    CHECK(of_summary.sum(row.lines()).marks() == lost.sum(row.lines()).marks());
  const auto parts = [](const LostReport& report) {
    std::vector<std::tuple<size_t, uint32_t, std::string, std::string, LostNs>> out;
    for (const auto& part : report.parts)
      out.emplace_back(part.trace, part.device, part.phase, part.layer, part.ns);
    return out;
  };
  CHECK((parts(of_summary) == parts(lost)));
  const auto host = [](const LostReport& report) {
    std::vector<std::pair<std::string, uint64_t>> out;
    for (const auto& [range, ns] : report.host) out.emplace_back(range, ns);
    return out;
  };
  CHECK(host(of_summary) == host(lost));
}

// As flopreduce wrote it when it did not say which kernels ran at once; `change` has what it said.
template <typename Change>
std::string changed(const std::string& summary, Change change) {
  trace::Trace all;
  REQUIRE(all.ParseFromString(summary));
  TraceBuilder out;
  for (auto& packet : *all.mutable_packet())
    if (change(packet)) out.add(packet);
  return out.bytes();
}
std::string old_summary(const std::string& trace) {
  return changed(merge_bytes({{"t", trace}}).bytes, [](trace::TracePacket& packet) {
    if (packet.has_device_times()) packet.mutable_device_times()->clear_at_once();
    return !packet.has_at_once();
  });
}

Report reduce(const std::vector<std::string>& traces,
              const std::vector<std::string>& peaks = kPeaks, ReduceOptions options = {}) {
  options.lost = true;
  for (const auto& peak : peaks) options.utilization.peaks.push_back(parse_peak(peak).value);
  Report report = reduce_bytes(traces, options);
  if (options.utilization.skip_steps == 0)
    check_summary(report.lost, reduce_bytes({summary_of(traces)}, options).lost);
  const LostReport& lost = report.lost;
  if (!lost.known()) return report;
  CHECK(adds_up(lost));  // whatever was planted
  // The rest is HFU and MFU, as the report has them elsewhere.
  const UtilizationReport& u = report.utilization;
  const double work =
      lost.share(lost.at(kRecompute) + lost.at(kPadding) + lost.at(kOtherFlop) + lost.at(kModel));
  if (lost.skipped_steps > 0) return report;  // those are of the whole recording
  if (u.hfu()->wall.known()) CHECK(work == Approx(*u.hfu()->wall.number()).margin(1e-6));
  if (u.mfu()->wall.known() && !has(u.mfu()->wall.marks(), Mark::kAtLeast))
    CHECK(lost.share(lost.at(kModel) + lost.saved_ns) ==
          Approx(*u.mfu()->wall.number()).margin(1e-6));
  return report;
}

using Lines = std::map<LostLine, uint64_t>;
Lines lines(const LostNs& ns) {
  Lines out;
  for (size_t line = 0; line < kLostLines; ++line)
    if (ns[line] > 0) out[static_cast<LostLine>(line)] = ns[line];
  return out;
}

// Of all parts that `is` holds for.
template <typename Is>
Lines lines_of(const LostReport& lost, Is is) {
  LostNs sum{};
  for (const auto& part : lost.parts)
    if (is(part))
      for (size_t line = 0; line < kLostLines; ++line) sum[line] += part.ns[line];
  return lines(sum);
}

}  // namespace

namespace Catch {
template <>
struct StringMaker<Lines> {
  static std::string convert(const Lines& lines) {
    std::string text;
    for (const auto& [line, ns] : lines)
      text += std::to_string(place_of(line)) + ": " + std::to_string(ns) + "  ";
    return text;
  }
};
}  // namespace Catch

TEST_CASE("lost: one kernel of each kind, one after another") {
  Planted p;
  // At 40 % of peak: bytes explain 10 more, and 128 blocks on 100 multiprocessors another 12.5.
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 4000, .memory_ns = 5000, .blocks = 128});
  // Below the roof of memory by a fifth.
  const uint32_t add = p.kernel("add", {.fp32_ns = 100, .memory_ns = 800});
  const uint32_t sort = p.kernel("sort", {.counted = false});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  const uint32_t forward = p.path("forward"), backward = p.path("backward");
  p.run({gemm, 1000, 11'000, forward});
  p.run({add, 11'500, 12'500, forward});
  p.run({sort, 12'500, 12'700, forward});
  p.run({reduction, 212'700, 215'700, backward});
  const Report report = reduce({p.end(220'000)});
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(lost.capacity_ns == 220'000);
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 1000 + 4300},
                                {kIdleLongGaps, 200'000},
                                {kIdleShortGaps, 500},
                                {kCommunication, 3000},
                                {kUncounted, 200},
                                {kOtherMemory, 700},
                                {kOtherBelowRoof, 200},
                                {kMatrixMemory, 1000},
                                {kMatrixBlocks, 1250},
                                {kMatrixBelowRoof, 3750},
                                {kOtherFlop, 4100}});
  CHECK(has(lost.sum({kMatrixBlocks}).marks(), Mark::kEstimate));
  // Of products nothing is said: the kernel without a count may be of them.
  REQUIRE(advice(report).size() == 1);
  CHECK(advice(report)[0].words ==
        "The longest is before ncclDevKernel_AllReduce: look for a synchronization.");
  // On the first screen, the largest first: of 220 us 205.8, 6.0, 3.0, 0.9 and 0.2.
  const auto screen = lost_figures(report);
  REQUIRE(screen.size() == 2);
  CHECK(screen[0].value == "<= 98.1 %");
  // The kernel without a count may be of products, or of others.
  CHECK(screen[0].note ==
        "no kernel runs 93.5 %, products below peak >= 2.7 %, communication alone 1.4 %, other "
        "kernels below peak >= 0.4 %, no FLOP count 0.1 %");
  CHECK(screen[1].note.starts_with("<= 90.9 % to gain: long gaps. The longest"));
  // A gap belongs to the kernel after it.
  CHECK(lines_of(lost, [](const auto& part) { return part.phase == "communication"; }) ==
        Lines{{kIdleLongGaps, 200'000}, {kCommunication, 3000}});
  CHECK(lines_of(lost, [](const auto& part) { return part.phase.empty(); }) ==
        Lines{{kIdleStartEnd, 5300}});
}

TEST_CASE("lost: idle time by its cause, where that is proven") {
  Planted p;
  p.clock_error = 300;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  const uint32_t data = p.path("data", p.path("step"));
  const auto at = [&](uint64_t begin, uint64_t called) {
    return Planted::At{.kernel = gemm, .begin = begin, .end = begin + 1000, .called = called};
  };
  p.run(at(0, 0));
  p.run(at(5000, 3000));      // 4,000 idle; called for 2,000 after the GPU had ended
  p.run(at(10'000, 1000));    // 4,000; called for 5,000 before
  p.run(at(15'000, 11'128));  // 4,000; 128 after, which is within the clocks' error
  p.run({.kernel = gemm, .begin = 20'000, .end = 21'000});  // nothing is known
  // The thread was in `data` for 128 us, of which the GPU was busy for the first 1,000 ns.
  p.run({.kernel = gemm,
         .begin = 152'000,
         .end = 153'000,
         .step = 1,
         .called = 150'080,
         .pause_path = data,
         .pause_begin = 20'032,
         .pause_end = 148'032});
  // Called for when the profiler let it.
  p.run({.kernel = gemm, .begin = 157'000, .end = 158'000, .windowed = true, .called = 156'000});
  p.run(at(162'000, 161'000));
  const Report report = reduce({p.end(163'000)});
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(lines(lost.ns) == Lines{{kIdleHostLate, 4000 + 131'000},
                                {kIdleQueued, 4000},
                                {kIdleBetweenSteps, 4000},
                                {kIdleShortGaps, 4000 + 4000 + 4000},
                                {kMatrixBelowRoof, 8 * 400},
                                {kOtherFlop, 8 * 600}});
  REQUIRE(lost.host.size() == 1);
  CHECK(lost.host[0].range == "step/data");
  CHECK(lost.host[0].ns == 127'032);
  REQUIRE_FALSE(advice(report).empty());
  CHECK(advice(report)[0].line == "idle_host_late");
  CHECK(advice(report)[0].words ==
        "The host launched late: it spent 127.0 us of 135.0 us in step/data.");
  CHECK(json_of(report)["lost_host"][0]["ns"] == 127'032);
}

TEST_CASE("lost: time in which copies ran and no kernel did") {
  Planted p(-1, "", true);
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  const uint32_t forward = p.path("forward"), backward = p.path("backward");
  p.copied({{100, 400}});  // alone, before the first kernel
  p.run({gemm, 1000, 2000, forward, 1, 1});
  p.copied({{1200, 1800}});  // hidden
  p.copied({{1900, 2300}});  // hidden for 100 ns, then alone in a gap of 1,000
  p.run({gemm, 3000, 4000, forward, 1, 1});
  // Two that overlap, and one that goes on beside the next kernel.
  p.copied({{4100, 4300}, {4200, 4500}, {4900, 5200}});
  p.run({gemm, 5000, 6000, backward, 1, 2});  // another step
  p.run({reduction, 6000, 7000, backward, 2, 2});
  p.copied({{6100, 6900}, {7500, 7600}});  // beside a collective; in a gap of 200,000
  p.run({gemm, 207'000, 208'000, backward, 1, 2});
  p.copied({{208'500, 208'700}});  // alone, after the last one
  const Report report = reduce({p.end(209'000)});
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 1000 - 300 + 1000 - 200},
                                {kIdleCopies, 300 + 300 + 400 + 100 + 100 + 200},
                                {kIdleBetweenSteps, 1000 - 500},
                                {kIdleLongGaps, 200'000 - 100},
                                {kIdleShortGaps, 1000 - 300},
                                {kCommunication, 1000},
                                {kMatrixBelowRoof, 4 * 400},
                                {kOtherFlop, 4 * 600}});
  CHECK(lost.sum({kIdleCopies}).marks() == Mark::kNone);
  // With the kernel after them, as the gap that they are in.
  const auto of_phase = [&](const std::string& phase) {
    return lines_of(lost, [&](const auto& part) { return part.phase == phase; })[kIdleCopies];
  };
  CHECK(of_phase("forward") == 300);
  CHECK(of_phase("backward") == 400 + 100 + 100);
  CHECK(of_phase("") == 300 + 200);
  CHECK(row_of(json_of(report), "lost", "line", "idle_copies")["ns"] == 1400);
}

// Times of other tools count from the first kernel: a copy before it begins below 0.
TEST_CASE("lost: a copy that begins below 0 is damage, and those after it are not") {
  Planted p(-1, "", true);
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  p.run({gemm, 1000, 2000});
  p.run({gemm, 5000, 6000});
  trace::TracePacket packet;
  auto* c = packet.mutable_copies();
  c->set_device(1);
  c->set_first_start_ns(uint64_t{0} - 700);
  for (const uint64_t gap : {uint64_t{0}, kStart + 700 - 500 + 3000}) c->add_gap_ns(gap);
  for (const uint64_t length : {500, 400}) c->add_duration_ns(length);
  p.trace().add(packet);
  const std::string bytes = p.end(7000);
  for (const bool merged : {false, true}) {
    const Report report = reduce_bytes({merged ? merge_bytes({{"trace0", bytes}}).bytes : bytes});
    CHECK(damage_of(report, Damage::kBadTime) == 1);
  }
  CHECK(lines(reduce({bytes}).lost.ns)[kIdleCopies] == 400);
}

TEST_CASE("lost: what copies take is what no other cause of idle time has") {
  Planted p(-1, "", true);
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  const uint32_t data = p.path("data");
  p.run({.kernel = gemm, .begin = 0, .end = 1000, .called = 0});
  // The host is late by 2^18 ns; it was in `data` for all of the time, and a copy ran for a part.
  p.run({.kernel = gemm,
         .begin = 300'032,
         .end = 301'032,
         .called = 300'032 - 128,
         .pause_path = data,
         .pause_begin = 1024,
         .pause_end = 1024 + 262'144});
  p.copied({{200'000, 290'000}});
  // Called for before the gap: it waited for a copy, and then for something else.
  p.run({.kernel = gemm, .begin = 306'032, .end = 307'032, .called = 300'032});
  p.copied({{300'500, 304'032}});
  const Report report = reduce({p.end(307'032)});
  CHECK(lines(report.lost.ns) == Lines{{kIdleCopies, 90'000 + 3000},
                                       {kIdleHostLate, 299'032 - 90'000},
                                       {kIdleQueued, 2000},
                                       {kMatrixBelowRoof, 1200},
                                       {kOtherFlop, 1800}});
  REQUIRE(report.lost.host.size() == 1);
  CHECK(report.lost.host[0].ns == 262'144 - (263'168 - 200'000));
}

TEST_CASE("lost: copies of several devices and ranks, whatever the order of their records") {
  std::vector<std::string> traces;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Planted p(rank, "", true);
    p.add_device(2);
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
    const uint64_t longer = 100 * static_cast<uint64_t>(rank);
    p.copied({{3000, 3500}, {1100, 1200 + longer}});
    p.copied({{1100, 2100}}, 2);
    p.copied({{1000, 2000}}, 3);  // nothing was launched there
    p.run({gemm, 0, 1000});
    p.run({gemm, 2000, 3000});
    p.run({gemm, 0, 1000, 0, 3});  // the second device
    p.run({gemm, 2000, 3000, 0, 3});
    traces.push_back(p.end(4000));
  }
  const LostReport lost = reduce(traces).lost;
  REQUIRE(lost.missing == "");
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 4 * 1000 - 2 * 500},
                                {kIdleCopies, 2 * 500 + 2 * 100 + 100 + 2 * 900},
                                {kIdleShortGaps, 4 * 1000 - 2 * 100 - 100 - 2 * 900},
                                {kMatrixBelowRoof, 8 * 400},
                                {kOtherFlop, 8 * 600}});
  CHECK(lines_of(lost, [](const auto& part) {
          return part.trace == 1 && part.device == 1;
        })[kIdleCopies] == 500 + 200);
}

TEST_CASE("lost: where not all copies are known their line is at least what it is") {
  const auto mark = [](const std::function<void(Planted&)>& plant, bool copies, bool old = false) {
    Planted p(-1, "", copies);
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
    p.run({gemm, 0, 1000});
    p.run({gemm, 2000, 3000});
    p.copied({{1000, 1500}});
    plant(p);
    const std::string bytes = p.end(3000);
    const LostReport lost = reduce({old ? old_summary(bytes) : bytes}).lost;
    REQUIRE(lost.missing == "");
    CHECK(lost.at(kIdleCopies) + lost.at(kIdleShortGaps) == 1000);
    CHECK(lost.at(kIdleCopies) == (old ? 0 : 500));
    return lost.sum({kIdleCopies}).marks();
  };
  const auto nothing = [](Planted&) {};
  CHECK(mark(nothing, true) == Mark::kNone);
  CHECK(mark(nothing, false) == Mark::kAtLeast);  // an older recorder, or --no-copies
  CHECK(mark(nothing, true, true) == Mark::kAtLeast);
  const auto lose = [](Planted& p) {
    trace::TracePacket packet;
    packet.mutable_ledger()->set_activity_lost(1);
    p.trace().add(packet);
  };
  CHECK(mark(lose, true) == Mark::kAtLeast);
}

TEST_CASE("lost: streams hide communication and other kernels") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  const uint32_t add = p.kernel("add", {.fp32_ns = 100, .memory_ns = 900});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  p.run({gemm, 0, 1000});
  p.run({reduction, 500, 2500, 0, 2});  // 500 ns beside the product, 1,000 beside the addition
  p.run({add, 1500, 2500});
  const Report report = reduce({p.end(2500)});
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(lines(lost.ns) == Lines{{kCommunication, 500},
                                {kOtherMemory, 800},
                                {kOtherBelowRoof, 100},
                                {kMatrixBelowRoof, 400},
                                {kOtherFlop, 700}});
  CHECK(lost.hidden_ns == 1500);
}

TEST_CASE("lost: work beside work of another class") {
  Planted p;
  // Both together do more than 90 % of what is possible, in the product's time.
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 700});
  const uint32_t add = p.kernel("add", {.fp32_ns = 200});
  p.run({gemm, 0, 1000});
  p.run({add, 0, 1000, 0, 2});
  CHECK(lines(reduce({p.end(1000)}).lost.ns) == Lines{{kMatrixBelowRoof, 100}, {kOtherFlop, 900}});
}

TEST_CASE("lost: work beyond peak is taken out of other losses, or is no ledger") {
  const auto planted = [](double beside) {
    Planted p;
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 900});
    const uint32_t add = p.kernel("add", {.fp32_ns = beside});
    const uint32_t slow = p.kernel("slow", {.fp32_ns = 100});
    p.run({gemm, 0, 1000});
    p.run({add, 0, 1000, 0, 2});
    p.run({slow, 1000, 2000});
    return reduce({p.end(2000)}).lost;
  };
  // 100 of 300 find room in the product's own time, none is there; the rest in the slow kernel's.
  CHECK(lines(planted(300).ns) == Lines{{kOtherBelowRoof, 700}, {kOtherFlop, 1300}});
  CHECK(planted(1100).missing == "above peak: FLOP, times or peaks are wrong");
}

TEST_CASE("lost: launches that were slowed, and the idle time beside them") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 500});
  const uint32_t forward = p.path("forward"), backward = p.path("backward");
  p.run({gemm, 0, 1000, forward});
  p.run({gemm, 1000, 3000, backward});  // another mean
  // The windows took 300 ns of the program; 400 are idle beside them.
  p.run({gemm, 3200, 4900, forward, 1, 0, true});   // 700 longer
  p.run({gemm, 5100, 7400, backward, 1, 0, true});  // 300 longer
  const Report report = reduce({p.end(7400, 300)});
  CHECK(lines(report.lost.ns) == Lines{{kIdleShortGaps, 100},
                                       {kMatrixBelowRoof, 4000},
                                       {kProfiler, 700 + 300 + 300},
                                       {kOtherFlop, 2000}});
  CHECK(
      lines_of(report.lost, [](const auto& part) { return part.phase == "forward"; }) ==
      Lines{{kIdleShortGaps, 50}, {kMatrixBelowRoof, 1000}, {kProfiler, 850}, {kOtherFlop, 1000}});
}

TEST_CASE("lost: integer products are no FLOP, and have a line of their own") {
  Planted p;
  // At 90 % of the peak of int8, with a scale in fp32 behind the products.
  const uint32_t int8 = p.kernel("int8_gemm", {.fp32_ns = 50, .int8_ns = 900});
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  p.run({int8, 0, 1000});
  p.run({int8, 1000, 2000});
  p.run({gemm, 1500, 2500, 0, 2});  // where both run it is the others' time
  const Report report = reduce({p.end(2500)});
  // Beside each other: 250 of the product's work and 25 of the scale's in 500 ns.
  CHECK(lines(report.lost.ns) == Lines{{kInteger, 1000 - 50 + 500 - 25},
                                       {kMatrixBelowRoof, 500 - 300 - 25 + 500 - 300},
                                       {kOtherFlop, 100 + 600}});
  const auto line = row_of(json_of(report), "lost", "line", "integer");
  CHECK(line["ns"] == 1425);
}

TEST_CASE("lost: products in fp32 are held against bf16, where they matter") {
  const auto note = [](uint64_t wall_ns) {
    Planted p;
    const uint32_t mm = p.kernel("sgemm", {.fp32_ns = 900, .fused = true});
    const uint32_t sum = p.kernel("sum", {.fp32_ns = 1000});
    const uint32_t forward = p.path("forward");
    p.run({mm, 0, 1000, p.path("aten::mm, sizes = [[300, 500], [500, 300]]", forward)});
    p.run({sum, 1000, 2000, forward});
    const Report report = reduce({p.end(wall_ns)});
    CHECK(report.lost.fp32_ns == 900);
    for (const Section& section : report_sections(report))
      if (section.key == std::string_view("lost"))
        for (const Line& line : section.below)
          if (line.parts.front().first.find("fp32") != std::string::npos)
            return line.parts.front().first;
    return std::string();
  };
  // 90 ns of the 1,000 are what their FLOP take at the peak of bf16.
  CHECK(note(2000) ==
        "  <= 45.5 % to gain: precision. Products in fp32 take 50.0 % of the time, and bf16 has "
        "10.0 times that peak: use mixed precision.");
  CHECK(note(40'000) == "");
}

namespace {

// Gains of what is said, by line.
std::map<std::string, double> gains(const Report& report) {
  std::map<std::string, double> gains;
  for (const Advice& one : advice(report)) {
    CHECK(has(one.gain_ns.marks(), Mark::kAtMost));
    gains[one.line] = *one.gain_ns.number();
  }
  return gains;
}

}  // namespace

TEST_CASE("advice: what communication, gaps and recomputation would give back at the most") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 1000});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  const uint32_t forward = p.path("forward"), recompute = p.path("recompute");
  p.run({gemm, 0, 1000, forward});
  p.run({reduction, 500, 3000, forward, 2});  // 500 beside the product, 2,000 alone
  p.run({gemm, 3600, 5600, recompute});       // after a gap of 600, and at half of the peak
  Report report = reduce({p.end(5600)});
  CHECK(gains(report) == std::map<std::string, double>{
                             {"communication", 2000},
                             {"recompute", 600 + 2000},  // the gap, too
                             {"matrix", 1000}});  // three are said: of the gap by itself nothing
  const std::vector<Advice> said = advice(report);
  CHECK(said[0].line == "recompute");  // the largest first
  CHECK(said[0].sentence(report.lost) ==
        "<= 46.4 % to gain: recomputation. It takes 35.7 % of the time: checkpoint less, if memory "
        "allows.");
  const auto screen = lost_figures(report);
  REQUIRE(screen.size() == 3);
  CHECK(screen[2].note ==
        "also <= 35.7 % communication alone, <= 17.9 % products below peak (--sections lost)");
  // Times of a simulated GPU are no reason to change a program.
  report.simulated = true;
  CHECK(advice(report).empty());
}

TEST_CASE("advice: nothing is said of less than 3 % of the time") {
  const auto said = [](uint64_t communication_ns) {
    Planted p;
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 9600});
    const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
    p.run({gemm, 0, 10'000 - communication_ns});
    p.run({reduction, 10'000 - communication_ns, 10'000});
    return advice(reduce({p.end(10'000)})).size();
  };
  CHECK(said(290) == 0);
  CHECK(said(310) == 1);
}

TEST_CASE(
    "advice: padding is said with its sizes, and gives back that part of the products' time") {
  Planted p;
  // By formula 125,000 ns; in tiles of 128 x 128 1,000 rows and columns are computed as 1,024.
  const double ratio = 1024.0 * 1024 / 1e6;
  const uint32_t mm = p.kernel("cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_nn_align8",
                               {.tensor_ns = 125'000 * ratio});
  const uint32_t path =
      p.path("aten::mm, seq = 1, sizes = [[1000, 62500], [62500, 1000]]", p.path("forward"));
  p.run({mm, 0, 187'500, path});
  const Report report = reduce({p.end(187'500)});
  const std::string evidence = json_of(report)["operator_places"][0]["evidence"];
  const auto said = advice(report);
  const auto padding = std::ranges::find(said, "padding", &Advice::line);
  REQUIRE(padding != said.end());
  CHECK(*padding->gain_ns.number() == Approx(187'500 * (1 - 1 / ratio)).margin(1));
  CHECK(evidence.starts_with("1000 x 1000 computed as 1024 x 1024, tiles of 128 x 128: kernel "));
  CHECK(padding->words ==
        "aten::mm, 1000 x 1000 computed as 1024 x 1024, tiles of 128 x 128: use sizes that the "
        "tiles divide.");
}

TEST_CASE("lost: recomputation, padding, and FLOP of no operator") {
  Planted p;
  // By formula 2 x 1000 x 1000 x 500 FLOP = 1,000 ns.
  const std::string mm = "aten::mm, seq = 1, sizes = [[1000, 500], [500, 1000]]";
  const uint32_t padded = p.kernel("padded", {.tensor_ns = 1100});
  const uint32_t exact = p.kernel("exact", {.tensor_ns = 1000});
  const uint32_t add = p.kernel("add", {.fp32_ns = 50});
  const uint32_t forward = p.path("forward"), recompute = p.path("recompute");
  const uint32_t in_forward = p.path(mm, forward), in_recompute = p.path(mm, recompute);
  p.run({padded, 0, 2000, in_forward});
  p.run({exact, 2000, 4000, in_recompute});
  p.run({add, 4000, 4100, forward});
  const Report report = reduce({p.end(4100)});
  REQUIRE(report.lost.missing == "");
  CHECK(lines(report.lost.ns) == Lines{{kOtherBelowRoof, 50},
                                       {kMatrixBelowRoof, 900 + 1000},
                                       {kRecompute, 1000},
                                       {kPadding, 100},
                                       {kOtherFlop, 50},
                                       {kModel, 1000}});
  CHECK(lines_of(report.lost, [](const auto& part) { return part.phase == "recompute"; }) ==
        Lines{{kMatrixBelowRoof, 1000}, {kRecompute, 1000}});
  CHECK(report.lost.formula);

  // An operator that does with less than its formula says.
  Planted saving;
  const uint32_t fast = saving.kernel("winograd", {.tensor_ns = 400});
  saving.run({fast, 0, 2000, saving.path(mm, saving.path("forward"))});
  const Report saved = reduce({saving.end(2000)});
  CHECK(lines(saved.lost.ns) == Lines{{kMatrixBelowRoof, 1600}, {kModel, 400}});
  CHECK(saved.lost.saved_ns == 600);
}

TEST_CASE("lost: operators in other precisions count with their own peak") {
  Planted p;
  const uint32_t bf16 = p.kernel("bf16", {.tensor_ns = 1000});
  const uint32_t fp32 = p.kernel("fp32", {.fp32_ns = 10'000});
  const uint32_t forward = p.path("forward");
  p.run({bf16, 0, 1000, p.path("aten::mm, sizes = [[1000, 500], [500, 1000]]", forward)});
  // The same FLOP by formula, and as many executed: 10 us at the peak of fp32. An addition is no
  // multiply-add: the kernel is none of products.
  p.run({fp32, 1000, 11'000, p.path("aten::mm, sizes = [[1000, 1000], [1000, 500]]", forward)});
  const Report report = reduce({p.end(12'000)});
  CHECK(lines(report.lost.ns) == Lines{{kIdleStartEnd, 1000}, {kModel, 11'000}});
  CHECK(*report.utilization.mfu()->wall.number() == Approx(11.0 / 12));
}

TEST_CASE("lost: MFU is no more than it would be, were all operators counted") {
  const auto mfu = [](bool counted) {
    Planted p;
    const uint32_t mm = p.kernel("mm", {.tensor_ns = 1000});
    const uint32_t other = p.kernel("other", {.tensor_ns = 1000, .counted = counted});
    const uint32_t add = p.kernel("add", {.fp32_ns = 1000});
    const uint32_t forward = p.path("forward");
    p.run({mm, 0, 2000, p.path("aten::mm, sizes = [[1000, 500], [500, 1000]]", forward)});
    p.run({other, 2000, 4000, p.path("aten::mm, sizes = [[500, 1000], [1000, 1000]]", forward)});
    p.run({add, 4000, 6000, forward});
    return reduce({p.end(8000)}).utilization.mfu()->wall;
  };
  CHECK(*mfu(true).number() == Approx(2000.0 / 8000));
  // Of a GPU of which only some peaks were given, nothing says how quick the other may have been.
  CHECK_FALSE(mfu(false).known());
  CHECK(mfu(false).why() ==
        "launches without a FLOP count, and not all peaks of the device are known");
}

TEST_CASE("lost: one formula for the whole run") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 500});
  p.run({gemm, 0, 1000, p.path("forward")});
  p.run({gemm, 1000, 2000, p.path("recompute")});
  p.run({gemm, 2000, 3000, p.path("optimizer")});  // it is no work of the model
  ReduceOptions options;
  options.utilization.formula_flop = 400e6;
  const LostReport lost = reduce({p.end(3000)}, kPeaks, options).lost;
  CHECK(lines(lost.ns) == Lines{{kMatrixBelowRoof, 1500},
                                {kRecompute, 500},
                                {kPadding, 100},
                                {kOtherFlop, 500},
                                {kModel, 400}});
  CHECK(lost.given_formula);
}

TEST_CASE("lost: what one line may have more of, others have less of") {
  LostNs ns{};
  ns[place_of(kUncounted)] = 100;
  ns[place_of(kPadding)] = 10;
  ns[place_of(kOtherFlop)] = 1000;
  ns[place_of(kModel)] = 500'000;
  LostMarks marks;
  marks.may_be({kOtherFlop}, {kPadding, kModel});
  CHECK(marks.of({kOtherFlop}, ns) == Mark::kAtMost);
  CHECK(marks.of({kPadding}, ns) == Mark::kAtLeast);
  CHECK(marks.of({kModel}, ns) == Mark::kAtLeast);
  CHECK(marks.of({kPadding, kModel}, ns) == Mark::kAtLeast);
  CHECK(marks.of({kOtherFlop, kModel}, ns) == Mark::kAtMost);
  CHECK(marks.of({kPadding, kOtherFlop, kModel}, ns) == Mark::kNone);
  CHECK(marks.of({kUncounted}, ns) == Mark::kNone);
  CHECK(marks.range_ns({kPadding}, ns) == std::pair<uint64_t, uint64_t>(10, 1010));
  CHECK(marks.range_ns({kOtherFlop}, ns) == std::pair<uint64_t, uint64_t>(0, 1000));

  // Not in the first four digits of the one, and in those of the other.
  LostMarks little;
  little.may_be({kOtherFlop}, {kPadding, kModel}, 2);
  CHECK(little.of({kModel}, ns) == Mark::kNone);
  CHECK(little.of({kPadding}, ns) == Mark::kAtLeast);
  CHECK(little.range_ns({kPadding}, ns) == std::pair<uint64_t, uint64_t>(10, 12));

  // By what the line says it is, what is in it is right.
  LostMarks uncounted;
  uncounted.may_be_too({kUncounted}, {kPadding, kModel});
  CHECK(uncounted.of({kUncounted}, ns) == Mark::kNone);
  CHECK(uncounted.of({kPadding}, ns) == Mark::kAtLeast);
  ns[place_of(kUncounted)] = 0;
  CHECK(uncounted.of({kPadding}, ns) == Mark::kNone);
}

TEST_CASE("lost: steps last from the end of the kernels before them to their own end") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  const uint32_t step = p.path("step");
  p.run({gemm, 100, 1100, 0});
  for (uint32_t i = 0; i < 3; ++i) {
    const uint64_t at = 2000 + 3000 * i;
    p.run({gemm, at, at + 1000, step, 1, i + 1});
    p.run({gemm, at + 1200, at + 2200, step, 1, i + 1});
  }
  p.trace().steps({{1, kStart + 2000, 2500}, {2, kStart + 5000, 2500}, {3, kStart + 8000, 2500}},
                  step);
  const Report report = reduce({p.end(10'700)});
  const LostReport& lost = report.lost;
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 100 + 500},
                                {kIdleBetweenSteps, 900 + 800 + 800},
                                {kIdleShortGaps, 600},
                                {kMatrixBelowRoof, 7 * 400},
                                {kOtherFlop, 7 * 600}});
  std::vector<LostReport::Step> steps;
  for (const auto& one : lost.steps) steps.push_back(one);
  REQUIRE(steps.size() == 4);
  CHECK(lines(steps[0].ns) ==
        Lines{{kIdleStartEnd, 600}, {kMatrixBelowRoof, 400}, {kOtherFlop, 600}});
  CHECK(steps[1].first == 1);
  CHECK(lines(steps[1].ns) == Lines{{kIdleBetweenSteps, 900},
                                    {kIdleShortGaps, 200},
                                    {kMatrixBelowRoof, 800},
                                    {kOtherFlop, 1200}});
  CHECK(lines(steps[3].ns) == Lines{{kIdleBetweenSteps, 800},
                                    {kIdleShortGaps, 200},
                                    {kMatrixBelowRoof, 800},
                                    {kOtherFlop, 1200}});
  CHECK(lost.device_steps == 3);
  REQUIRE_FALSE(advice(report).empty());
  CHECK(advice(report)[0].words ==
        "gemm takes 65.4 % of the time, at 60.0 % of peak: use ncu to see why.");
}

TEST_CASE("lost: steps that are skipped are in no line, nor is what is outside of steps") {
  const auto planted = [](int32_t rank, bool steps) {
    Planted p(rank);
    p.add_device(2);
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
    const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
    const uint32_t step = p.path("step");
    p.run({gemm, 100, 1100});                   // before all steps
    p.run({gemm, 2000, 12'000, step, 1, 1});    // slow, as first steps are
    p.run({gemm, 12'500, 13'500, step, 1, 1});  // 500 ns of it after the first step's range
    p.run({gemm, 13'600, 14'600, step, 1, 2});
    p.run({gemm, 14'600, 15'600, step, 2, 2, true});
    p.run({reduction, 15'000, 16'000, step, 3, 2});
    p.run({gemm, 17'000, 18'000, step, 1, 3});
    p.run({gemm, 19'000, 21'000, step, 1, 3});  // 1,000 ns of it after the last step's range
    p.run({gemm, 30'000, 31'000});              // after all steps
    if (steps)
      p.trace().steps(
          {{1, kStart + 1500, 11'500}, {2, kStart + 13'000, 3500}, {3, kStart + 16'800, 3200}},
          step);
    return p.end(40'000);
  };
  ReduceOptions options;
  options.utilization.skip_steps = 1;
  // A process without steps has no part.
  const Report report = reduce({planted(0, true), planted(1, false)}, kPeaks, options);
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(lost.skipped_steps == 1);
  CHECK(lost.device_steps == 2 * 2);
  // From 13,000, where the second step begins on the second device, to the last kernel's end. On
  // the first device from where the last kernel of the first step ends.
  CHECK(lost.capacity_ns == 8000 + 7500);
  // Of the first device: three whole kernels, one twice as long.
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 100 + 2000 + 5000},
                                {kIdleBetweenSteps, 1400},
                                {kIdleShortGaps, 1000},
                                {kCommunication, 1000},
                                {kMatrixBelowRoof, 3 * 400 + 1400},
                                {kOtherFlop, 3 * 600 + 600}});
  for (const auto& step : lost.steps) CHECK(step.trace == 0);
  const auto table = lost_figures(report);
  CHECK(table.at(0).note.ends_with(", without the first step"));
  options.utilization.skip_steps = 3;
  CHECK(reduce({planted(0, true)}, kPeaks, options).lost.missing ==
        "--skip-steps 3 leaves no step");
  options.utilization.skip_steps = 1;
  CHECK(reduce({planted(0, false)}, kPeaks, options).lost.missing.starts_with("no NVTX range"));
  const std::string summary = merge_bytes({{"t", planted(0, true)}}).bytes;
  CHECK(reduce({summary}, kPeaks, options).lost.missing ==
        "needs each step: traces of level launches, and no summaries");
}

TEST_CASE("lost: communication that nothing hides is said to be so, with what is hidden") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 950});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  p.run({gemm, 0, 1000});
  p.run({reduction, 500, 2500, 0, 2});
  const auto row = json_of(reduce({p.end(2500)}))["advice"][0];
  CHECK(row["line"] == "communication");
  CHECK(row["gain_ns_at_most"] == 1500);
  CHECK(row["advice"] ==
        "1.500 us of 2.000 us is not hidden: overlap or prefetch. Waiting for other ranks is in "
        "it.");
}

TEST_CASE("lost: devices and ranks add up, each with its wall time") {
  std::vector<std::string> traces;
  for (int32_t rank = 0; rank < 3; ++rank) {
    Planted p(rank);
    p.add_device(2);
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
    const uint64_t slower = 100 * static_cast<uint64_t>(rank);
    p.run({gemm, 0, 1000 + slower});
    p.run({gemm, 500, 1500, 0, 3});  // the second device
    traces.push_back(p.end(2000));
  }
  const Report report = reduce(traces);
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(lost.capacity_ns == 3 * 2 * 2000);
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 3 * 1000 + 1000 + 900 + 800},
                                {kMatrixBelowRoof, 6 * 400 + 300},
                                {kOtherFlop, 6 * 600}});
  CHECK(lines_of(lost, [](const auto& part) { return part.trace == 2 && part.device == 1; }) ==
        Lines{{kIdleStartEnd, 800}, {kMatrixBelowRoof, 600}, {kOtherFlop, 600}});
  // Of 4,000 ns each process has 2,000, 1,900 and 1,800 idle, and the same work.
  const auto json = json_of(report);
  const auto idle = row_of(json, "lost", "line", "idle");
  CHECK(idle["share_low"].get<double>() == Approx(0.45));
  CHECK(idle["share_high"].get<double>() == Approx(0.5));
  const auto work = row_of(json, "lost", "line", "other_flop");
  CHECK(work["share_low_at_most"].get<double>() == Approx(0.3));  // no formula is known
  CHECK(work["share_high_at_most"].get<double>() == Approx(0.3));
  for (const Section& section : report_sections(report))
    if (section.key == std::string_view("lost")) {
      const size_t range = section.table->place_of("by_process").value();
      CHECK(std::get<std::string>(section.table->rows[0][range].value) == "45.0 to 50.0");
    }
}

TEST_CASE("lost: everything at once, on two ranks with two devices each") {
  std::vector<std::string> traces;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Planted p(rank);
    p.add_device(2);
    const uint64_t late = 50 * static_cast<uint64_t>(rank);
    const uint32_t padded = p.kernel("padded", {.tensor_ns = 1100});
    const uint32_t exact = p.kernel("exact", {.tensor_ns = 1000});
    const uint32_t add = p.kernel("add", {.fp32_ns = 100, .memory_ns = 400});
    const uint32_t int8 = p.kernel("int8_gemm", {.int8_ns = 300});
    const uint32_t sort = p.kernel("sort", {.counted = false});
    const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
    const std::string mm = "aten::mm, seq = 1, sizes = [[1000, 500], [500, 1000]]";
    const uint32_t step = p.path("step"), forward = p.path("forward", step),
                   recompute = p.path("recompute", step);
    const uint32_t in_forward = p.path(mm, forward), in_recompute = p.path(mm, recompute);
    std::vector<TraceBuilder::Step> steps;
    // The same on both devices, and in both steps but for one slowed launch.
    for (uint32_t number = 1; number <= 2; ++number) {
      const uint64_t at = 1000 + 20'000 * (number - 1) + late;
      for (const uint32_t stream : {1U, 3U}) {
        const bool slowed = number == 2 && stream == 1;
        p.run({padded, at, at + 2000, in_forward, stream, number});
        p.run({exact, at + 2100, at + 4100, in_recompute, stream, number});
        p.run({reduction, at + 3600, at + 5100, step, stream + 1, number});  // 1,000 alone
        p.run({add, at + 5100, at + (slowed ? 6350 : 6100), forward, stream, number, slowed});
        p.run({int8, at + 6400, at + 7000, forward, stream, number});
        p.run({sort, at + 7000, at + 7200, forward, stream, number});
      }
      steps.push_back({number, kStart + at, 8000});
    }
    p.trace().steps(steps, step);
    traces.push_back(p.end(30'000, 40));
  }
  const Report report = reduce(traces);
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(lost.capacity_ns == 2 * 2 * 30'000);
  // 8 times what a device has of a step, 4 times what it has once, twice what a rank has.
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 4 * (30'000 - 27'200)},
                                {kIdleBetweenSteps, 4 * 12'800},
                                {kIdleShortGaps, 8 * (100 + 300) - 2 * (250 + 40)},
                                {kCommunication, 8 * 1000},
                                {kUncounted, 8 * 200},
                                {kInteger, 8 * 600},
                                {kOtherMemory, 8 * 300},
                                {kOtherBelowRoof, 8 * 600},
                                {kMatrixBelowRoof, 8 * (900 + 1000)},
                                {kProfiler, 2 * (250 + 40)},
                                {kRecompute, 8 * 1000},
                                {kPadding, 8 * 100},
                                {kOtherFlop, 8 * 100},
                                {kModel, 8 * 1000}});
  CHECK(lost.hidden_ns == 8 * 500);
}

TEST_CASE("lost: a launch without a time is taken out of the idle time") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  p.run({gemm, 0, 1000});
  p.run({gemm, 5000, 6000});
  p.untimed(gemm);
  const LostReport lost = reduce({p.end(6000)}).lost;
  CHECK(lines(lost.ns) ==
        Lines{{kIdleShortGaps, 3000}, {kMatrixBelowRoof, 1200}, {kOtherFlop, 1800}});
  CHECK(has(lost.sum({kIdleShortGaps}).marks(), Mark::kEstimate));
}

TEST_CASE("lost: bytes that nobody read are in what is below the roof") {
  Planted p;
  p.run({p.kernel("gemm", {.tensor_ns = 600, .bytes = false}), 0, 1000});
  const LostReport lost = reduce({p.end(1000)}).lost;
  CHECK(lines(lost.ns) == Lines{{kMatrixBelowRoof, 400}, {kOtherFlop, 600}});
  CHECK(has(lost.sum({kMatrixBelowRoof}).marks(), Mark::kAtMost));
}

TEST_CASE("lost: no ledger, and why") {
  const auto planted = [](const char* uuid, int32_t rank = 0) {
    Planted p(rank, uuid);
    p.run({p.kernel("gemm", {.tensor_ns = 600}), 0, 1000});
    return p;
  };
  CHECK(reduce({planted("").end(900)}).lost.missing ==
        "the recording ended before its kernels did, by its clock");
  Planted lossy = planted("");
  lossy.trace().ledger(3, 1, 2);
  CHECK(reduce({lossy.end(1000)}).lost.missing == "launches are lost");
  CHECK(reduce({planted("gpu a").end(1000), planted("gpu b", 1).end(1000)}).lost.known());
  CHECK(reduce({planted("gpu a").end(1000), planted("gpu a", 1).end(1000)}).lost.missing ==
        "several processes used one GPU at once");
}

namespace {

// Two steps. Computation on one stream; communication on another, hidden in part; a copy; a gap in
// which the host was late; and a launch in time.
std::string timeline(bool counted) {
  Planted p(-1, "", true);
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600, .counted = counted});
  const uint32_t add = p.kernel("add", {.fp32_ns = 100, .counted = counted});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false}, true);
  const uint32_t forward = p.path("forward"), backward = p.path("backward");
  p.trace().steps({{1, kStart + 1000, 20'000}, {2, kStart + 21'000, 15'000}}, forward);
  p.run({gemm, 2000, 5000, forward, 1, 1});
  p.run({add, 6000, 8000, backward, 1, 1});
  p.run({reduction, 7000, 11'000, backward, 2, 1});  // 1,000 hidden, 3,000 alone
  p.run({.kernel = gemm,
         .begin = 23'000,
         .end = 29'000,
         .path = forward,
         .step = 2,
         .called = 23'000 - 12 * 128});
  p.run({.kernel = add,
         .begin = 31'000,
         .end = 32'000,
         .path = backward,
         .step = 2,
         .called = 31'000 - 64 * 128});
  p.copied({{12'000, 15'000}});
  return p.end(40'000);
}

}  // namespace

TEST_CASE("lost: without FLOP counts it is where the time went, and of work nothing is known") {
  // By hand, in us: idle are 0 to 2, 5 to 6, 11 to 23 (of which 3 are a copy; the next kernel was
  // called for after the last one's end), 29 to 31 (called for before) and 32 to 40.
  const Lines idle{{kIdleStartEnd, 2000 + 8000},
                   {kIdleCopies, 3000},
                   {kIdleHostLate, 9000},
                   {kIdleQueued, 2000}};
  const LostReport full = reduce({timeline(true)}).lost;
  const Report report = reduce({timeline(false)});
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(full.no_work == "");
  CHECK(lost.no_work == "FLOP not measured");
  CHECK(lost.capacity_ns == 40'000);
  for (const auto& [line, ns] : idle) {
    CAPTURE(place_of(line));
    CHECK(lost.at(line) == ns);
  }
  CHECK(lost.at(kCommunication) == 3000);
  CHECK(lost.hidden_ns == 1000);
  CHECK(lost.at(kUncounted) == 3000 + 2000 + 6000 + 1000);
  // The same to the nanosecond as where all launches have counts.
  for (size_t line = 0; line <= place_of(kCommunication); ++line)
    CHECK(lost.ns[line] == full.ns[line]);
  REQUIRE(report.communication.devices.size() == 1);
  CHECK(report.communication.devices[0].alone_ns == 3000);
  CHECK(report.communication.devices[0].hidden_ns == 1000);

  // What FLOP decide is not known, which is not 0, in every form.
  std::map<std::string, nlohmann::json> rows;
  const auto json = json_of(report);
  for (const auto& row : json["lost"]) rows[row["line"]] = row;
  for (const char* line : {"idle", "idle_copies", "communication", "uncounted", "profiler"})
    CHECK(rows.at(line)["share"].is_number());
  for (const char* line : {"integer", "other", "other_memory", "matrix", "matrix_blocks",
                           "recompute", "padding", "other_flop", "model"}) {
    CAPTURE(line);
    for (const char* column : {"ns", "share", "left"}) CHECK(rows.at(line)[column].is_null());
  }
  const auto capacity = json["lost_capacity"][0];
  CHECK(capacity["saved_ns"].is_null());
  CHECK(capacity["fp32_products_ns"].is_null());
  CHECK(capacity["missing"] == "FLOP not measured");
  CHECK(capacity["hidden_communication_ns"] == 1000);

  const std::string text = text_of(report);
  CHECK(text.find("Where the time went, of 40.00 us of device time") != std::string::npos);
  CHECK(text.find("padding ") == std::string::npos);
  CHECK(text.find("recomputation") == std::string::npos);
  // On the first screen idle time has its causes: 10, 9, 3, 3, 2 and 1 of 40 us.
  const auto screen = lost_figures(report);
  REQUIRE(!screen.empty());
  CHECK(std::string(screen[0].name) == "Time lost");
  CHECK(screen[0].note.find("host late") != std::string::npos);
  CHECK(screen[0].note.find("communication alone 7.5 %") != std::string::npos);
}

TEST_CASE("lost: times need no peak") {
  const LostReport full = reduce({timeline(true)}).lost;
  const Report report = reduce({timeline(true)}, {});
  const LostReport& lost = report.lost;
  REQUIRE(lost.missing == "");
  CHECK(full.no_work == "");
  CHECK(lost.no_work == "no peak known");
  CHECK(lost.hidden_ns == full.hidden_ns);
  // Idle time and communication are the same to the nanosecond; all other kernels are one line.
  uint64_t kernels = 0;
  for (size_t line = 0; line < kLostLines; ++line)
    if (line <= place_of(kCommunication))
      CHECK(lost.ns[line] == full.ns[line]);
    else
      kernels += full.ns[line];
  CHECK(lost.at(kUncounted) == kernels);
  CHECK(lost.sum({kUncounted}).marks() == Mark::kNone);
  const auto j = json_of(report);
  for (const auto& row : j["lost"])
    if (row["line"] == "model" || row["line"] == "padding") {
      CHECK(row["ns"].is_null());
      CHECK(row["ns_why"] == "no peak known");
    }
  CHECK(text_of(report).find("Without a peak nothing is known") != std::string::npos);
}

TEST_CASE("lost: one launch with a count, and there is a ledger of work again") {
  Planted p;
  p.run({p.kernel("sort", {.counted = false}), 0, 1000});
  p.run({p.kernel("gemm", {.tensor_ns = 600}), 1000, 2000});
  const LostReport lost = reduce({p.end(2000)}).lost;
  CHECK(lost.no_work == "");
  CHECK(lines(lost.ns) == Lines{{kUncounted, 1000}, {kMatrixBelowRoof, 400}, {kOtherFlop, 600}});
}

TEST_CASE("lost: time needs no peak where there is no work") {
  Planted p;
  p.run({p.kernel("sort", {.counted = false}), 500, 1000});
  const LostReport lost = reduce({p.end(1000)}, {}).lost;
  REQUIRE(lost.missing == "");
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 500}, {kUncounted, 500}});
}

TEST_CASE("lost: of an old summary, where kernels ran one after another") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  const uint32_t sort = p.kernel("sort", {.counted = false});
  const uint32_t forward = p.path("forward");
  p.run({gemm, 100, 1100, forward});
  p.run({sort, 1200, 1500, forward, 1, 1});
  p.run({gemm, 201'500, 202'500, forward, 1, 2});
  p.run({gemm, 202'500, 204'000, forward, 1, 2, true});
  const std::string bytes = p.end(204'100, 50);
  const LostReport trace = reduce({bytes}).lost;
  const LostReport summary = reduce({old_summary(bytes)}).lost;
  CHECK(lines(trace.ns) == Lines{{kIdleStartEnd, 200},
                                 {kIdleBetweenSteps, 200'100},
                                 {kUncounted, 300},
                                 {kMatrixBelowRoof, 1200},
                                 {kProfiler, 500},
                                 {kOtherFlop, 1800}});
  // Which steps gaps are between it does not say.
  CHECK(lines(summary.ns) == Lines{{kIdleStartEnd, 200},
                                   {kIdleLongGaps, 200'000},
                                   {kIdleShortGaps, 100},
                                   {kUncounted, 300},
                                   {kMatrixBelowRoof, 1200},
                                   {kProfiler, 500},
                                   {kOtherFlop, 1800}});
  CHECK(has(summary.sum({kIdleLongGaps}).marks(), Mark::kAtMost));
  CHECK(has(summary.sum({kIdleBetweenSteps}).marks(), Mark::kAtLeast));
}

TEST_CASE("lost: of a summary that does not say what ran at once, no ledger") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  p.run({gemm, 0, 1000});
  p.run({gemm, 500, 1500, 0, 2});
  const std::string bytes = p.end(2000);
  CHECK(reduce({old_summary(bytes)}).lost.missing ==
        "a summary does not say which kernels ran at once: read its traces");
  const auto with = [&](auto change) {
    const std::string summary = changed(summary_of({bytes}), [&](trace::TracePacket& packet) {
      if (packet.has_at_once()) change(*packet.mutable_at_once());
      return true;
    });
    return reduce({summary}).lost.missing;
  };
  CHECK(with([](trace::AtOnce&) {}) == "");
  const char* const damaged =
      "the part of a summary that says which kernels ran at once is damaged";
  CHECK(with([](trace::AtOnce& m) { m.clear_set(); }) == damaged);
  for (const uint64_t rows : {0, 1, 3})
    CHECK(with([rows](trace::AtOnce& m) { m.set_rows(rows); }) == damaged);
  CHECK(with([](trace::AtOnce& m) { m.add_set(UINT64_MAX); }) == damaged);
  CHECK(with([](trace::AtOnce& m) { m.mutable_set()->RemoveLast(); }) == damaged);
  CHECK(with([](trace::AtOnce& m) { m.set_set(1, m.set(1) + 5); }) == damaged);
  CHECK(with([](trace::AtOnce& m) { m.set_set(1, m.set(1) - 5); }) == "");  // idle for longer
}

// Launches of a kernel take differently long, some of them less than bytes and blocks say: a
// summary knows only how long they took together.
TEST_CASE("lost: of a summary whose kernels are faster at times than their roof allows") {
  std::mt19937 random(7);
  Planted p;
  const std::vector<uint32_t> kernels{
      p.kernel("gemm", {.tensor_ns = 200, .memory_ns = 300, .blocks = 170}),
      p.kernel("add", {.fp32_ns = 50, .memory_ns = 350}), p.kernel("sort", {.counted = false}),
      p.kernel("ncclDevKernel_AllReduce", {.counted = false})};
  const std::vector<uint32_t> paths{p.path("forward"), p.path("backward"), p.path("optimizer")};
  uint64_t end = 0;
  for (const uint32_t stream : {1U, 2U}) {
    uint64_t at = 0;
    for (int i = 0; i < 300; ++i) {
      const uint64_t ns = 220 + random() % 400;
      p.run({kernels[random() % 4], at, at + ns, paths[random() % 3], stream});
      at += ns + (random() % 2) * (random() % 300);
    }
    end = std::max(end, at);
  }
  const std::string bytes = p.end(end + 100);
  ReduceOptions options;
  options.lost = true;
  for (const auto& peak : kPeaks) options.utilization.peaks.push_back(parse_peak(peak).value);
  const LostReport lost = reduce_bytes({bytes}, options).lost;
  const LostReport summed = reduce_bytes({summary_of({bytes})}, options).lost;
  REQUIRE(lost.missing == "");
  REQUIRE(summed.missing == "");
  CHECK(adds_up(summed));
  CHECK(summed.hidden_ns == lost.hidden_ns);
  // What is rounded is a part of a nanosecond.
  for (const LostRow& row : kLostRows)
    if (row.parent == nullptr || std::string_view(row.parent) == "idle")
      CHECK(std::abs(static_cast<double>(ns_of(summed.ns, row)) -
                     static_cast<double>(ns_of(lost.ns, row))) <= 1);
  for (const auto& [memory, below] :
       {std::pair{kMatrixMemory, kMatrixBelowRoof}, std::pair{kOtherMemory, kOtherBelowRoof}}) {
    CHECK(summed.at(memory) > lost.at(memory));
    CHECK(summed.at(below) < lost.at(below));
    CHECK(has(summed.sum({memory}).marks(), Mark::kAtMost));
    CHECK(has(summed.sum({below}).marks(), Mark::kAtLeast));
  }
}

TEST_CASE("lost: of a summary with more kernels at once than it keeps apart") {
  Planted p;
  std::vector<uint32_t> one, other;
  for (int i = 0; i < 70; ++i) {
    one.push_back(p.kernel("gemm" + std::to_string(i), {.tensor_ns = 60}));
    other.push_back(p.kernel("sort" + std::to_string(i), {.counted = false}));
  }
  uint64_t at = 0;
  for (const uint32_t a : one)
    for (const uint32_t b : other) {
      p.run({a, at, at + 100, 0, 1});
      p.run({b, at + 50, at + 150, 0, 2});
      at += 200;
    }
  ReduceOptions options;
  options.lost = true;
  for (const auto& peak : kPeaks) options.utilization.peaks.push_back(parse_peak(peak).value);
  const LostReport lost = reduce_bytes({summary_of({p.end(at)})}, options).lost;
  REQUIRE(lost.missing == "");
  CHECK(adds_up(lost));
  const uint64_t pairs = 70 * 70, kept = 4096;
  CHECK(lines(lost.ns) == Lines{{kIdleStartEnd, 50},
                                {kIdleShortGaps, pairs * 50 - 50},
                                {kUncounted, pairs * 50 + (pairs - kept) * 25},
                                {kMatrixBelowRoof, pairs * 40 - (pairs - kept) * 25},
                                {kOtherFlop, pairs * 60}});
  CHECK(has(lost.sum({kUncounted}).marks(), Mark::kEstimate));
}

TEST_CASE("lost: of a recording that has no starts, with all idle time as one") {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  p.trace().tally({{.signature = gemm, .launches = 4, .timed = 3, .gpu_time_ns = 3000}});
  const LostReport lost = reduce({p.end(10'000)}).lost;
  CHECK(lines(lost.ns) ==
        Lines{{kIdleStartEnd, 6000}, {kMatrixBelowRoof, 1600}, {kOtherFlop, 2400}});
  CHECK(has(lost.sum({kIdleStartEnd}).marks(), Mark::kEstimate));
}

TEST_CASE("lost: it is not made where nobody asks for it") {
  Planted p;
  p.run({p.kernel("gemm", {.tensor_ns = 600}), 0, 1000});
  CHECK(reduce_bytes({p.end(1000)}).lost.missing == "not asked for");
}

TEST_CASE("lost: the first screen has it, however many launches there are") {
  constexpr uint64_t kLaunches = 250'000;
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
  for (uint64_t i = 0; i < kLaunches; ++i) p.run({gemm, i * 1000, (i + 1) * 1000});
  const std::string trace = p.end(kLaunches * 1000);
  const auto reduced = [&](const std::string& input) {
    ReduceOptions options;
    options.lost = true;
    options.utilization.peaks.push_back(parse_peak("tensor_bf16=1000T").value);
    return reduce_bytes({input}, std::move(options));
  };
  const Report of_trace = reduced(trace);
  CHECK(lost_figures(of_trace).at(0).value == "40.0 %");
  CHECK(lost_figures(of_trace).at(0).note == "products below peak 40.0 %");
  const Report of_summary = reduced(summary_of({trace}));
  check_summary(of_trace.lost, of_summary.lost);
  CHECK(lost_figures(of_summary).at(0).note == lost_figures(of_trace).at(0).note);
}

TEST_CASE("lost: a comparison has the time of a step by line, and its differences add up") {
  const auto planted = [](uint64_t kernel_ns, uint64_t gap_ns) {
    Planted p;
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600});
    const uint32_t step = p.path("step");
    std::vector<TraceBuilder::Step> steps;
    uint64_t at = 0;
    for (uint32_t number = 1; number <= 4; ++number, at += kernel_ns + gap_ns) {
      p.run({gemm, at, at + kernel_ns, step, 1, number});
      steps.push_back({number, kStart + at, kernel_ns});
    }
    p.trace().steps(steps, step);
    return reduce({p.end(at)});
  };
  // Each step: 200 ns slower, and 50 ns less idle.
  const Comparison compared = compare(planted(1000, 100), planted(1200, 50), {});
  const auto table =
      std::ranges::find(compared.tables, std::string_view("compared_lost"), &Table::key);
  REQUIRE(table != compared.tables.end());
  std::map<std::string, double> difference;
  for (const TableRow& row : table->rows)
    difference[std::get<std::string>(row[0].value)] =
        *figure_of(row[*table->place_of("step_difference_ns")]).number();
  CHECK(difference["idle"] == Approx(-50));
  CHECK(difference["matrix"] == Approx(200));
  CHECK(difference["other_flop"] == Approx(0).margin(1e-9));
  CHECK(difference["matrix_below_roof"] == Approx(200));
  double sum = 0;
  for (const LostRow& row : kLostRows)
    if (row.parent == nullptr) sum += difference[row.key];
  CHECK(sum == Approx(150));
}

namespace {

// Four steps: each a product of 600 ns at peak, communication, and a gap to the next. They begin
// `start` ns after the recording.
struct Stepped {
  uint64_t product_ns = 1000, communication_ns = 0, gap_ns = 100, start = 0;
  bool counted = true, steps = true;
};
LostReport stepped(const Stepped& of) {
  Planted p;
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 600, .counted = of.counted});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  const uint32_t step = p.path("step");
  std::vector<TraceBuilder::Step> steps;
  uint64_t at = of.start;
  for (uint32_t number = 1; number <= 4; ++number) {
    const uint32_t in = of.steps ? number : 0;
    p.run({gemm, at, at + of.product_ns, step, 1, in});
    const uint64_t end = at + of.product_ns + of.communication_ns;
    if (of.communication_ns > 0) p.run({reduction, at + of.product_ns, end, step, 1, in});
    steps.push_back({number, kStart + at, end - at});
    at = end + of.gap_ns;
  }
  if (of.steps) p.trace().steps(steps, step);
  return reduce({p.end(at - of.gap_ns)}).lost;
}

}  // namespace

// Of A a step is (4 x 1000 + 3 x 100) / 4 = 1075 ns.
TEST_CASE("lost: what made B slower is the difference of both ledgers") {
  const auto says = [](const Stepped& a, const Stepped& b, const Normalization& n = {}) {
    return slower::words(stepped(a), stepped(b), n);
  };
  // One cause, and that of its opposite: 86 of 1075, and of 1161.
  CHECK(says({}, {.communication_ns = 86}) ==
        "B's step takes 8.0 % more time: communication alone +8.0 %");
  CHECK(says({.communication_ns = 86}, {}) ==
        "B's step takes 7.4 % less time: communication alone -7.4 %");
  // 200 ns more for each product, 37.5 less between steps: one is named for each group of lines.
  CHECK(says({}, {.product_ns = 1200, .gap_ns = 50}) ==
        "B's step takes 15.1 % more time: products below peak +18.6 % (below the roof +18.6 %), "
        "no kernel runs -3.5 % (between steps -3.5 %)");
  // What two causes take and give is said, though the sum of both is nothing.
  const std::string balanced = says({}, {.product_ns = 1075, .gap_ns = 0});
  CHECK(balanced.starts_with("B's step takes the same time: "));
  CHECK(balanced.find("products below peak +7.0 %") != balanced.npos);
  CHECK(balanced.find("no kernel runs -7.0 %") != balanced.npos);
  CHECK(says({}, {}) == "B's step takes the same time");
  // What is before the first kernel is in no step.
  CHECK(says({}, {.start = 1'000'000}) == "B's step takes the same time");
  // Twice the batch, in twice the time.
  CHECK(says({}, {.product_ns = 2000, .gap_ns = 200}, {"batch", 1, 2})
            .starts_with("B's step takes the same time: products below peak +27.9 %"));
  // Without steps it is the whole time, that before the first kernel too: 4300 of 4300.
  CHECK(says({.steps = false}, {.start = 4300, .steps = false}) ==
        "B takes 100.0 % more device time: no kernel runs +100.0 % (start and end +100.0 %)");
  // Where a side has no FLOP counts, kernels are compared by their time alone: 86 ns of 1075.
  CHECK(says({}, {.product_ns = 1086, .counted = false}) ==
        "B's step takes 8.0 % more time: kernels +8.0 %");
  CHECK(slower::words(stepped({}), LostReport(), {}).empty());
}

TEST_CASE("lost: what made B slower has the marks of both ledgers") {
  const auto ledger = [](uint64_t communication, uint64_t uncounted, uint64_t doubtful) {
    LostReport lost;
    lost.missing = "";
    lost.device_steps = 10;
    lost.ns[place_of(kCommunication)] = communication;
    lost.ns[place_of(kUncounted)] = uncounted;
    lost.ns[place_of(kMatrixBelowRoof)] = 10'000 - 1000;
    lost.capacity_ns = communication + uncounted + 9000;
    lost.marks.may_be({kCommunication}, {kUncounted}, doubtful);
    return lost;
  };
  // 500 of B's 2000 may be of the other line, of which it has at least 1000 then.
  CHECK(slower::words(ledger(1000, 0, 0), ledger(2000, 1000, 500), {}) ==
        "B's step takes 20.0 % more time: communication alone <= +10.0 %, no FLOP count >= "
        "+10.0 %");
  // The other way round the difference is from there.
  CHECK(slower::words(ledger(2000, 1000, 500), ledger(1000, 0, 0), {}) ==
        "B's step takes 16.7 % less time: communication alone >= -8.3 %, no FLOP count <= -8.3 %");
  // Of both sides: what one line may have of the other is no matter to both together.
  CHECK(slower::words(ledger(1000, 0, 200), ledger(2000, 1000, 500), {}) ==
        "B's step takes 20.0 % more time: communication alone and no FLOP count +20.0 %");
  // Communication may be work of all kinds, too: 1500 to 2000 less 800 to 1000.
  LostReport a = ledger(1000, 0, 200), b = ledger(2000, 1000, 500);
  for (LostReport* lost : {&a, &b}) lost->marks.may_be_too({kMatrixBelowRoof}, {kUncounted});
  b.marks.may_be({kUncounted}, {kMatrixBelowRoof}, 100);
  CHECK(slower::words(a, b, {}).find("communication alone +5.0 to +12.0 %") != std::string::npos);
}

namespace {

struct Rounds {
  int32_t rank;
  uint64_t clock = 0;  // how late its recording begins
  uint64_t work = 0;   // how long until it comes to the collective, which ends 500,000 ns after
  uint64_t every = 1'000'000;  // the beginning of the round
  int rounds = 4;
  uint32_t step = 1;
};

// Each round is a step: backward work, and a collective beside an addition of 50,000 ns.
std::string trained(const Rounds& r) {
  Planted p(r.rank);
  const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 1000});
  const uint32_t add = p.kernel("add", {.fp32_ns = 100});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  const uint32_t backward = p.path("backward"), layer = p.path("layer:2", backward);
  for (int i = 0; i < r.rounds; ++i) {
    const uint64_t begin = r.clock + static_cast<uint64_t>(i) * r.every;
    const uint32_t step = r.step + static_cast<uint32_t>(i);
    p.run({gemm, begin, begin + r.work, layer, 1, step});
    p.run({reduction, begin + r.work, begin + 500'000, backward, 2, step});
    p.run({add, begin + 400'000, begin + 450'000, backward, 1, step});
  }
  return p.end(r.clock + 10'000'000);
}

const CommunicationReport::Device& of_rank(const Report& report, uint32_t rank) {
  return *std::ranges::find_if(report.communication.devices, [&](const auto& device) {
    return report.traces[device.trace].rank() == rank;
  });
}

}  // namespace

TEST_CASE("lost: the same on any number of threads, and as planted, where segments are many") {
  std::mt19937 random(39);
  Planted p;
  // So that few launches are kept until they are in order.
  for (uint32_t device = 2; device <= 64; ++device) p.add_device(device);
  const uint32_t add = p.kernel("add", {.fp32_ns = 10});
  const uint32_t scale = p.kernel("scale", {.fp32_ns = 20});
  const uint32_t reduction = p.kernel("ncclDevKernel_AllReduce", {.counted = false});
  // By nanosecond: 1 where a kernel runs, and 2 where one communicates.
  constexpr uint64_t kWall = 2'000'000;
  std::vector<uint8_t> runs(kWall);
  const auto run = [&](const Planted::At& at) {
    p.run(at);
    for (uint64_t ns = at.begin; ns < at.end; ++ns) runs[ns] |= at.kernel == reduction ? 2 : 1;
  };
  constexpr size_t kSegments = 4, kLaunches = 6000;
  uint64_t now = 1000, work_ns = 0, reduced_until = 0;
  uint32_t step = 1;
  for (size_t launch = 0; launch < kSegments * kLaunches; ++launch) {
    if (launch % (kLaunches / 3) == 0)  // names that nothing uses: segments end among the launches
      p.trace().string(5000, std::string(3U << 20, 'x'));
    if (random() % 500 == 0) ++step;
    const bool first = random() % 2 == 0;
    const uint64_t begin = now + (random() % 3 == 0 ? random() % 40 : 0);
    const uint64_t length = 25 + random() % 50;
    run({first ? add : scale, begin, begin + length, 0, 1, step});
    work_ns += first ? 10 : 20;
    now = begin + length;
    if (random() % 16 != 0 || begin < reduced_until) continue;
    // It begins while the kernel runs, and may go on beside several others, or beside none.
    const uint64_t from = begin + 1 + random() % (length - 1);
    reduced_until = from + random() % 400;
    run({reduction, from, reduced_until, 0, 2, step});
  }
  REQUIRE(std::max(now, reduced_until) < kWall);
  const std::string trace = p.end(kWall);
  REQUIRE(trace.size() > (kSegments - 1) * Segments::kBytes);
  const auto count = [&](uint8_t of) {
    return static_cast<uint64_t>(std::ranges::count(runs, of));
  };
  std::string first;
  for (const unsigned jobs : {1U, 2U, 8U}) {
    CAPTURE(jobs);
    ReduceOptions options;
    options.jobs = jobs;
    const Report report = reduce({trace}, kPeaks, options);
    const LostReport& lost = report.lost;
    REQUIRE(lost.missing == "");
    CHECK(lost.capacity_ns == kWall);
    CHECK(lost.at(kCommunication) == count(2));
    CHECK(lost.hidden_ns == count(3));
    CHECK(lost.at(kOtherFlop) == work_ns);
    CHECK(lost.at(kOtherBelowRoof) == count(1) + count(3) - work_ns);
    const std::string json = json_text_of(report);
    if (first.empty()) first = json;
    CHECK((json == first));
  }
}

TEST_CASE("communication: ranks wait for the one that comes last, whatever their clocks say") {
  const Report report = reduce({trained({.rank = 0, .work = 100'000}),
                                trained({.rank = 1, .clock = 777'777, .work = 100'000}),
                                trained({.rank = 2, .clock = 3'000'001, .work = 300'000})});
  REQUIRE(report.communication.devices.size() == 3);
  for (const uint32_t rank : {0U, 1U}) {
    const auto& early = of_rank(report, rank);
    CHECK(early.alone_ns == 4 * (400'000 - 50'000));
    CHECK(early.hidden_ns == 4 * 50'000);
    REQUIRE(early.waiting);
    CHECK(early.waiting->collectives == 4);
    CHECK(early.waiting->ns == 4 * 200'000);
    CHECK((early.waiting->last == 0 && early.waiting->awaited_ns == 0));
    CHECK_FALSE(early.excess);
  }
  const auto& late = of_rank(report, 2);
  CHECK(late.alone_ns == 4 * (200'000 - 50'000));
  REQUIRE(late.waiting);
  CHECK(late.waiting->ns == 0);
  CHECK((late.waiting->last == 4 && late.waiting->awaited_ns == 4 * 200'000));
  REQUIRE(late.excess);
  CHECK(late.excess->phase == "backward");
  CHECK(late.excess->range == "backward/layer:2");
  CHECK((late.excess->ns == 4 * 200'000 && late.excess->idle_ns == 0));
  const auto words = kRankCommunication.section(report).below.back().parts.front().first;
  CHECK(words ==
        "  The others waited most for " + report.traces[late.trace].name +
            ": 800.0 us, in 4 of 4 collectives. It spent 800.0 us more than the median rank in "
            "backward, range backward/layer:2.");
  uint64_t exposed = 0;
  for (const auto& device : report.communication.devices) exposed += device.alone_ns;
  CHECK(exposed == report.lost.at(kCommunication));
}

TEST_CASE("communication: of a process with several devices the text says which one") {
  Planted p(0), other(1);
  p.add_device(2);
  for (Planted* one : {&p, &other}) {
    const uint32_t gemm = one->kernel("gemm", {.tensor_ns = 1000});
    const uint32_t reduction = one->kernel("ncclDevKernel_AllReduce", {.counted = false});
    for (uint64_t begin = 0; begin < 4'000'000; begin += 1'000'000)
      for (const uint32_t stream : {1U, 3U}) {
        if (one == &other && stream == 3) continue;
        const uint64_t work = stream == 3 ? 300'000 : 100'000;
        one->run({gemm, begin, begin + work, 0, stream, 1});
        one->run({reduction, begin + work, begin + 500'000, 0, stream, 1});
      }
  }
  const Report report = reduce({p.end(5'000'000), other.end(5'000'000)});
  REQUIRE(report.communication.devices.size() == 3);
  std::ostringstream text;
  write_text(text, std::vector{kRankCommunication.section(report)}, {});
  INFO(text.str());
  CHECK(text.str().find("device") != std::string::npos);
  CHECK(text.str().find("waited most for rank 0, host pid 500, device 1: ") != std::string::npos);
}

TEST_CASE("communication: ranks of other communicators are not compared") {
  const Report report =
      reduce({trained({.rank = 0, .work = 100'000}), trained({.rank = 1, .work = 200'000}),
              trained({.rank = 2, .work = 250'000, .every = 1'300'000}),
              trained({.rank = 3, .work = 150'000, .every = 1'300'000}),
              trained({.rank = 4, .work = 50'000, .rounds = 3}),
              trained({.rank = 5, .work = 50'000, .step = 2})});
  const auto waited = [&](uint32_t rank) { return of_rank(report, rank).waiting; };
  REQUIRE((waited(0) && waited(1) && waited(2) && waited(3)));
  CHECK((waited(0)->ns == 4 * 100'000 && waited(1)->ns == 0));
  CHECK((waited(2)->ns == 0 && waited(3)->ns == 4 * 100'000));
  CHECK((waited(1)->awaited_ns == 4 * 100'000 && waited(2)->awaited_ns == 4 * 100'000));
  // Of other launches, or in other steps.
  CHECK_FALSE(waited(4));
  CHECK_FALSE(waited(5));
  const auto json = json_of(report);
  for (const auto& row : json["communication"]) {
    if (row["rank"] == 0) CHECK(row["waiting_ns"] == 400'000);
    if (row["rank"] < 4) continue;
    CHECK(row["waiting_ns"].is_null());
    CHECK(row["waiting_ns_why"] == "no collective whose times several ranks have");
  }
}

// Ulysses' exchange of heads for sequences: a copy puts them in order, in the same range.
TEST_CASE("communication: local work in a range of a collective is none") {
  const auto rank = [](int32_t number, bool never_measured) {
    Planted p(number);
    const uint32_t gemm = p.kernel("gemm", {.tensor_ns = 1000});
    const uint32_t copy = p.kernel("copy_kernel", {.counted = false});
    const uint32_t exchange = p.kernel("exchange_heads", {.counted = false}, never_measured);
    const uint32_t range = p.path("AllToAll4D");
    for (uint64_t step = 0; step < 4; ++step) {
      const uint64_t begin = step * 100'000;
      const auto work = static_cast<uint64_t>(10'000 + 5000 * number);
      const auto at = static_cast<uint32_t>(step + 1);
      p.run({gemm, begin, begin + work, 0, 1, at});
      p.run({copy, begin + work, begin + 30'000, range, 1, at});
      p.run({exchange, begin + 30'000, begin + 50'000, range, 1, at});
    }
    return p.end(400'000);
  };
  const Report none = reduce({rank(0, false), rank(1, false)});
  CHECK(lines(none.lost.ns)[kCommunication] == 0);
  CHECK(none.communication.devices.empty());
  const Report report = reduce({rank(0, true), rank(1, true)});
  CHECK(lines(report.lost.ns)[kCommunication] == 2 * 4 * 20'000);
  REQUIRE(report.communication.devices.size() == 2);
  for (const auto& device : report.communication.devices) {
    CHECK(device.alone_ns == 4 * 20'000);
    REQUIRE(device.waiting);
    CHECK((device.waiting->collectives == 4 && device.waiting->ns == 0));
  }
  for (const Report* one : {&none, &report}) {
    const auto phase = std::ranges::find(one->phases, "communication", &PhaseReport::name);
    REQUIRE(phase != one->phases.end());
    CHECK(phase->work.launches == 2 * 4 * 2);
  }
}
