#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "passes/launches.h"
#include "support/text.h"
#include "tables/flop_series.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

__extension__ typedef __int128 i128;

// Launches that run at one time on one stream: as many as GPUs can run (CUDA C++ Programming Guide,
// "Maximum number of resident grids per device"). What goes beyond is left out.
constexpr size_t kMostLanes = 128;
// Launches that are put in the order of their start before they are written.
constexpr size_t kReordered = 1U << 18;
// Tracks of one stream are together: ranges, phases, kernels, once for each lane.
constexpr uint64_t kTracksOfLane = 3;
constexpr uint64_t kStepTracks = uint64_t{1} << 12;  // sort before those of streams

// A JSON string of ASCII only, made fit to be shown as in every other form.
std::string json_text(std::string_view text) {
  return nlohmann::json(printable(text))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Integers up to 2^53 as numbers, larger ones as strings: many readers of JSON have only doubles.
std::string exact_number(u128 value) {
  const std::string digits = to_decimal(value);
  return value <= u128{1} << 53 ? digits : '"' + digits + '"';
}

// "12.345": microseconds.
std::string microseconds(i128 ns) {
  const bool negative = ns < 0;
  const auto size = static_cast<u128>(negative ? -ns : ns);
  return (negative ? "-" : "") + to_decimal(size / 1000) +
         printed(".%03u", static_cast<unsigned>(size % 1000));
}

// Colours that chrome://tracing has names for. Perfetto gives each name of a phase its own.
std::string_view colour_of(std::string_view phase) {
  static constexpr std::pair<std::string_view, std::string_view> kColours[] = {
      {"forward", "rail_response"}, {"loss", "rail_idle"}, {"backward", "rail_animation"},
      {"recompute", "olive"},       {"optimizer", "good"}, {"communication", "bad"}};
  for (const auto& [name, colour] : kColours)
    if (name == phase) return colour;
  return "grey";
}

std::string command_of(const trace::Header& header) { return joined(header.command_line(), " "); }

// Texts of names by index, made once as long as there is room.
class Texts {
 public:
  template <typename Make>
  const std::string& of(uint32_t index, Make&& make) {
    constexpr size_t kRoom = 16U << 20;
    if (bytes_ > kRoom) {
      texts_.clear();
      bytes_ = 0;
    }
    const auto [entry, fresh] = texts_.try_emplace(index);
    if (fresh) {
      entry->second = make(index);
      bytes_ += entry->second.size() + sizeof *entry;
    }
    return entry->second;
  }

 private:
  std::unordered_map<uint32_t, std::string> texts_;
  size_t bytes_ = 0;
};

// A track of ranges as their kernels lie on the GPU: a range reaches from the start of its first
// kernel to the end of its last; kernels do not overlap. Ranges of unlike training steps are apart,
// though they have one path.
struct Track {
  struct Level {
    uint32_t name = 0, step = 0;
    bool operator==(const Level&) const = default;
  };
  struct Open {
    Level level;
    uint64_t end_ns = 0;
  };
  uint32_t number = 0;  // "tid"; 0 until it is needed
  std::vector<Open> open = {};

  // A kernel inside of `around`, the outermost first. Calls end(ns) for each range that it is not
  // in any more, the innermost first, then begin(level, ns) for each that it is the first in.
  template <typename Begin, typename End>
  void kernel(std::span<const Level> around, uint64_t start_ns, uint64_t end_ns, Begin&& begin,
              End&& end) {
    size_t common = 0;
    while (common < std::min(open.size(), around.size()) && open[common].level == around[common])
      ++common;
    close(common, end);
    for (size_t i = common; i < around.size(); ++i) {
      open.push_back({around[i], end_ns});
      begin(around[i], start_ns);
    }
    for (Open& range : open) range.end_ns = end_ns;
  }
  // Ends all but the outermost `left`.
  template <typename End>
  void close(size_t left, End&& end) {
    for (; open.size() > left; open.pop_back()) end(open.back().end_ns);
  }
};

class Writer {
 public:
  Writer(std::ostream& out, Launches& launches, const TraceEventOptions& options)
      : out_(out), launches_(launches), options_(options), tables_(launches.tables()) {
    for (const TraceState& trace : tables_.traces)
      if (const uint64_t begin = trace.header.clock_realtime_ns(); begin != 0)
        first_begin_ = std::min(first_begin_, begin);
  }

  WrittenEvents write() {
    head();
    launches_.for_each([&](const TimedLaunch& launch) {
      if (!takes(launch)) return true;
      if (!pending_.empty() && pending_.top().trace != launch.trace) write_pending(0);
      pending_.push(launch);
      if (pending_.size() > kReordered) write_pending(kReordered);
      return out_.good();
    });
    write_pending(0);
    for (auto& [stream, lanes] : lanes_) {
      const auto device = stream.first;  // clang 14 captures no binding
      for (Lane& lane : lanes)
        for (Track* track : {&lane.ranges, &lane.phases})
          track->close(0, [&](uint64_t ns) { end(device, track->number, ns); });
    }
    for (const auto& [device, steps] : steps_) step_tracks(device, steps);
    for (auto& [device, series] : flop_) counter(device, "FLOP/s", series, 1e9);
    // The least time that the peaks allow / time, in per cent.
    for (auto& [device, series] : least_)
      if (!no_peak_.contains(device)) counter(device, "HFU %", series, 100.0 / 1e6);
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
    uint64_t end_ns = 0;   // of its last event
    uint32_t kernels = 0;  // "tid"
    uint64_t order = 0;    // among the device's tracks
    std::string name;
    Track ranges, phases;
  };
  struct Extent {
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
  };
  using Steps = std::map<uint32_t, Extent>;  // as their kernels lie on the GPU

  void head() {
    const auto any = [&](auto get) {
      return std::ranges::any_of(tables_.traces, [&](const auto& t) { return (t.header.*get)(); })
                 ? "true"
                 : "false";
    };
    out_ << R"({"displayTimeUnit":"ns","otherData":{"producer":)" << json_text(options_.program)
         << R"(,"fma":)" << options_.fma << R"(,"simulated":)" << any(&trace::Header::simulated)
         << R"(,"simulated_clock":)" << any(&trace::Header::simulated_clock)
         << R"(,"clocks":"times of a process are the GPU's, as CUPTI gives them; processes are )"
         << R"(aligned by CLOCK_REALTIME when their recording began, so that those of two hosts )"
         << R"(differ by as much as the hosts' clocks","processes":[)";
    const char* separator = "";
    for (const TraceState& trace : tables_.traces) {
      const trace::Header& header = trace.header;
      out_ << std::exchange(separator, ",") << R"({"host":)" << json_text(header.hostname())
           << R"(,"pid":)" << header.pid() << R"(,"rank":)"
           << (trace.rank() ? std::to_string(*trace.rank()) : "null") << R"(,"command":)"
           << json_text(command_of(header)) << '}';
    }
    out_ << R"(]},"traceEvents":[)";
  }

  // The beginning of the next event of "traceEvents". A process of the format is a device.
  std::ostream& event(char kind, uint32_t device, uint32_t track) {
    return out_ << (any_++ > 0 ? ",\n" : "\n") << R"({"ph":")" << kind << R"(","pid":)"
                << device + 1 << R"(,"tid":)" << track;
  }
  // From the clock of a device's trace to the file's time. Traces without clocks in their header
  // have a time of their own.
  i128 time_of(uint32_t device, uint64_t ns) const {
    const trace::Header& header = tables_.traces[tables_.devices[device].trace].header;
    i128 time = static_cast<i128>(ns) - header.clock_trace_ns();
    if (header.clock_realtime_ns() != 0)
      time += static_cast<i128>(header.clock_realtime_ns()) - first_begin_;
    return time;
  }
  std::string at(uint32_t device, uint64_t ns) const {
    return R"(,"ts":)" + microseconds(time_of(device, ns));
  }
  void begin(uint32_t device, uint32_t track, uint64_t ns, const std::string& name_and_more) {
    event('B', device, track) << at(device, ns) << R"(,"name":)" << name_and_more << '}';
  }
  void end(uint32_t device, uint32_t track, uint64_t ns) {
    event('E', device, track) << at(device, ns) << '}';
  }
  void name(uint32_t device, uint32_t track, const char* what, const std::string& args) {
    event('M', device, track) << R"(,"name":")" << what << R"(","args":{)" << args << "}}";
  }
  uint32_t add_track(uint32_t device, const std::string& text, uint64_t order) {
    const uint32_t track = ++tracks_[device];
    name(device, track, "thread_name", R"("name":)" + json_text(text));
    name(device, track, "thread_sort_index", R"("sort_index":)" + std::to_string(order));
    return track;
  }

  // Whether it ran in the time that is asked for; counted either way.
  bool takes(const TimedLaunch& launch) {
    const i128 begin = time_of(launch.device, launch.start_ns);
    const i128 end = time_of(launch.device, launch.start_ns + launch.duration_ns);
    const auto from = static_cast<uint64_t>(std::max<i128>(begin, 0));
    written_.begin_ns = std::min(written_.begin_ns, from);
    written_.end_ns = std::max(written_.end_ns, static_cast<uint64_t>(std::max<i128>(end, 0)));
    const bool inside =
        begin < static_cast<i128>(options_.end_ns) && end >= static_cast<i128>(options_.begin_ns);
    written_.outside += inside ? 0 : 1;
    return inside;
  }

  void name_device(uint32_t index) {
    const Device& device = tables_.devices[index];
    const TraceState& trace = tables_.traces[device.trace];
    const trace::Header& header = trace.header;
    std::string text = trace.rank() ? "rank " + std::to_string(*trace.rank()) + ", " : "";
    text += header.hostname() + " process " + std::to_string(header.pid()) + ", ";
    text += device.id == 0
                ? "device not known"
                : device.facts.name() + " (device " + std::to_string(device.id - 1) + ")";
    name(index, 0, "process_name", R"("name":)" + json_text(text));
    if (const std::string command = command_of(header); !command.empty())
      name(index, 0, "process_labels", R"("labels":)" + json_text(cut(command, 200)));
    name(index, 0, "process_sort_index", R"("sort_index":)" + std::to_string(index));
  }

  void write_pending(size_t left) {
    while (pending_.size() > left) {
      const TimedLaunch launch = pending_.top();
      pending_.pop();
      Lane* const lane = lane_of(launch);
      if (lane == nullptr) continue;
      project(launch, *lane);
      write(launch, lane->kernels);
    }
  }

  // The first lane of the launch's stream that is free when it starts; null: there are too many.
  Lane* lane_of(const TimedLaunch& launch) {
    std::vector<Lane>& lanes = lanes_[{launch.device, launch.stream}];
    auto lane =
        std::ranges::find_if(lanes, [&](const Lane& l) { return l.end_ns <= launch.start_ns; });
    if (lane == lanes.end()) {
      if (lanes.size() >= kMostLanes) return nullptr;
      if (!tracks_.contains(launch.device)) name_device(launch.device);
      const uint32_t number = tables_.traces[launch.trace].stream_numbers.get(launch.stream);
      Lane fresh;
      fresh.name = number == kNoIndex ? "stream not known" : "stream " + std::to_string(number);
      if (!lanes.empty()) fresh.name += " (" + std::to_string(lanes.size() + 1) + ")";
      // By the stream's number, which is how CUPTI orders them.
      const uint64_t stream = number == kNoIndex ? 0 : uint64_t{number} + 1;
      fresh.order = kStepTracks + (stream * kMostLanes + lanes.size()) * kTracksOfLane;
      fresh.kernels = add_track(launch.device, fresh.name, fresh.order + 2);
      lanes.push_back(std::move(fresh));
      lane = lanes.end() - 1;
    }
    lane->end_ns = launch.start_ns + launch.duration_ns;
    return &*lane;
  }

  // The ranges of a launch, those of its step and below marked with it. Where no range of its own
  // is the step's (autograd's thread), all are.
  const std::vector<Track::Level>& around(const TimedLaunch& launch) {
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

  // On the tracks of ranges and of phases, and in its step.
  void project(const TimedLaunch& launch, Lane& lane) {
    project(launch, lane.ranges, around(launch), lane.name + " ranges", lane.order,
            [&](const Track::Level& level) {
              const std::string& text = ranges_.of(
                  level.name, [&](uint32_t path) { return json_text(tables_.range_label(path)); });
              if (level.step == 0) return text;
              return text + R"(,"args":{"step":)" + std::to_string(level.step) + '}';
            });
    const std::string& phase = launches_.phase(launch);
    const Track::Level level{
        static_cast<uint32_t>(phases_.try_emplace(phase, phases_.size()).first->second)};
    project(launch, lane.phases, {&level, 1}, lane.name + " phases", lane.order + 1,
            [&](const Track::Level&) {
              return json_text(phase) + R"(,"cname":")" + std::string(colour_of(phase)) + '"';
            });
    if (launch.step == 0) return;
    Extent& step = steps_[launch.device][launch.step];
    step.begin_ns = std::min(step.begin_ns, launch.start_ns);
    step.end_ns = std::max(step.end_ns, launch.start_ns + launch.duration_ns);
  }
  template <typename Text>
  void project(const TimedLaunch& launch, Track& track, std::span<const Track::Level> levels,
               const std::string& title, uint64_t order, Text&& text) {
    const uint32_t device = launch.device;
    if (track.number == 0 && !levels.empty()) track.number = add_track(device, title, order);
    track.kernel(
        levels, launch.start_ns, launch.start_ns + launch.duration_ns,
        [&](const auto& level, uint64_t ns) { begin(device, track.number, ns, text(level)); },
        [&](uint64_t ns) { end(device, track.number, ns); });
  }

  void write(const TimedLaunch& launch, uint32_t track) {
    const uint32_t device = launch.device;
    const std::string& kernel = kernels_.of(launch.signature, [&](uint32_t signature) {
      return json_text(signature == SignatureTable::kUndefined
                           ? "(lost kernel)"
                           : demangle(tables_.names[tables_.signatures[signature].name]));
    });
    event('X', device, track) << at(device, launch.start_ns) << R"(,"dur":)"
                              << microseconds(launch.duration_ns) << R"(,"name":)" << kernel
                              << R"(,"cat":)" << json_text(launches_.phase(launch))
                              << R"(,"cname":")" << colour_of(launches_.phase(launch))
                              << R"(","args":{)";
    const Flop* flop = launches_.next_flop(launch);
    if (flop == nullptr || launches_.at_least(launch)) unmeasured_.insert(device);
    arguments(launch, flop);
    out_ << "}}";
    ++written_.launches;
    if (flop == nullptr || flop->total == 0) return;
    const uint64_t end_ns = launch.start_ns + launch.duration_ns;
    flop_[device].add(launch.start_ns, end_ns,
                      static_cast<uint64_t>(std::min<u128>(flop->total, UINT64_MAX)));
    if (const auto least = launches_.least_ns(launch, *flop))
      least_[device].add(launch.start_ns, end_ns, static_cast<uint64_t>(*least * 1e6));
    else
      no_peak_.insert(device);
  }

  void arguments(const TimedLaunch& launch, const Flop* flop) {
    out_ << R"("flop":)" << (flop != nullptr ? exact_number(flop->total) : "null");
    if (flop != nullptr) {
      out_ << R"(,"precision":{)";
      const char* separator = "";
      const auto& precisions = launches_.formulas().precisions();
      for (size_t i = 0; i < precisions.size(); ++i)
        if (flop->by_precision[i] != 0)
          out_ << std::exchange(separator, ",") << json_text(precisions[i]) << ':'
               << exact_number(flop->by_precision[i]);
      out_ << '}';
      if (launches_.estimated(launch)) out_ << R"(,"estimate":true)";
      if (launches_.at_least(launch)) out_ << R"(,"at_least":true)";
    }
    if (launch.path != PathTable::kRoot)
      out_ << R"(,"range":)" << paths_.of(launch.path, [&](uint32_t path) {
        return json_text(tables_.path_string(path));
      });
    const Signature& s = tables_.signatures[launch.signature];
    for (const auto& [key, size] : {std::pair{"grid", &s.grid}, std::pair{"block", &s.block}})
      out_ << ",\"" << key << "\":[" << (*size)[0] << ',' << (*size)[1] << ',' << (*size)[2] << ']';
    if (launch.windowed) out_ << R"(,"windowed":true)";
    if (launch.graph) out_ << R"(,"graph":true)";
  }

  // Steps that overlap on the GPU have tracks of their own.
  void step_tracks(uint32_t device, const Steps& steps) {
    const auto& known = tables_.traces[tables_.devices[device].trace].steps.steps();
    std::vector<std::pair<uint32_t, Extent>> order(steps.begin(), steps.end());
    std::ranges::stable_sort(order, {}, [](const auto& s) { return s.second.begin_ns; });
    std::vector<std::pair<uint32_t, uint64_t>> tracks;  // and until when each is taken
    for (const auto& [number, extent] : order) {
      auto track = std::ranges::find_if(
          tracks, [from = extent.begin_ns](const auto& one) { return one.second <= from; });
      if (track == tracks.end()) {
        const size_t place = tracks.size() + 1;
        if (place > kMostLanes) continue;
        tracks.emplace_back(
            add_track(device, place == 1 ? "steps" : "steps (" + std::to_string(place) + ")",
                      place),
            0);
        track = tracks.end() - 1;
      }
      const std::string text = std::to_string(number);
      std::string more = R"(,"args":{"step":)" + text;
      if (const auto found = known.find(number); found != known.end())
        more += R"(,"wall_ns":)" + std::to_string(found->second.duration_ns);
      begin(device, track->first, extent.begin_ns, "\"step " + text + '"' + more + '}');
      end(device, track->first, extent.end_ns);
      track->second = extent.end_ns;
    }
  }

  // A figure of a device, bin by bin; it ends at 0.
  void counter(uint32_t device, std::string title, FlopSeries& series, double scale) {
    if (unmeasured_.contains(device)) title += " of measured launches";
    series.finish();
    const auto say = [&](uint64_t ns, double value) {
      event('C', device, 0) << R"(,"name":")" << title << '"' << at(device, ns) << R"(,"args":{")"
                            << title << R"(":)" << printed("%.17g", value) << "}}";
    };
    uint64_t ns = series.begin_ns();
    for (const u128 sum : series.bins()) {
      say(ns, static_cast<double>(sum) * scale / static_cast<double>(series.bin_ns()));
      ns += series.bin_ns();
    }
    say(ns, 0);
  }

  std::ostream& out_;
  Launches& launches_;
  const TraceEventOptions options_;
  const TraceTables& tables_;
  uint64_t first_begin_ = UINT64_MAX;
  WrittenEvents written_;
  uint64_t any_ = 0;
  std::priority_queue<TimedLaunch, std::vector<TimedLaunch>, Later> pending_;  // of one trace
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Lane>> lanes_;  // by (device, stream)
  std::map<uint32_t, FlopSeries> flop_, least_;                       // by device; the latter in fs
  std::set<uint32_t> no_peak_, unmeasured_;                           // devices with such launches
  std::map<uint32_t, Steps> steps_;                                   // by device
  std::vector<Track::Level> around_;                                  // of the last launch
  uint64_t around_of_ = UINT64_MAX;                                   // its path and step
  uint32_t around_trace_ = 0;
  std::unordered_map<uint32_t, uint32_t> tracks_;  // of a device, how many
  Texts kernels_, paths_, ranges_;
  std::map<std::string, size_t> phases_;  // numbers
};

}  // namespace

WrittenEvents write_trace_events(std::ostream& out, Launches& launches,
                                 const TraceEventOptions& options) {
  return Writer(out, launches, options).write();
}

}  // namespace flopinj::reduce
