#include "writers/trace_event_writer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/operators/layers.h"
#include "support/text.h"
#include "tables/flop_series.h"
#include "writers/projected_ranges.h"
#include "writers/trace_event_text.h"

namespace flopinj::reduce {
namespace {

// Tracks of one stream are together: ranges, phases, kernels, once for each lane.
constexpr uint64_t kTracksOfLane = 3;
constexpr uint64_t kStepTracks = uint64_t{1} << 12;  // sort before those of streams

class Writer {
 public:
  Writer(std::ostream& out, Launches& launches, const TraceEventOptions& options)
      : out_(out), launches_(launches), options_(options), tables_(launches.tables()) {
    for (const TraceState& trace : tables_.traces)
      if (const uint64_t begin = trace.header.clock_realtime_ns(); begin != 0)
        first_begin_ = std::min(first_begin_, begin);
  }

  uint64_t write() {
    head();
    launches_.for_each([&](const TimedLaunch& launch) {
      if (!in_time_range(launch)) return true;
      if (!pending_.empty() && pending_.top().trace != launch.trace) write_pending(0);
      pending_.push(launch);
      if (pending_.size() > kReordered) write_pending(kReordered);
      return out_.good();
    });
    write_pending(0);
    for (auto& [stream, lanes] : lanes_)
      for (Lane& lane : lanes) close(stream.first, lane);
    for (const auto& [device, steps] : steps_) step_tracks(device, steps);
    for (auto& [device, series] : flop_) rate(device, series);
    for (auto& [device, series] : least_) utilization(device, series);
    out_ << "\n]}\n";
    return written_;
  }

 private:
  struct Later {
    bool operator()(const TimedLaunch& a, const TimedLaunch& b) const {
      return a.start_ns > b.start_ns;
    }
  };
  struct Lane {
    uint64_t end_ns = 0;                           // of its last event
    uint32_t kernels = 0, ranges = 0, phases = 0;  // "tid"; the latter two 0 until they are needed
    uint64_t order = 0;                            // among the device's tracks
    std::string name;
    uint32_t trace = 0;
    ProjectedRanges open_ranges, open_phases;
  };
  struct Extent {
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
  };
  using Steps = std::map<uint32_t, Extent>;  // as their kernels lie on the GPU

  // The next event of "traceEvents".
  std::ostream& event() { return out_ << (any_++ > 0 ? ",\n" : "\n"); }

  // From a trace's clock to the file's time. Traces without clocks in their header stand on their
  // own.
  i128 time_of(uint32_t trace, uint64_t ns) const {
    const trace::Header& header = tables_.traces[trace].header;
    i128 time = static_cast<i128>(ns) - header.clock_trace_ns();
    if (header.clock_realtime_ns() != 0)
      time += static_cast<i128>(header.clock_realtime_ns()) - first_begin_;
    return time;
  }

  void name(uint32_t device, uint32_t track, const char* what, const std::string& args) {
    event() << R"({"ph":"M","pid":)" << device + 1 << R"(,"tid":)" << track << R"(,"name":")"
            << what << R"(","args":{)" << args << "}}";
  }
  void name_track(uint32_t device, uint32_t track, const std::string& text, uint64_t order) {
    name(device, track, "thread_name", R"("name":)" + json_text(text));
    name(device, track, "thread_sort_index", R"("sort_index":)" + std::to_string(order));
  }
  void begin(uint32_t device, uint32_t trace, uint32_t track, uint64_t ns, const std::string& text,
             const std::string& more = "") {
    event() << R"({"ph":"B","pid":)" << device + 1 << R"(,"tid":)" << track << R"(,"ts":)"
            << microseconds(time_of(trace, ns)) << R"(,"name":)" << text << more << '}';
  }
  void end(uint32_t device, uint32_t trace, uint32_t track, uint64_t ns) {
    event() << R"({"ph":"E","pid":)" << device + 1 << R"(,"tid":)" << track << R"(,"ts":)"
            << microseconds(time_of(trace, ns)) << '}';
  }

  void head();
  bool in_time_range(const TimedLaunch& launch) const;
  void name_device(uint32_t index);
  Lane* lane_of(const TimedLaunch& launch);
  void write_pending(size_t left);
  void write(const TimedLaunch& launch, uint32_t track);
  void arguments(const TimedLaunch& launch, const Flop* flop);
  void project(const TimedLaunch& launch, Lane& lane);
  const std::vector<ProjectedRanges::Level>& around(const TimedLaunch& launch);
  void close(uint32_t device, Lane& lane);
  void step_tracks(uint32_t device, const Steps& steps);
  void counter(uint32_t device, const char* title, const FlopSeries& series, double scale);
  void rate(uint32_t device, FlopSeries& series);
  void utilization(uint32_t device, FlopSeries& series);

  std::ostream& out_;
  Launches& launches_;
  const TraceEventOptions options_;
  const TraceTables& tables_;
  uint64_t first_begin_ = UINT64_MAX;
  uint64_t written_ = 0;
  uint64_t any_ = 0;
  std::priority_queue<TimedLaunch, std::vector<TimedLaunch>, Later> pending_;  // of one trace
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Lane>> lanes_;  // by (device, stream)
  std::map<uint32_t, FlopSeries> flop_, least_;                       // by device; the latter in fs
  std::set<uint32_t> no_peak_, unmeasured_;                           // devices with such launches
  std::map<uint32_t, Steps> steps_;                                   // by device
  std::vector<ProjectedRanges::Level> around_;                        // of the last launch
  uint64_t around_of_ = UINT64_MAX;                                   // its path and step
  uint32_t around_trace_ = 0;
  std::unordered_map<uint32_t, uint32_t> tracks_;  // of a device, how many
  Texts kernels_, paths_, ranges_;
  std::map<std::string, size_t> phases_;  // numbers
};

std::string command_of(const trace::Header& header) {
  std::string text;
  for (const std::string& word : header.command_line()) text += (text.empty() ? "" : " ") + word;
  return text;
}

void Writer::head() {
  const bool simulated = std::any_of(tables_.traces.begin(), tables_.traces.end(),
                                     [](const auto& t) { return t.header.simulated(); });
  out_ << R"({"displayTimeUnit":"ns","otherData":{"producer":)" << json_text(options_.program)
       << R"(,"fma":)" << options_.fma << R"(,"simulated":)" << (simulated ? "true" : "false")
       << R"(,"clocks":"times of a process are the GPU's, as CUPTI gives them; processes are )"
       << R"(aligned by CLOCK_REALTIME when their recording began, so that those of two hosts )"
       << R"(differ by as much as the hosts' clocks","processes":[)";
  const char* separator = "";
  for (const TraceState& trace : tables_.traces) {
    const trace::Header& header = trace.header;
    out_ << separator << R"({"host":)" << json_text(header.hostname()) << R"(,"pid":)"
         << header.pid() << R"(,"rank":)";
    if (trace.has_header && header.rank() >= 0)
      out_ << header.rank();
    else
      out_ << "null";
    out_ << R"(,"command":)" << json_text(command_of(header)) << '}';
    separator = ",";
  }
  out_ << R"(]},"traceEvents":[)";
}

bool Writer::in_time_range(const TimedLaunch& launch) const {
  return time_of(launch.trace, launch.start_ns) < static_cast<i128>(options_.end_ns) &&
         time_of(launch.trace, launch.start_ns + launch.duration_ns) >=
             static_cast<i128>(options_.begin_ns);
}

void Writer::name_device(uint32_t index) {
  const Device& device = tables_.devices[index];
  const TraceState& trace = tables_.traces[device.trace];
  const trace::Header& header = trace.header;
  std::string text =
      header.rank() >= 0 && trace.has_header ? "rank " + std::to_string(header.rank()) + ", " : "";
  text += header.hostname() + " process " + std::to_string(header.pid()) + ", ";
  text += device.id == 0 ? "device not known"
                         : device.facts.name() + " (device " + std::to_string(device.id - 1) + ")";
  name(index, 0, "process_name", R"("name":)" + json_text(text));
  if (const std::string command = command_of(header); !command.empty())
    name(index, 0, "process_labels", R"("labels":)" + json_text(cut(command, 200)));
  name(index, 0, "process_sort_index", R"("sort_index":)" + std::to_string(index));
}

// The first lane of the launch's stream that is free when it starts; null: there are too many.
Writer::Lane* Writer::lane_of(const TimedLaunch& launch) {
  std::vector<Lane>& lanes = lanes_[{launch.device, launch.stream}];
  auto lane = std::find_if(lanes.begin(), lanes.end(),
                           [&](const Lane& l) { return l.end_ns <= launch.start_ns; });
  if (lane == lanes.end()) {
    if (lanes.size() >= kMostLanes) return nullptr;
    uint32_t& tracks = tracks_[launch.device];
    if (tracks == 0) name_device(launch.device);
    const uint32_t number = tables_.traces[launch.trace].stream_numbers.get(launch.stream);
    Lane fresh;
    fresh.name = number == kNoIndex ? "stream not known" : "stream " + std::to_string(number);
    if (!lanes.empty()) fresh.name += " (" + std::to_string(lanes.size() + 1) + ")";
    // By the stream's number, which is how CUPTI orders them.
    const uint64_t stream = number == kNoIndex ? 0 : uint64_t{number} + 1;
    fresh.order = kStepTracks + (stream * kMostLanes + lanes.size()) * kTracksOfLane;
    fresh.kernels = ++tracks;
    fresh.trace = launch.trace;
    name_track(launch.device, fresh.kernels, fresh.name, fresh.order + 2);
    lanes.push_back(std::move(fresh));
    lane = lanes.end() - 1;
  }
  lane->end_ns = launch.start_ns + launch.duration_ns;
  return &*lane;
}

// The ranges of a launch, those of its step and below marked with it. Where no range of its own is
// the step's (autograd's thread), all are.
const std::vector<ProjectedRanges::Level>& Writer::around(const TimedLaunch& launch) {
  const uint64_t of = uint64_t{launch.path} << 32 | launch.step;
  if (of == around_of_ && launch.trace == around_trace_) return around_;
  around_of_ = of;
  around_trace_ = launch.trace;
  around_.clear();
  for (uint32_t path = launch.path; path != PathTable::kRoot; path = tables_.paths[path].parent)
    around_.push_back({path, 0});
  std::reverse(around_.begin(), around_.end());
  const TraceState& trace = tables_.traces[launch.trace];
  const auto step = trace.steps.steps().find(launch.step);
  size_t from = 0;
  if (step != trace.steps.steps().end())
    for (size_t i = 0; i < around_.size(); ++i)
      if (around_[i].name == trace.paths.get(step->second.path)) from = i;
  for (size_t i = from; i < around_.size(); ++i) around_[i].step = launch.step;
  return around_;
}

void Writer::project(const TimedLaunch& launch, Lane& lane) {
  const uint32_t device = launch.device;
  const uint64_t end_ns = launch.start_ns + launch.duration_ns;
  const auto& ranges = around(launch);
  if (!ranges.empty() && lane.ranges == 0) {
    lane.ranges = ++tracks_[device];
    name_track(device, lane.ranges, lane.name + " ranges", lane.order);
  }
  lane.open_ranges.kernel(
      ranges, launch.start_ns, end_ns,
      [&](const ProjectedRanges::Level& level, uint64_t ns) {
        begin(device, launch.trace, lane.ranges, ns,
              ranges_.of(level.name,
                         [&](uint32_t path) { return json_text(range_label(tables_, path)); }),
              level.step != 0 ? R"(,"args":{"step":)" + std::to_string(level.step) + '}' : "");
      },
      [&](uint64_t ns) { end(device, launch.trace, lane.ranges, ns); });
  if (lane.phases == 0) {
    lane.phases = ++tracks_[device];
    name_track(device, lane.phases, lane.name + " phases", lane.order + 1);
  }
  const std::string& phase = launches_.phase(launch);
  const auto number =
      static_cast<uint32_t>(phases_.try_emplace(phase, phases_.size()).first->second);
  const ProjectedRanges::Level level{number, 0};
  lane.open_phases.kernel(
      {&level, 1}, launch.start_ns, end_ns,
      [&](const ProjectedRanges::Level&, uint64_t ns) {
        begin(device, launch.trace, lane.phases, ns, json_text(phase),
              R"(,"cname":")" + std::string(colour_of(phase)) + '"');
      },
      [&](uint64_t ns) { end(device, launch.trace, lane.phases, ns); });
  if (launch.step == 0) return;
  Extent& step = steps_[device][launch.step];
  step.begin_ns = std::min(step.begin_ns, launch.start_ns);
  step.end_ns = std::max(step.end_ns, end_ns);
}

void Writer::close(uint32_t device, Lane& lane) {
  lane.open_ranges.close(0, [&](uint64_t ns) { end(device, lane.trace, lane.ranges, ns); });
  lane.open_phases.close(0, [&](uint64_t ns) { end(device, lane.trace, lane.phases, ns); });
}

// Steps that overlap on the GPU have tracks of their own.
void Writer::step_tracks(uint32_t device, const Steps& steps) {
  const uint32_t trace = tables_.devices[device].trace;
  std::vector<std::pair<uint32_t, Extent>> order(steps.begin(), steps.end());
  std::ranges::stable_sort(order, {}, [](const auto& s) { return s.second.begin_ns; });
  std::vector<std::pair<uint32_t, uint64_t>> tracks;  // and until when each is taken
  for (const auto& [number, extent] : order) {
    auto at = std::ranges::find_if(
        tracks, [&, from = extent.begin_ns](const auto& track) { return track.second <= from; });
    if (at == tracks.end()) {
      if (tracks.size() >= kMostLanes) continue;
      tracks.emplace_back(++tracks_[device], 0);
      at = tracks.end() - 1;
      name_track(device, at->first,
                 tracks.size() == 1 ? "steps" : "steps (" + std::to_string(tracks.size()) + ")",
                 tracks.size());
    }
    std::string more = R"(,"args":{"step":)" + std::to_string(number);
    const auto& known = tables_.traces[trace].steps.steps();
    if (const auto found = known.find(number); found != known.end())
      more += R"(,"wall_ns":)" + std::to_string(found->second.duration_ns);
    begin(device, trace, at->first, extent.begin_ns, "\"step " + std::to_string(number) + '"',
          more + '}');
    end(device, trace, at->first, extent.end_ns);
    at->second = extent.end_ns;
  }
}

void Writer::write_pending(size_t left) {
  while (pending_.size() > left) {
    const TimedLaunch launch = pending_.top();
    pending_.pop();
    Lane* const lane = lane_of(launch);
    if (lane == nullptr) continue;
    project(launch, *lane);
    write(launch, lane->kernels);
  }
}

void Writer::write(const TimedLaunch& launch, uint32_t track) {
  const std::string& kernel = kernels_.of(launch.signature, [&](uint32_t signature) {
    return json_text(signature == SignatureTable::kUndefined
                         ? "(lost kernel)"
                         : demangle(tables_.names[tables_.signatures[signature].name]));
  });
  event() << R"({"ph":"X","pid":)" << launch.device + 1 << R"(,"tid":)" << track << R"(,"ts":)"
          << microseconds(time_of(launch.trace, launch.start_ns)) << R"(,"dur":)"
          << microseconds(launch.duration_ns) << R"(,"name":)" << kernel << R"(,"cat":)"
          << json_text(launches_.phase(launch)) << R"(,"cname":")"
          << colour_of(launches_.phase(launch)) << R"(","args":{)";
  const Flop* flop = launches_.next_flop(launch);
  if (flop == nullptr) unmeasured_.insert(launch.device);
  arguments(launch, flop);
  out_ << "}}";
  ++written_;
  if (flop == nullptr || flop->total == 0) return;
  const uint64_t end_ns = launch.start_ns + launch.duration_ns;
  flop_[launch.device].add(launch.start_ns, end_ns,
                           static_cast<uint64_t>(std::min<u128>(flop->total, UINT64_MAX)));
  if (const auto least = launches_.least_ns(launch, *flop))
    least_[launch.device].add(launch.start_ns, end_ns, static_cast<uint64_t>(*least * 1e6));
  else
    no_peak_.insert(launch.device);
}

void Writer::arguments(const TimedLaunch& launch, const Flop* flop) {
  out_ << R"("flop":)" << (flop != nullptr ? exact_number(flop->total) : "null");
  if (flop != nullptr) {
    out_ << R"(,"precision":{)";
    const char* separator = "";
    const auto& precisions = launches_.formulas().precisions();
    for (size_t i = 0; i < precisions.size(); ++i) {
      if (flop->by_precision[i] == 0) continue;
      out_ << separator << json_text(precisions[i]) << ':' << exact_number(flop->by_precision[i]);
      separator = ",";
    }
    out_ << '}';
    if (launches_.estimated(launch)) out_ << R"(,"estimate":true)";
  }
  if (launch.path != PathTable::kRoot)
    out_ << R"(,"range":)" << paths_.of(launch.path, [&](uint32_t path) {
      return json_text(path_string(tables_, path));
    });
  const Signature& s = tables_.signatures[launch.signature];
  for (const auto& [key, size] : {std::pair{"grid", &s.grid}, std::pair{"block", &s.block}})
    out_ << ",\"" << key << "\":[" << (*size)[0] << ',' << (*size)[1] << ',' << (*size)[2] << ']';
  if (launch.windowed) out_ << R"(,"windowed":true)";
  if (launch.graph) out_ << R"(,"graph":true)";
}

// A figure of a device, bin by bin; it ends at 0.
void Writer::counter(uint32_t device, const char* title, const FlopSeries& series, double scale) {
  const uint32_t trace = tables_.devices[device].trace;
  const auto at = [&](uint64_t ns, double value) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.17g", value);
    event() << R"({"ph":"C","pid":)" << device + 1 << R"(,"tid":0,"name":")" << title
            << R"(","ts":)" << microseconds(time_of(trace, ns)) << R"(,"args":{")" << title
            << R"(":)" << text.data() << "}}";
  };
  uint64_t ns = series.begin_ns();
  for (const u128 sum : series.bins()) {
    at(ns, static_cast<double>(sum) * scale / static_cast<double>(series.bin_ns()));
    ns += series.bin_ns();
  }
  at(ns, 0);
}

void Writer::rate(uint32_t device, FlopSeries& series) {
  series.finish();
  const bool all = !unmeasured_.contains(device);
  counter(device, all ? "FLOP/s" : "FLOP/s of measured launches", series, 1e9);
}

// The least time that the peaks allow / time, in per cent.
void Writer::utilization(uint32_t device, FlopSeries& series) {
  if (no_peak_.contains(device)) return;
  series.finish();
  const bool all = !unmeasured_.contains(device);
  counter(device, all ? "HFU %" : "HFU % of measured launches", series, 100.0 / 1e6);
}

}  // namespace

uint64_t write_trace_events(std::ostream& out, Launches& launches,
                            const TraceEventOptions& options) {
  return Writer(out, launches, options).write();
}

}  // namespace flopinj::reduce
