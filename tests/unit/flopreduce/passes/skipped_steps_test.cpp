// --skip-steps against traces that never had the launches of these steps.
#include <random>
#include <set>

#include "catch.h"
#include "operator_scene.h"

using namespace flopinj;
using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

constexpr uint64_t kStart = 1'000'000, kStepNs = 100'000, kSteps = 6;
constexpr uint32_t kPath = 900;

struct Planned {
  TraceBuilder::Launch launch;
  uint64_t gap_ns = 0;  // from the end of the one before on its stream
};

// Launches of one thread and stream, in batches.
struct Lane {
  uint32_t thread = 1, stream = 1;
  std::vector<Planned> launches;
};

struct Program {
  std::vector<Lane> lanes;
  std::vector<uint32_t> kernels, paths;
};

// When steps begin, before which all kernels of the steps before have ended.
uint64_t begin_of(uint64_t step) { return kStart + (step - 1) * kStepNs; }

class Writer {
 public:
  Writer() : trace_(started(7, "GH100", false, true)) {
    trace_.thread(kAutograd, "pt_autograd_0");
    trace_.stream(2, 1, 9);
    trace_.string(kPath + 1000, "step");
    trace_.path(kPath, 0, "step");
    const std::string linear = "sizes = [[6, 8], [16, 8], [16]]";
    uint32_t id = 1;
    for (const std::vector<std::string>& names :
         {std::vector<std::string>{"forward", "body", "aten::linear, " + linear},
          {"forward", "head", "aten::linear, sizes = [[6, 16], [4, 16], []]"},
          {kNode + "AddmmBackward0", "AddmmBackward0", "aten::mm, sizes = [[16, 6], [6, 8]]"},
          {"optimizer"},
          {"evaluation"}}) {
      uint32_t parent = kPath;
      for (const std::string& name : names) {
        trace_.path(id, parent, name);
        parent = id++;
      }
      paths.push_back(parent);
    }
    for (uint32_t kernel = 1; kernel <= 6; ++kernel) {
      trace_.kernel(kernel,
                    kernel == 5 ? "ncclDevKernel_AllReduce" : "kernel" + std::to_string(kernel),
                    50 + kernel);
      if (kernel < 5)
        trace_.samples(1, kernel, {sass(kernel, 0, 7.0 * kernel), sass(kernel, 0, 7.0 * kernel)});
    }
  }
  std::vector<uint32_t> paths;

  // Without the launches that `leave_out` holds for, in batches of `batch`.
  template <typename LeaveOut>
  std::string write(const std::vector<Lane>& lanes, size_t batch, LeaveOut&& leave_out) {
    uint64_t written = 0;
    for (const Lane& lane : lanes) {
      uint64_t now = kStart - kStepNs;
      std::vector<Planned> at_hand;
      std::vector<uint64_t> begins;
      const auto flush = [&] {
        if (at_hand.empty()) return;
        add_batch(lane, at_hand, begins);
        written += at_hand.size();
        at_hand.clear();
        begins.clear();
      };
      size_t number = 0;
      for (const Planned& planned : lane.launches) {
        const TraceBuilder::Launch& launch = planned.launch;
        if (number++ % batch == 0) flush();
        uint64_t begin =
            std::max(now + planned.gap_ns, launch.step > 0 ? begin_of(launch.step) : 0);
        if (launch.duration_ns >= 0) now = begin + static_cast<uint64_t>(launch.duration_ns);
        if (leave_out(launch, begin)) continue;
        at_hand.push_back(planned);
        begins.push_back(begin);
      }
      flush();
    }
    std::vector<TraceBuilder::Step> steps;
    for (uint32_t step = 1; step <= kSteps; ++step)
      steps.push_back({step, begin_of(step), kStepNs - 10});
    trace_.steps(steps, kPath);
    trace_.ledger(written, written, 0);
    trace_.overhead(10, 50'000'000);
    trace_.end();
    return trace_.bytes();
  }

 private:
  void add_batch(const Lane& lane, const std::vector<Planned>& launches,
                 const std::vector<uint64_t>& begins) {
    std::vector<TraceBuilder::Launch> list;
    for (const Planned& planned : launches) list.push_back(planned.launch);
    trace::TracePacket p;
    trace::LaunchBatch& b = *p.mutable_launch_batch();
    TraceBuilder::fill(b, list);
    // Times of its own.
    bool any = false;
    uint64_t now = 0;
    for (size_t i = 0; i < launches.size(); ++i) {
      if (list[i].duration_ns < 0) continue;
      if (!any) b.set_first_start_ns(now = begins[i]);
      any = true;
      b.set_gap_ns(static_cast<int>(i), static_cast<int64_t>(begins[i] - now));
      now = begins[i] + static_cast<uint64_t>(list[i].duration_ns);
    }
    b.set_thread(lane.thread);
    b.set_stream(lane.stream);
    trace_.add(p);
  }

  TraceBuilder trace_;
};

std::vector<Lane> drawn(std::mt19937& random, const std::vector<uint32_t>& paths, bool untimed) {
  const auto draw = [&](uint64_t from, uint64_t to) {
    return std::uniform_int_distribution<uint64_t>(from, to)(random);
  };
  std::vector<Lane> lanes = {{kMain, 1, {}}, {kAutograd, 1, {}}, {kMain, 2, {}}};
  for (Lane& lane : lanes) {
    uint64_t sequence = 1;
    for (uint32_t step = 0; step <= kSteps; ++step) {
      for (uint64_t i = draw(0, 20); i > 0; --i) {
        const uint32_t path = paths[draw(0, paths.size() - 1)];
        sequence += draw(0, 1);
        Planned one{{.signature = static_cast<uint32_t>(draw(1, 6)),
                     .duration_ns = static_cast<int64_t>(draw(0, 2000)),
                     .path = path,
                     .windowed = draw(0, 9) == 0,
                     .graph = draw(0, 9) == 0,
                     .sequence = draw(0, 3) > 0 ? sequence : 0,
                     .step = step,
                     .call = draw(0, 1) == 1},
                    draw(0, 2000)};
        if (untimed && step > 0 && draw(0, 9) == 0) one.launch.duration_ns = -1;
        lane.launches.push_back(one);
      }
    }
  }
  return lanes;
}

ReduceOptions options(uint64_t skip) {
  ReduceOptions options;
  options.utilization.skip_steps = skip;
  options.utilization.peaks.push_back(parse_peak("fp32=1T").value);
  options.utilization.peaks.push_back(parse_peak("memory=1T").value);
  options.lost = true;
  options.launch_times = true;
  options.facts = true;
  return options;
}

// Tables with wall times, with energy, of steps, and of where the time went.
const std::set<std::string> kByTime = {
    "advice",        "communication", "device_time",  "devices",    "figures",   "lost",
    "lost_capacity", "lost_parts",    "lost_phases",  "lost_steps", "processes", "ranks",
    "step_list",     "screen",        "step_summary", "steps",      "time",      "utilization"};

}  // namespace

TEST_CASE("skipped steps: each figure is that of a trace without their launches") {
  std::mt19937 random(20);
  for (int round = 0; round < 60; ++round) {
    const uint64_t skip = 1 + static_cast<uint64_t>(round) % (kSteps - 1);
    const size_t batch = 1 + static_cast<size_t>(random() % 40);
    Writer whole, without;
    const std::vector<Lane> lanes = drawn(random, whole.paths, round % 3 == 0);
    const std::string all = whole.write(lanes, batch, [](const auto&, uint64_t) { return false; });
    const std::string rest =
        without.write(lanes, batch, [&](const TraceBuilder::Launch& launch, uint64_t begin) {
          return launch.step > 0 ? launch.step <= skip : begin < begin_of(skip + 1);
        });
    INFO("round " << round << ", skipping " << skip);
    const Report report = reduce_bytes({all}, options(skip));
    const Report expected = reduce_bytes({rest}, options(skip));
    auto json = json_of(report), wanted = json_of(expected);
    // How coverage grew is what the recorder wrote down meanwhile.
    json.erase("coverage_growth");
    wanted.erase("coverage_growth");
    for (const auto& [table, rows] : wanted.items()) {
      INFO(table);
      CHECK(json[table] == rows);
    }
    CHECK(text_of(report) == text_of(expected));
    // Tables without times are those of a trace that is read without the option.
    const auto plain = json_of(reduce_bytes({rest}, options(0)));
    for (const auto& [table, rows] : wanted.items()) {
      if (kByTime.contains(table)) continue;
      INFO(table);
      CHECK(plain.at(table) == rows);
    }
  }
}

TEST_CASE("skipped steps: wall time is that from the first step that is left") {
  // Two steps of 1,000 ns, of which the first one's kernel runs on for 300 ns, then 500 ns.
  const auto report = [](uint64_t skip) {
    TraceBuilder t;
    trace::TracePacket header;
    header.mutable_header()->set_format_major(1);
    header.mutable_header()->set_session_id(3);
    header.mutable_header()->set_rank(-1);
    header.mutable_header()->set_level(trace::LEVEL_LAUNCHES);
    header.mutable_header()->set_counters(true);
    header.mutable_header()->set_clock_trace_ns(10'000);
    header.mutable_header()->set_clock_realtime_ns(1'000'000);
    t.add(header);
    t.device(1, "GH100");
    t.thread(1, "main");
    t.stream();
    t.group(1, "sass", sass_metrics());
    t.kernel(1, "kernel", 11);
    t.samples(1, 1, {sass(100, 0, 100), sass(100, 0, 100)});
    t.path(1, 0, "step");
    t.launches({{.signature = 1, .duration_ns = 800, .path = 1, .step = 1}}, 1, 1, 11'500);
    t.launches({{.signature = 1, .duration_ns = 200, .path = 1, .step = 2}}, 1, 1, 12'400);
    t.launches({{.signature = 1, .duration_ns = 100}}, 1, 1, 10'500);  // before all steps
    t.steps({{1, 11'000, 1000}, {2, 12'000, 1000}}, 1);
    t.ledger(3, 3, 0);
    trace::TracePacket end;
    end.mutable_end()->set_time_ns(13'500);
    t.add(end);
    return reduce_bytes({t.bytes()}, options(skip));
  };
  constexpr uint64_t kFlop = 300;  // of a launch, at 1,000 in a nanosecond
  const Report all = report(0), rest = report(1);
  CHECK(all.total.flop == 3 * kFlop);
  CHECK(*all.utilization.wall_ns.number() == 3500);
  CHECK(rest.total.flop == kFlop);
  CHECK(*rest.utilization.wall_ns.number() == 13'500 - 12'300);
  CHECK(*rest.utilization.hfu()->wall.number() == Approx(0.3 / 1200));
  CHECK(rest.ledger.disagreements.empty());
  CHECK(rest.ledger.total.launches == 1);
  // The step begins where the device comes to it.
  uint64_t last_ns = 0;
  for (const auto& step : rest.steps.steps) last_ns = step.wall_ns;
  CHECK(last_ns == 13'000 - 12'300);
  CHECK(rest.lost.capacity_ns == 13'000 - 12'300);
}

TEST_CASE("skipped steps: of sums of steps none can be left out, and nothing is") {
  Writer whole;
  std::mt19937 random(3);
  const std::string bytes = whole.write(drawn(random, whole.paths, false), 20,
                                        [](const auto&, uint64_t) { return false; });
  const std::string summary = merge_bytes({{"a.pb", bytes}}).bytes;
  const Report report = reduce_bytes({summary}, options(1));
  CHECK(report.steps.skipped == 0);  // so the command refuses it
  CHECK(report.steps.missing == "needs each step: traces of level launches, and no summaries");
  CHECK(report.total.launches == reduce_bytes({summary}, options(0)).total.launches);
}
