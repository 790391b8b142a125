// Round trips: everything written is read back by generated protobuf code and compared field by
// field.
#include <collector/trace/sink/sink.h>
#include <collector/trace/tally.h>
#include <collector/trace/trace_writer.h>
#include <collector/trace/utf8.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "catch.h"
#include "full_file.h"
#include "memory_sink.h"
#include "trace_reader.h"

using namespace flopinj;
namespace pb = flopinj::trace;

namespace {

struct Written {
  Written() : Written(std::make_unique<test::MemorySink>()) {}
  explicit Written(std::unique_ptr<test::MemorySink> s) : sink(*s), writer(std::move(s)) {}
  test::ReadTrace read() {
    REQUIRE(writer.flush());
    auto trace = test::read_trace(sink.bytes);
    CHECK(trace.damaged == 0);
    CHECK_FALSE(trace.torn);
    CHECK(trace.in_order);
    return trace;
  }
  pb::TracePacket only() {
    const auto trace = read();
    REQUIRE(trace.packets.size() == 1);
    return trace.packets[0];
  }
  test::MemorySink& sink;
  TraceWriter writer;
};

}  // namespace

TEST_CASE("header") {
  Written w;
  ProcessInfo p;
  p.pid = 4711;
  p.hostname = "node7";
  p.command_line = {"python", "train.py", "--name=\xff\xfe"};
  p.rank = -1;
  p.rank_source = "SLURM_PROCID";
  p.world_size = 4'096;
  p.job_id = "4711.pbs";
  p.job_id_source = "PBS_JOBID";
  p.simulated = p.simulated_clock = p.ptx_counts = true;
  p.cupti_version = 26;
  p.driver_version = 13000;
  p.counters = true;
  p.clock_trace_ns = 1;
  p.clock_realtime_ns = uint64_t{1} << 63;
  p.clock_monotonic_ns = 3;
  p.session_id = 0xFEDCBA9876543210;
  p.requeues = 2;
  p.restarts = 3;
  p.run_id = 0x8000000000000001;
  p.labels = {{"team", "vision", "FLOPINJ_LABEL"}, {"user", "ada", "SLURM_JOB_USER"}};
  p.mode = "multiplex";
  p.measures = true;
  p.budget_percent = 0.5;
  w.writer.header(p, Level::kTally);
  const auto packet = w.only();
  const auto& h = packet.header();
  CHECK(h.format_major() == 1);
  CHECK(h.format_minor() == 16);
  CHECK(h.calls());
  CHECK(h.producer().rfind("libflopinj ", 0) == 0);
  CHECK((h.simulated_clock() && h.ptx_counts()));
  CHECK(h.producer().size() > 11);
  CHECK(h.pid() == 4711);
  CHECK(h.hostname() == "node7");
  REQUIRE(h.command_line_size() == 3);
  CHECK(h.command_line(0) == "python");
  CHECK(h.command_line(2) == "--name=??");
  CHECK(h.rank() == -1);
  CHECK(h.rank_source() == "SLURM_PROCID");
  CHECK(h.world_size() == 4'096);
  CHECK(h.job_id() == "4711.pbs");
  CHECK(h.job_id_source() == "PBS_JOBID");
  CHECK(h.level() == pb::LEVEL_TALLY);
  CHECK(h.simulated());
  CHECK(h.cupti_version() == 26);
  CHECK(h.driver_version() == 13000);
  CHECK(h.counters());
  CHECK(h.clock_trace_ns() == 1);
  CHECK(h.clock_realtime_ns() == uint64_t{1} << 63);
  CHECK(h.clock_monotonic_ns() == 3);
  CHECK(h.session_id() == 0xFEDCBA9876543210);
  CHECK((h.requeues() == 2 && h.restarts() == 3));
  CHECK(h.run_id() == 0x8000000000000001);
  REQUIRE(h.label_size() == 2);
  CHECK((h.label(0).name() == "team" && h.label(0).value() == "vision"));
  CHECK((h.label(1).name() == "user" && h.label(1).source() == "SLURM_JOB_USER"));
  CHECK(h.mode() == "multiplex");
  CHECK(h.measures());
  CHECK(h.budget_percent() == 0.5);
}

TEST_CASE("a command line of any length fits") {
  Written w;
  ProcessInfo p;
  p.command_line.assign(100, std::string(100'000, 'x'));
  w.writer.header(p, Level::kLaunches);
  CHECK(w.only().ByteSizeLong() < 2 * kMaxTextBytes);
}

TEST_CASE("device and metric group") {
  Written w;
  DeviceInfo d;
  d.name = "NVIDIA H200";
  d.chip = "GH100";
  d.compute_major = 9;
  d.compute_minor = 1;
  d.multiprocessors = 132;
  d.memory_bytes = 150'000'000'000;
  d.clock_khz = 1'980'000;
  d.memory_clock_khz = 3'201'000;
  d.memory_bus_bits = 6144;
  std::iota(d.uuid.begin(), d.uuid.end(), uint8_t{0});
  w.writer.device(DeviceId{3}, d);
  w.writer.metric_group(GroupId{2}, DeviceId{3}, {"sass", {"a.sum", "b.sum"}, true, true});
  w.writer.metric_group(GroupId{3}, DeviceId{3},
                        {"fp16", {"c.sum"}, false, false, {{"d.sum", "e.sum"}, {"f.sum", ""}}});
  MetricGroupPlan lacking{"int8", {"g.sum"}};
  lacking.unavailable = "no such metric: g.sum";
  w.writer.metric_group(GroupId{4}, DeviceId{3}, lacking);
  const auto trace = w.read();
  REQUIRE(trace.packets.size() == 4);
  const auto& r = trace.packets[0].device();
  CHECK(r.id() == 3);
  CHECK(r.name() == "NVIDIA H200");
  CHECK(r.chip() == "GH100");
  CHECK(r.compute_major() == 9);
  CHECK(r.compute_minor() == 1);
  CHECK(r.multiprocessors() == 132);
  CHECK(r.memory_bytes() == 150'000'000'000);
  CHECK(r.clock_khz() == 1'980'000);
  CHECK(r.memory_clock_khz() == 3'201'000);
  CHECK(r.memory_bus_bits() == 6144);
  REQUIRE(r.uuid().size() == 16);
  for (size_t i = 0; i < 16; ++i) CHECK(static_cast<uint8_t>(r.uuid()[i]) == i);
  const auto& g = trace.packets[1].metric_group();
  CHECK(g.id() == 2);
  CHECK(g.device() == 3);
  CHECK(g.name() == "sass");
  REQUIRE(g.metric_size() == 2);
  CHECK(g.metric(1) == "b.sum");
  CHECK(g.instrumented());
  CHECK(g.required());
  CHECK(g.needed_if_size() == 0);
  const auto& c = trace.packets[2].metric_group();
  CHECK_FALSE(c.required());
  REQUIRE(c.needed_if_size() == 2);
  CHECK(c.needed_if(0).metric() == "d.sum");
  CHECK(c.needed_if(0).included() == "e.sum");
  CHECK(c.needed_if(1).metric() == "f.sum");
  CHECK(c.needed_if(1).included().empty());
  CHECK(c.unavailable().empty());
  CHECK(trace.packets[3].metric_group().unavailable() == "no such metric: g.sum");
}

TEST_CASE("definitions") {
  Written w;
  KernelFunction function;
  function.id = FunctionId{5};
  function.info.parameters = {{0, 8}, {8, 4}, {16, 24}};
  function.info.parameters_known = true;
  function.info.registers_per_thread = 40;
  function.info.static_shared_bytes = 1024;
  function.info.instructions.known = true;
  function.info.instructions[SassOperation::kFfma] = {0, 0, 112};
  function.info.instructions[SassOperation::kHadd] = {1, 0, 0};
  function.info.instructions[SassOperation::kHfma] = {3, 2, 7};
  Signature signature;
  signature.id = SignatureId{6};
  signature.function = &function;
  signature.shape = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, 10};
  signature.fingerprint = 0x1122334455667788;
  signature.stable_hash = 0x99AABBCCDDEEFF00;
  signature.parameter_class = ParameterClass::kMerged;
  Definitions d;
  d.strings.push_back({StringId{1}, std::string("kernel\0\xff", 8)});
  d.functions = {&function};
  d.function_names = {StringId{1}};
  d.signatures = {&signature};
  d.paths.push_back({PathId{2}, PathId{1}, StringId{1}, StringId{3}, RangeKind::kOverflow});
  d.streams.push_back({StreamId{4}, DeviceId{1}, 11, 12});
  d.streams.push_back({StreamId{5}, DeviceId{1}, 11, 13, true});
  d.threads.push_back({ThreadId{8}, 1234, StringId{1}});
  w.writer.definitions(d);
  w.writer.definitions({});  // nothing
  const auto packet = w.only();
  const auto& in = packet.interned();
  REQUIRE(in.strings_size() == 1);
  CHECK(in.strings(0).id() == 1);
  CHECK(in.strings(0).value() == std::string("kernel\0\xff", 8));
  REQUIRE(in.functions_size() == 1);
  CHECK(in.functions(0).id() == 5);
  CHECK(in.functions(0).name() == 1);
  CHECK(in.functions(0).parameter_bytes() == 40);
  CHECK(in.functions(0).registers_per_thread() == 40);
  CHECK(in.functions(0).static_shared_bytes() == 1024);
  CHECK(in.functions(0).parameters_known());
  CHECK(in.functions(0).code_read());
  REQUIRE(in.functions(0).instructions_size() == 2);  // all of FFMA compute all they can
  CHECK(in.functions(0).instructions(0).operation() == pb::Interned::SASS_HADD);
  CHECK(in.functions(0).instructions(0).none() == 1);
  const auto& half = in.functions(0).instructions(1);
  CHECK(half.operation() == pb::Interned::SASS_HFMA);
  CHECK((half.none() == 3 && half.one() == 2 && half.all() == 7));
  REQUIRE(in.signatures_size() == 1);
  const auto& s = in.signatures(0);
  CHECK(s.id() == 6);
  CHECK(s.function() == 5);
  CHECK((s.grid_x() == 1 && s.grid_y() == 2 && s.grid_z() == 3));
  CHECK((s.block_x() == 4 && s.block_y() == 5 && s.block_z() == 6));
  CHECK((s.cluster_x() == 7 && s.cluster_y() == 8 && s.cluster_z() == 9));
  CHECK(s.dynamic_shared_bytes() == 10);
  CHECK(s.fingerprint() == 0x1122334455667788);
  CHECK(s.stable_hash() == 0x99AABBCCDDEEFF00);
  CHECK(s.parameter_class() == pb::Interned::PARAMETERS_MERGED);
  REQUIRE(in.range_paths_size() == 1);
  CHECK(in.range_paths(0).id() == 2);
  CHECK(in.range_paths(0).parent() == 1);
  CHECK(in.range_paths(0).name() == 1);
  CHECK(in.range_paths(0).domain() == 3);
  CHECK(in.range_paths(0).kind() == pb::Interned::RANGE_OVERFLOW);
  REQUIRE(in.streams_size() == 2);
  CHECK(in.streams(0).id() == 4);
  CHECK(in.streams(0).device() == 1);
  CHECK(in.streams(0).context() == 11);
  CHECK(in.streams(0).stream() == 12);
  CHECK_FALSE(in.streams(0).green_context());
  CHECK(in.streams(1).green_context());
  REQUIRE(in.threads_size() == 1);
  CHECK(in.threads(0).id() == 8);
  CHECK(in.threads(0).os_tid() == 1234);
  CHECK(in.threads(0).name() == 1);
}

TEST_CASE("definitions, samples and tallies of any size are spread over packets within the limit") {
  Written w;
  Definitions d;
  for (uint32_t i = 1; i <= 200; ++i) d.strings.push_back({StringId{i}, std::string(60'000, 'n')});
  for (uint32_t i = 1; i <= 300'000; ++i)
    d.paths.push_back({PathId{i}, PathId{i - 1}, StringId{1}, StringId{}, RangeKind::kThread});
  w.writer.definitions(d);
  SampleBatch samples;
  samples.group = GroupId{1};
  samples.window = 3;
  for (uint32_t i = 0; i < 20'000; ++i) {
    samples.signatures.push_back(SignatureId{i});
    samples.paths.push_back(PathId{i + 1});
    samples.ordinals.push_back(3 * i);
    for (uint32_t m = 0; m < 40; ++m) samples.values.push_back(i * 40.0 + m);
  }
  w.writer.samples(samples);
  std::vector<TallyRow> rows(100'000);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].thread = ThreadId{1};
    rows[i].signature = SignatureId{i};
    rows[i].launches = i + 1;
  }
  w.writer.tallies(rows, 10, 20);
  const auto trace = w.read();
  uint32_t strings = 0;
  uint32_t paths = 0;
  uint32_t samples_read = 0;
  uint32_t rows_read = 0;
  for (size_t i = 0; i < trace.packets.size(); ++i) {
    const auto& p = trace.packets[i];
    REQUIRE(trace.packet_bytes[i] <= kMaxPacketBytes);
    for (const auto& s : p.interned().strings()) REQUIRE(s.id() == ++strings);
    for (const auto& r : p.interned().range_paths()) REQUIRE(r.id() == ++paths);
    const auto& c = p.counter_samples();
    REQUIRE(c.value_size() == c.signature_size() * 40);
    for (int k = 0; k < c.signature_size(); ++k) {
      REQUIRE(c.window() == 3);
      REQUIRE(c.ordinal(k) == 3 * c.signature(k));
      REQUIRE(c.group() == 1);
      REQUIRE(c.signature(k) == samples_read);
      REQUIRE(c.range_path(k) == samples_read + 1);
      REQUIRE(c.value(k * 40 + 39) == samples_read * 40.0 + 39);
      ++samples_read;
    }
    const auto& t = p.tally_batch();
    for (int k = 0; k < t.launches_size(); ++k) {
      REQUIRE(t.begin_ns() == 10);
      REQUIRE(t.end_ns() == 20);
      REQUIRE(t.signature(k) == rows_read);
      REQUIRE(t.launches(k) == ++rows_read);
    }
  }
  CHECK(strings == 200);
  CHECK(paths == 300'000);
  CHECK(samples_read == 20'000);
  CHECK(rows_read == 100'000);
}

TEST_CASE("launch batch: columns that say nothing are left out") {
  Written w;
  LaunchColumns columns(ThreadId{3}, StreamId{4});
  TimedLaunch l;
  l.signature = SignatureId{7};
  l.start_ns = 1000;
  l.end_ns = 1500;
  REQUIRE(columns.add(l));
  l.start_ns = 1600;
  l.end_ns = 2000;
  REQUIRE(columns.add(l));
  w.writer.launches(columns);
  const auto trace = w.read();
  REQUIRE(trace.packets.size() == 1);
  CHECK(trace.patterns.empty());  // nothing came before
  const auto& b = trace.packets[0].launch_batch();
  CHECK(b.pattern_run_size() == 0);
  REQUIRE(b.signature_size() == 2);
  CHECK(b.signature(0) == 7);
  CHECK(b.signature(1) == 7);
  REQUIRE(b.range_path_run_size() == 2);
  CHECK(b.range_path_run(0) == 0);
  CHECK(b.range_path_run(1) == 2);
  CHECK(b.thread() == 3);
  CHECK(b.stream() == 4);
  CHECK(b.first_start_ns() == 1000);
  REQUIRE(b.gap_ns_size() == 2);
  CHECK(b.gap_ns(0) == 0);
  CHECK(b.gap_ns(1) == 100);
  REQUIRE(b.duration_delta_ns_size() == 2);
  CHECK(b.duration_delta_ns(0) == 500);
  CHECK(b.duration_delta_ns(1) == -100);
  CHECK(b.sequence_run_size() == 0);
  CHECK(b.graph_run_size() == 0);
  CHECK(b.windowed_run_size() == 0);
  CHECK(b.untimed_delta_size() == 0);
}

TEST_CASE("launch batch: what came before is said by reference, after the rows it refers to") {
  Written w;
  LaunchColumns columns(ThreadId{3}, StreamId{4});
  constexpr uint32_t kLaunches = 12;
  TimedLaunch l;
  l.start_ns = 1000;
  l.end_ns = 1500;
  for (uint32_t i = 0; i < 2 * kLaunches; ++i) {
    l.signature = SignatureId{1 + i % kLaunches};
    REQUIRE(columns.add(l));
  }
  w.writer.launches(columns);
  const auto trace = w.read();
  REQUIRE(trace.packets.size() == 2);
  REQUIRE(trace.patterns.size() == kLaunches);
  const auto& b = trace.packets[1].launch_batch();
  CHECK(b.signature_size() == kLaunches);  // the first ones
  const std::vector<uint32_t> runs(b.pattern_run().begin(), b.pattern_run().end());
  CHECK(runs == std::vector<uint32_t>{0, kLaunches, 1, kLaunches});
}

TEST_CASE("tallies, with the columns that may be absent and without") {
  Written w;
  TallyRow row;
  row.thread = ThreadId{1};
  row.stream = StreamId{2};
  row.signature = SignatureId{3};
  row.path = PathId{4};
  row.launches = 5;
  w.writer.tallies({&row, 1}, 7, 8);
  row.windowed = true;
  row.graph_launches = 9;
  constexpr uint64_t kLong = uint64_t{1} << 40;
  for (const uint64_t ns : {kLong, uint64_t{100}, uint64_t{9}}) row.add_time(ns);
  const TallyRow untimed;
  const std::vector<TallyRow> rows{row, untimed};
  w.writer.tallies(rows, 7, 8);
  const auto trace = w.read();
  REQUIRE(trace.packets.size() == 2);
  const auto& plain = trace.packets[0].tally_batch();
  CHECK(plain.thread(0) == 1);
  CHECK(plain.stream(0) == 2);
  CHECK(plain.signature(0) == 3);
  CHECK(plain.range_path(0) == 4);
  CHECK(plain.launches(0) == 5);
  CHECK(plain.timed(0) == 0);
  CHECK(plain.gpu_time_ns(0) == 0);
  CHECK(plain.graph_launches_size() == 0);
  CHECK(plain.windowed_size() == 0);
  CHECK(plain.shortest_below_size() == 0);
  CHECK(plain.longest_above_size() == 0);
  const auto& full = trace.packets[1].tally_batch();
  CHECK(full.graph_launches(0) == 9);
  CHECK(full.windowed(0) == 1);
  CHECK(full.timed(0) == 3);
  CHECK(full.gpu_time_ns(0) == kLong + 109);
  constexpr uint64_t kMean = (kLong + 109) / 3;
  REQUIRE(full.shortest_below_size() == 2);
  REQUIRE(full.longest_above_size() == 2);
  CHECK(full.shortest_below(0) == kMean - 9 + 1);
  CHECK(full.longest_above(0) == kLong - kMean + 1);
  CHECK(full.shortest_below(1) == 0);
  CHECK(full.longest_above(1) == 0);
}

TEST_CASE("a tally knows the shortest and the longest launch of each row, late times too") {
  Tally tally;
  std::map<uint32_t, std::vector<uint64_t>> durations;  // by signature
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint32_t signature = 1 + static_cast<uint32_t>(i % 3);
    const uint64_t ns = 1 + (i * 7919 + 500) % 1009 * signature;
    TimedLaunch launch;
    launch.signature = SignatureId{signature};
    TallyRow late;
    late.signature = launch.signature;
    if (i % 5 == 0) {
      late.add_time(ns);
    } else {
      launch.start_ns = 1000 * i + 1;
      launch.end_ns = launch.start_ns + ns;
    }
    durations[signature].push_back(ns);
    tally.add(ThreadId{}, StreamId{}, launch);
    if (i % 5 == 0) tally.add(late);
  }
  REQUIRE(tally.rows().size() == durations.size());
  for (const TallyRow& row : tally.rows()) {
    const std::vector<uint64_t>& of = durations[row.signature.value];
    CHECK(row.timed == of.size());
    CHECK(row.shortest_ns == *std::min_element(of.begin(), of.end()));
    CHECK(row.longest_ns == *std::max_element(of.begin(), of.end()));
  }
}

TEST_CASE("ledger, self-overhead, diagnostic and end") {
  Written w;
  LedgerSnapshot l;
  l.devices = {{DeviceId{1}, 100, 90, 10}, {DeviceId{2}, 5, 5, 0}};
  l.dropped = {{"ring_full", 10}};
  l.duplicates = {{"nested_call", 3}};
  l.windows_opened = 1;
  l.windows_discarded = 2;
  l.activity_records = 3;
  l.activity_unmatched = 4;
  l.activity_lost = 5;
  l.names_generalised = 6;
  l.names_cut = 11;
  l.ranges_overflowed = 7;
  l.covered_launches = 8;
  l.covered_gpu_time_ns = 9;
  l.timed_gpu_time_ns = 10;
  l.measuring_stopped = "covered";
  w.writer.ledger(l);
  w.writer.self_overhead({11, 12, 13, 14, 15, 16, 17, 18, 19});
  w.writer.energy(std::vector<DeviceEnergy>{{DeviceId{1}, 21, 22, 23, 24, {}},
                                            {DeviceId{2}, 25, 26, 27, 28, "no counter"}});
  w.writer.diagnostic(
      {Severity::kError, "cupti.busy", "another profiler \xff", 99, 4, "it is gone", 123});
  w.writer.end(EndReason::kFailure, 1234);
  const auto trace = w.read();
  REQUIRE(trace.packets.size() == 5);
  const auto& r = trace.packets[0].ledger();
  REQUIRE(r.device_size() == 2);
  CHECK(r.device(0).device() == 1);
  CHECK(r.device(0).launches() == 100);
  CHECK(r.device(0).recorded() == 90);
  CHECK(r.device(0).dropped() == 10);
  CHECK(r.device(1).device() == 2);
  REQUIRE(r.dropped_size() == 1);
  CHECK(r.dropped(0).reason() == "ring_full");
  CHECK(r.dropped(0).count() == 10);
  REQUIRE(r.duplicate_size() == 1);
  CHECK(r.duplicate(0).reason() == "nested_call");
  CHECK(r.duplicate(0).count() == 3);
  CHECK((r.windows_opened() == 1 && r.windows_discarded() == 2));
  CHECK((r.activity_records() == 3 && r.activity_unmatched() == 4 && r.activity_lost() == 5));
  CHECK((r.names_generalised() == 6 && r.ranges_overflowed() == 7 && r.names_cut() == 11));
  CHECK((r.covered_launches() == 8 && r.covered_gpu_time_ns() == 9));
  CHECK((r.timed_gpu_time_ns() == 10 && r.measuring_stopped() == "covered"));
  const auto& o = trace.packets[1].self_overhead();
  CHECK((o.launch_callbacks() == 11 && o.launch_callback_ns() == 12));
  CHECK((o.window_ns() == 13 && o.window_count() == 14));
  CHECK((o.startup_ns() == 15 && o.helper_cpu_ns() == 16));
  CHECK((o.bytes_written() == 17 && o.wall_ns() == 18 && o.real_wall_ns() == 19));
  const auto& energy = trace.packets[2].energy();
  REQUIRE(energy.device_size() == 2);
  CHECK((energy.device(0).device() == 1 && energy.device(0).unavailable().empty()));
  CHECK((energy.device(0).begin_ns() == 21 && energy.device(0).end_ns() == 22));
  CHECK((energy.device(0).millijoules() == 23 && energy.device(0).updates() == 24));
  CHECK((energy.device(1).device() == 2 && energy.device(1).unavailable() == "no counter"));
  CHECK(energy.device(1).millijoules() == 0);
  const auto& d = trace.packets[3].diagnostic();
  CHECK(d.severity() == pb::Diagnostic::ERROR);
  CHECK(d.code() == "cupti.busy");
  CHECK(d.message() == "another profiler ?");
  CHECK(d.time_ns() == 99);
  CHECK((d.times() == 4 && d.last_message() == "it is gone" && d.last_time_ns() == 123));
  const auto& e = trace.packets[4].end();
  CHECK(e.time_ns() == 1234);
  CHECK(e.reason() == pb::End::FAILURE);
  CHECK(e.packets() == 4);
}

TEST_CASE("a flush is one write, and nothing is written before it") {
  Written w;
  w.writer.end(EndReason::kExit, 1);
  w.writer.end(EndReason::kExit, 2);
  CHECK(w.sink.writes == 0);
  REQUIRE(w.writer.flush());
  CHECK(w.sink.writes == 1);
  CHECK(w.writer.bytes() == w.sink.bytes.size());
}

TEST_CASE("after the sink failed nothing more is written") {
  auto sink = std::make_unique<test::MemorySink>();
  sink->fail_after_writes = 1;
  Written w(std::move(sink));
  w.writer.end(EndReason::kExit, 1);
  REQUIRE(w.writer.flush());
  w.writer.end(EndReason::kExit, 2);
  REQUIRE_FALSE(w.writer.flush());
  w.writer.end(EndReason::kExit, 3);
  REQUIRE_FALSE(w.writer.flush());
  CHECK_FALSE(w.writer.ok());
  CHECK(w.sink.writes == 2);
}

TEST_CASE("text is made valid UTF-8 and cut between characters") {
  CHECK(to_utf8("gr\xc3\xbc\xc3\x9f", 100) == "gr\xc3\xbc\xc3\x9f");
  CHECK(to_utf8("a\xff"
                "b\xc3",
                100) == "a?b?");
  CHECK(to_utf8("\xed\xa0\x80", 100) == "???");  // surrogate
  CHECK(to_utf8("\xc0\xaf", 100) == "??");       // overlong
  CHECK(to_utf8("\xf0\x9f\x98\x80!", 4) == "\xf0\x9f\x98\x80");
  CHECK(to_utf8("a\xf0\x9f\x98\x80", 4) == "a");
}

TEST_CASE("a file that can take no more ends with the reason, however little was written last") {
  // A child writes the header, then one group of packets after the other, each of one notice of so
  // many characters, until a file of `room` bytes is full.
  const auto written = [](rlim_t room, size_t characters) {
    return test::full_file(room, [&](const std::string& name) {
      TraceWriter writer(open_sink(name, {}).sink);
      writer.header({}, Level::kTally);
      Diagnostic notice;
      notice.message = std::string(characters, 'n');
      size_t groups = 0;
      for (; writer.flush() && groups < room; ++groups) writer.diagnostic(notice);
      Diagnostic why;
      why.severity = Severity::kError;
      why.code = "trace.write";
      why.message = "writing the trace failed: " + writer.sink().error();
      writer.last_words(why, 5);
      return groups < room;
    });
  };
  for (const size_t characters : {1, 30, 400})
    for (rlim_t room = 1'500; room < 2'000; room += 23) {
      INFO(characters << " characters, room for " << room);
      const std::string bytes = written(room, characters);
      CHECK(bytes.size() <= room);
      const auto trace = test::read_trace(bytes);
      CHECK((trace.damaged == 0 && !trace.torn && trace.in_order));
      REQUIRE(trace.packets.size() >= 3);
      CHECK(trace.packets.front().has_header());
      const auto& end = trace.packets.back().end();
      CHECK(end.reason() == pb::End::FAILURE);
      CHECK(end.time_ns() == 5);
      CHECK(end.packets() == trace.packets.size() - 1);
      CHECK(trace.packets[trace.packets.size() - 2].diagnostic().code() == "trace.write");
    }
}
