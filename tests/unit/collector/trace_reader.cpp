#include "trace_reader.h"

#include <fstream>
#include <iterator>
#include <set>

namespace flopinj::test {
namespace {

// RFC 3720, appendix B.4, one bit at a time.
uint32_t slow_crc32c(std::string_view bytes) {
  uint32_t c = 0xFFFFFFFF;
  for (const char byte : bytes) {
    c ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) c = (c & 1) != 0 ? (c >> 1) ^ 0x82F63B78U : c >> 1;
  }
  return ~c;
}

bool check_sum_right(std::string_view packet) {
  if (packet.size() < 5 || packet[packet.size() - 5] != 0x7d) return false;
  uint32_t stored = 0;
  for (size_t i = 0; i < 4; ++i)
    stored |= uint32_t{static_cast<unsigned char>(packet[packet.size() - 4 + i])} << (8 * i);
  return stored == slow_crc32c(packet.substr(0, packet.size() - 5));
}

template <class Runs>
std::vector<uint64_t> spread(const Runs& runs, size_t n) {
  std::vector<uint64_t> values;
  for (int i = 0; i + 1 < runs.size(); i += 2)
    values.insert(values.end(), static_cast<size_t>(runs[i + 1]), uint64_t{runs[i]});
  if (runs.empty()) values.assign(n, 0);
  return values;
}

void add_rows(const pb::Interned::Pattern& pattern, ReadPatterns& to) {
  const auto n = static_cast<size_t>(pattern.signature_size());
  const auto paths = spread(pattern.range_path_run(), n);
  const auto steps = spread(pattern.sequence_step_run(), n);
  const auto calls = spread(pattern.call_run(), n);
  for (size_t i = 0; i < n; ++i)
    to[pattern.first_row() + static_cast<uint32_t>(i)] = {pattern.signature(static_cast<int>(i)),
                                                          static_cast<uint32_t>(paths.at(i)),
                                                          steps.at(i), calls.at(i) != 0};
}

// What of each launch a pattern can say: signature, path and sequence number.
std::vector<ReadLaunch> read_order(const pb::LaunchBatch& batch, const ReadPatterns& patterns) {
  const auto own = static_cast<size_t>(batch.signature_size());
  const auto paths = spread(batch.range_path_run(), own);
  const auto sequences = spread(batch.sequence_run(), own);
  const auto calls = spread(batch.call_run(), own);
  std::vector<ReadLaunch> launches;
  size_t next_own = 0;
  uint64_t sequence = batch.sequence_base();
  const auto take_own = [&] {
    ReadLaunch& l = launches.emplace_back();
    l.signature = batch.signature(static_cast<int>(next_own));
    l.path = static_cast<uint32_t>(paths.at(next_own));
    l.call = calls.at(next_own) != 0;
    l.sequence_plus_1 = sequences.at(next_own++);
    if (l.sequence_plus_1 != 0) sequence = l.sequence_plus_1;
  };
  const auto take_row = [&](const ReadRow& row) {
    ReadLaunch& l = launches.emplace_back();
    l.signature = row.signature;
    l.path = row.path;
    l.call = row.call;
    if (row.step == 0) return;
    const uint64_t zigzag = row.step - 1;
    sequence += (zigzag & 1) != 0 ? ~(zigzag / 2) : zigzag / 2;
    l.sequence_plus_1 = sequence;
  };
  if (batch.pattern_run_size() == 0)
    while (next_own < own) take_own();
  for (int i = 0; i + 1 < batch.pattern_run_size(); i += 2)
    for (uint32_t k = 0; k < batch.pattern_run(i + 1); ++k) {
      if (batch.pattern_run(i) == 0)
        take_own();
      else
        take_row(patterns.at(batch.pattern_run(i) + k));
    }
  return launches;
}

// Of each key the highest revision stays.
void settle_revisions(ReadTrace& trace) {
  std::map<uint32_t, uint64_t> newest;
  for (const auto& packet : trace.packets)
    if (packet.has_revised()) {
      uint64_t& revision = newest[packet.revised().key()];
      revision = std::max(revision, packet.revised().revision());
    }
  trace.revised = !newest.empty();
  for (auto& packet : trace.packets) {
    if (!packet.has_revised()) continue;
    pb::Revised held;
    held.Swap(packet.mutable_revised());
    packet.clear_body();
    if (held.revision() != newest[held.key()]) continue;
    if (held.has_tally_batch()) *packet.mutable_tally_batch() = held.tally_batch();
    if (held.has_ledger()) *packet.mutable_ledger() = held.ledger();
    if (held.has_self_overhead()) *packet.mutable_self_overhead() = held.self_overhead();
    if (held.has_step_sums()) *packet.mutable_step_sums() = held.step_sums();
    if (held.has_range_numbers()) *packet.mutable_range_numbers() = held.range_numbers();
    if (held.has_energy()) *packet.mutable_energy() = held.energy();
    if (held.has_copy_sums()) *packet.mutable_copy_sums() = held.copy_sums();
  }
}

}  // namespace

ReadTrace read_trace(std::string_view bytes) {
  ReadTrace trace;
  while (!bytes.empty()) {
    size_t at = 1;
    size_t length = 0;
    bool whole = false;
    for (int shift = 0; at < bytes.size() && shift < 35; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      length |= size_t{byte & 0x7FU} << shift;
      whole = (byte & 0x80U) == 0;
      if (whole) break;
    }
    if (bytes[0] != 0x0a || !whole || length > bytes.size() - at) {
      trace.torn = true;
      break;
    }
    const std::string_view body = bytes.substr(at, length);
    bytes.remove_prefix(at + length);
    pb::TracePacket packet;
    if (!check_sum_right(body) || !packet.ParseFromArray(body.data(), static_cast<int>(length))) {
      ++trace.damaged;
      continue;
    }
    trace.packets.push_back(packet);
    trace.packet_bytes.push_back(length);
    for (const auto& pattern : packet.interned().patterns()) add_rows(pattern, trace.patterns);
    trace.in_order = trace.in_order && packet.sequence() == trace.packets.size();
  }
  settle_revisions(trace);
  return trace;
}

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<ReadLaunch> read_launches(const pb::LaunchBatch& batch, const ReadPatterns& patterns) {
  std::vector<ReadLaunch> launches = read_order(batch, patterns);
  const size_t n = launches.size();
  const auto graph = spread(batch.graph_run(), n);
  const auto windowed = spread(batch.windowed_run(), n);
  const auto step = spread(batch.step_run(), n);
  const bool times = batch.gap_ns_size() != 0;
  std::set<size_t> untimed;
  size_t index = 0;
  for (const uint32_t delta : batch.untimed_delta()) untimed.insert(index += delta);
  std::map<uint32_t, uint64_t> durations;
  uint64_t last_end = batch.first_start_ns();
  int calls = 0;
  bool first = true;
  for (size_t i = 0; i < n; ++i) {
    ReadLaunch& l = launches[i];
    const int at = static_cast<int>(i);
    l.graph = graph.at(i) != 0;
    l.windowed = windowed.at(i) != 0;
    l.step = static_cast<uint32_t>(step.at(i));
    l.timed = times && untimed.count(i) == 0;
    if (!l.timed) continue;
    l.start_ns = last_end + static_cast<uint64_t>(batch.gap_ns(at));
    uint64_t& duration = durations[l.signature];
    duration += static_cast<uint64_t>(batch.duration_delta_ns(at));
    l.end_ns = last_end = l.start_ns + duration;
    const bool has_call = first || batch.gap_ns(at) >= 2'000;
    first = false;
    if (!has_call || batch.called_before_size() == 0) continue;
    const uint64_t before = batch.called_before(calls++);
    if (before != 0) l.called_before_ns = 128 * (before - 1);
  }
  for (int i = 0, launch = 0; i + 4 <= batch.pause_size(); i += 4) {
    ReadLaunch& l = launches.at(static_cast<size_t>(launch += static_cast<int>(batch.pause(i))));
    l.pause_path = static_cast<uint32_t>(batch.pause(i + 1));
    l.pause_end_before_ns = 128 * batch.pause(i + 2);
    l.pause_ns = 128 * batch.pause(i + 3);
  }
  return launches;
}

Sums sums(const ReadTrace& trace) {
  Sums s;
  for (const auto& packet : trace.packets) {
    for (const ReadLaunch& l : read_launches(packet.launch_batch(), trace.patterns)) {
      ++s.launches;
      ++s.by_signature[l.signature];
      ++s.by_step[l.step];
      s.timed += l.timed ? 1 : 0;
      s.gpu_time_ns += l.end_ns - l.start_ns;
      s.graph += l.graph ? 1 : 0;
      s.windowed += l.windowed ? 1 : 0;
    }
    const auto& t = packet.tally_batch();
    for (int i = 0; i < t.launches_size(); ++i) {
      s.launches += t.launches(i);
      s.by_signature[t.signature(i)] += t.launches(i);
      s.by_step[t.in_step_size() != 0 ? t.in_step(i) : 0] += t.launches(i);
      s.timed += t.timed(i);
      s.gpu_time_ns += t.gpu_time_ns(i);
      if (t.graph_launches_size() != 0) s.graph += t.graph_launches(i);
      if (t.windowed_size() != 0 && t.windowed(i) != 0) s.windowed += t.launches(i);
    }
  }
  return s;
}

namespace {

class Checker {
 public:
  std::string run(const ReadTrace& trace) {
    if (trace.damaged != 0) fault("damaged packets");
    if (!trace.in_order) fault("sequence numbers");
    if (trace.packets.empty() || !trace.packets[0].has_header()) fault("no header first");
    // What is rewritten may use what was defined after it, and stand before or after its ledger.
    if (trace.revised)
      for (const auto& packet : trace.packets) define(packet);
    for (const auto& packet : trace.packets) check(packet, trace.revised);
    if (trace.revised) {
      const bool ended = !trace.packets.empty() && trace.packets.back().has_end();
      for (const auto& packet : trace.packets)
        if (packet.has_ledger()) check(packet.ledger(), !ended);
    }
    return fault_;
  }

 private:
  void fault(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  void use(const std::set<uint32_t>& defined, uint32_t id, const char* what) {
    if (id != 0 && defined.count(id) == 0)
      fault(std::string(what) + " " + std::to_string(id) + " is used before it is defined");
  }

  void define(const pb::TracePacket& packet) {
    const auto& in = packet.interned();
    for (const auto& s : in.strings()) strings_.insert(s.id());
    for (const auto& f : in.functions()) {
      use(strings_, f.name(), "string");
      functions_.insert(f.id());
    }
    for (const auto& s : in.signatures()) {
      use(functions_, s.function(), "function");
      signatures_.insert(s.id());
    }
    for (const auto& p : in.range_paths()) {
      use(paths_, p.parent(), "parent path");
      use(strings_, p.name(), "string");
      use(strings_, p.domain(), "string");
      paths_.insert(p.id());
    }
    for (const auto& s : in.streams()) streams_.insert(s.id());
    for (const auto& p : in.patterns()) {
      for (const uint32_t s : p.signature()) use(signatures_, s, "signature");
      for (int i = 0; i < p.range_path_run_size(); i += 2) use(paths_, p.range_path_run(i), "path");
      rows_ = p.first_row() + static_cast<uint32_t>(p.signature_size());
    }
    for (const auto& t : in.threads()) {
      use(strings_, t.name(), "string");
      threads_.insert(t.id());
    }
    if (packet.has_metric_group()) groups_.insert(packet.metric_group().id());
  }

  void check(const pb::TracePacket& packet, bool revised) {
    define(packet);
    check(packet.launch_batch());
    check(packet.tally_batch());
    const auto& samples = packet.counter_samples();
    use(groups_, samples.group(), "group");
    for (const uint32_t s : samples.signature()) use(signatures_, s, "signature");
    for (const uint32_t p : samples.range_path()) use(paths_, p, "path");
    const auto& steps = packet.steps();
    for (int i = 0; i < steps.range_path_run_size(); i += 2)
      use(paths_, steps.range_path_run(i), "path");
    if (steps.gap_ns_size() != steps.number_delta_size() ||
        steps.duration_ns_size() != steps.number_delta_size())
      fault("step columns of unlike length");
    use(paths_, packet.step_sums().range_path(), "path");
    const auto& numbers = packet.range_numbers();
    for (const uint32_t p : numbers.range_path()) use(paths_, p, "path");
    for (const uint32_t s : numbers.name()) use(strings_, s, "string");
    if (numbers.name_size() != numbers.range_path_size() ||
        numbers.times_size() != numbers.name_size() || numbers.total_size() != numbers.name_size())
      fault("columns of numbers of unlike length");
    if (packet.copies().gap_ns_size() != packet.copies().duration_ns_size())
      fault("columns of copies of unlike length");
    const auto& sums = packet.copy_sums();
    for (const int size : {sums.kind_size(), sums.copies_size(), sums.bytes_size(),
                           sums.pageable_bytes_size(), sums.total_ns_size()})
      if (size != sums.device_size()) fault("columns of sums of copies of unlike length");
    if (packet.has_ledger() && !revised) check(packet.ledger(), false);
  }

  void check(const pb::LaunchBatch& b) {
    uint32_t n = b.pattern_run_size() == 0 ? static_cast<uint32_t>(b.signature_size()) : 0;
    for (int i = 0; i + 1 < b.pattern_run_size(); i += 2) {
      n += b.pattern_run(i + 1);
      if (b.pattern_run(i) != 0 && b.pattern_run(i) + b.pattern_run(i + 1) > rows_)
        fault("pattern rows are used before they are defined");
    }
    use(threads_, b.thread(), "thread");
    use(streams_, b.stream(), "stream");
    for (const uint32_t s : b.signature()) use(signatures_, s, "signature");
    const auto gaps = static_cast<uint32_t>(b.gap_ns_size());
    if (gaps != static_cast<uint32_t>(b.duration_delta_ns_size()) || (gaps != 0 && gaps != n) ||
        (gaps == 0 && b.pattern_run_size() != 0))
      fault("columns of unlike length");
    for (int i = 0; i < b.range_path_run_size(); i += 2) use(paths_, b.range_path_run(i), "path");
    written_ += n;
  }

  void check(const pb::TallyBatch& t) {
    const int n = t.thread_size();
    for (const int size : {t.stream_size(), t.signature_size(), t.range_path_size(),
                           t.launches_size(), t.timed_size(), t.gpu_time_ns_size()})
      if (size != n) fault("tally columns of unlike length");
    for (int i = 0; i < n; ++i) {
      use(threads_, t.thread(i), "thread");
      use(streams_, t.stream(i), "stream");
      use(signatures_, t.signature(i), "signature");
      use(paths_, t.range_path(i), "path");
      written_ += t.launches(i);
    }
  }

  // At every ledger: exactly what was written is recorded, and never more than was made.
  // A ledger that is rewritten after the tallies is older than they are for a moment.
  void check(const pb::Ledger& ledger, bool may_be_older) {
    uint64_t recorded = 0;
    uint64_t dropped = 0;
    uint64_t reasons = 0;
    for (const auto& d : ledger.device()) {
      recorded += d.recorded();
      dropped += d.dropped();
      if (d.recorded() + d.dropped() > d.launches()) fault("more recorded than made");
    }
    for (const auto& r : ledger.dropped()) reasons += r.count();
    if (recorded != written_ && !(may_be_older && recorded < written_))
      fault("ledger says " + std::to_string(recorded) + " recorded, written are " +
            std::to_string(written_));
    if (reasons != dropped) fault("dropped launches without a reason");
  }

  std::string fault_;
  std::set<uint32_t> strings_, functions_, signatures_, paths_, streams_, threads_, groups_;
  uint64_t written_ = 0;
  uint32_t rows_ = 1;  // the next row of a pattern
};

}  // namespace

std::string first_fault(const ReadTrace& trace) { return Checker().run(trace); }

}  // namespace flopinj::test
