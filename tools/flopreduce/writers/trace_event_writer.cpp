#include "writers/trace_event_writer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/operators/layers.h"
#include "support/text.h"
#include "tables/flop_series.h"

namespace flopinj::reduce {
namespace {

__extension__ typedef __int128 i128;

// A JSON string of ASCII alone, made fit to be shown as in every other form.
std::string json_text(std::string_view text) {
  return nlohmann::json(printable(text))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Integers up to 2^53 as numbers, larger ones as strings: many readers of JSON have doubles alone.
std::string exact_number(u128 value) {
  const std::string digits = to_decimal(value);
  return value <= u128{1} << 53 ? digits : '"' + digits + '"';
}

// "12.345": microseconds.
std::string microseconds(i128 ns) {
  const bool negative = ns < 0;
  const auto size = static_cast<u128>(negative ? -ns : ns);
  std::array<char, 8> rest{};
  std::snprintf(rest.data(), rest.size(), ".%03u", static_cast<unsigned>(size % 1000));
  return (negative ? "-" : "") + to_decimal(size / 1000) + rest.data();
}

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

class Writer {
 public:
  Writer(std::ostream& out, Launches& launches)
      : out_(out), launches_(launches), tables_(launches.tables()) {
    for (const TraceState& trace : tables_.traces)
      if (const uint64_t begin = trace.header.clock_realtime_ns(); begin != 0)
        first_begin_ = std::min(first_begin_, begin);
  }

  uint64_t write(std::string_view program, int fma) {
    const bool simulated = std::any_of(tables_.traces.begin(), tables_.traces.end(),
                                       [](const auto& t) { return t.header.simulated(); });
    out_ << R"({"displayTimeUnit":"ns","otherData":{"producer":)" << json_text(program)
         << R"(,"fma":)" << fma << R"(,"simulated":)" << (simulated ? "true" : "false")
         << R"(},"traceEvents":[)";
    launches_.for_each([&](const TimedLaunch& launch) {
      if (!pending_.empty() && pending_.top().trace != launch.trace) write_pending(0);
      pending_.push(launch);
      if (pending_.size() > kReordered) write_pending(kReordered);
      return out_.good();
    });
    write_pending(0);
    for (auto& [device, series] : series_) counter(device, series);
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
    uint64_t end_ns = 0;  // of its last event
    uint32_t track = 0;   // "tid"
  };

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
  void name_device(uint32_t index);
  std::optional<uint32_t> track_of(const TimedLaunch& launch);
  void write_pending(size_t left);
  void write(const TimedLaunch& launch, uint32_t track);
  void arguments(const TimedLaunch& launch, const Flop* flop);
  void counter(uint32_t device, FlopSeries& series);

  std::ostream& out_;
  Launches& launches_;
  const TraceTables& tables_;
  uint64_t first_begin_ = UINT64_MAX;
  uint64_t written_ = 0;
  uint64_t any_ = 0;
  std::priority_queue<TimedLaunch, std::vector<TimedLaunch>, Later> pending_;  // of one trace
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Lane>> lanes_;  // by (device, stream)
  std::map<uint32_t, FlopSeries> series_;                             // by device
  std::unordered_map<uint32_t, uint32_t> tracks_;                     // of a device, how many
  Texts kernels_, paths_;
};

void Writer::name_device(uint32_t index) {
  const Device& device = tables_.devices[index];
  const trace::Header& header = tables_.traces[device.trace].header;
  std::string text = header.rank() >= 0 && tables_.traces[device.trace].has_header
                         ? "rank " + std::to_string(header.rank()) + ", "
                         : "";
  text += header.hostname() + " process " + std::to_string(header.pid()) + ", ";
  text += device.id == 0 ? "device not known"
                         : device.facts.name() + " (device " + std::to_string(device.id - 1) + ")";
  name(index, 0, "process_name", R"("name":)" + json_text(text));
  name(index, 0, "process_sort_index", R"("sort_index":)" + std::to_string(index));
}

// The first track of the launch's stream that is free when it starts.
std::optional<uint32_t> Writer::track_of(const TimedLaunch& launch) {
  std::vector<Lane>& lanes = lanes_[{launch.device, launch.stream}];
  auto lane = std::find_if(lanes.begin(), lanes.end(),
                           [&](const Lane& l) { return l.end_ns <= launch.start_ns; });
  if (lane == lanes.end()) {
    if (lanes.size() >= kMostLanes) return std::nullopt;
    uint32_t& tracks = tracks_[launch.device];
    if (tracks == 0) name_device(launch.device);
    const uint32_t track = ++tracks;
    const uint32_t number = tables_.traces[launch.trace].stream_numbers.get(launch.stream);
    std::string text = number == kNoIndex ? "stream not known" : "stream " + std::to_string(number);
    if (!lanes.empty()) text += " (" + std::to_string(lanes.size() + 1) + ")";
    name(launch.device, track, "thread_name", R"("name":)" + json_text(text));
    name(launch.device, track, "thread_sort_index",
         R"("sort_index":)" + std::to_string(uint64_t{launch.stream} * kMostLanes + lanes.size()));
    lanes.push_back({0, track});
    lane = lanes.end() - 1;
  }
  lane->end_ns = launch.start_ns + launch.duration_ns;
  return lane->track;
}

void Writer::write_pending(size_t left) {
  while (pending_.size() > left) {
    const TimedLaunch launch = pending_.top();
    pending_.pop();
    if (const auto track = track_of(launch)) write(launch, *track);
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
          << json_text(launches_.phase(launch)) << R"(,"args":{)";
  const Flop* flop = launches_.next_flop(launch);
  arguments(launch, flop);
  out_ << "}}";
  ++written_;
  if (flop != nullptr && flop->total > 0)
    series_[launch.device].add(launch.start_ns, launch.start_ns + launch.duration_ns,
                               static_cast<uint64_t>(std::min<u128>(flop->total, UINT64_MAX)));
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

// FLOP/s of a device, bin by bin; it ends at 0.
void Writer::counter(uint32_t device, FlopSeries& series) {
  series.finish();
  const uint32_t trace = tables_.devices[device].trace;
  const auto at = [&](uint64_t ns, double rate) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.17g", rate);
    event() << R"({"ph":"C","pid":)" << device + 1 << R"(,"tid":0,"name":"FLOP/s","ts":)"
            << microseconds(time_of(trace, ns)) << R"(,"args":{"FLOP/s":)" << text.data() << "}}";
  };
  uint64_t ns = series.begin_ns();
  for (const u128 flop : series.bins()) {
    at(ns, static_cast<double>(flop) * 1e9 / static_cast<double>(series.bin_ns()));
    ns += series.bin_ns();
  }
  at(ns, 0);
}

}  // namespace

uint64_t write_trace_events(std::ostream& out, Launches& launches, std::string_view program,
                            int fma) {
  return Writer(out, launches).write(program, fma);
}

}  // namespace flopinj::reduce
