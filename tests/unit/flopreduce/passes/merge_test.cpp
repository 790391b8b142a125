// Merging is closed: a summary of a summary is the same bytes, whatever the traces have lost, and
// in whatever order and groups they are merged. Property over the recorded traces of tests/golden
// and tests/data, whole and with packets dropped, repeated, cut off or without session or header.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.h"
#include "crc32c.h"
#include "flop_trace.pb.h"
#include "reduce_bytes.h"
#include "sequences.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

std::vector<Named> recorded() {
  std::vector<Named> traces;
  for (const char* folder : {"golden", "data/old"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(FLOPINJ_TEST_TRACES) / folder)) {
      if (entry.path().extension() != ".pb") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      traces.push_back(
          {entry.path().filename(), std::string(std::istreambuf_iterator<char>(file), {})});
    }
  std::sort(traces.begin(), traces.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return traces;
}

// Frames a packet anew, with its check sum.
void append(std::string& bytes, flopinj::trace::TracePacket packet) {
  packet.clear_crc32c();
  std::string body = packet.SerializeAsString();
  const uint32_t sum = flopinj::crc32c(body.data(), body.size());
  body += '\x7d';
  for (unsigned i = 0; i < 4; ++i) body += static_cast<char>(sum >> (8 * i));
  bytes += '\x0a';
  for (size_t n = body.size();; n >>= 7) {
    bytes += static_cast<char>(n < 0x80 ? n : (n & 0x7f) | 0x80);
    if (n < 0x80) break;
  }
  bytes += body;
}

size_t below(Random& random, size_t end) {
  return std::min(end - 1, static_cast<size_t>(random.uniform() * static_cast<double>(end)));
}

// What a disk, a kill or a copy may do to a trace, and a recorder without a session id. Otherwise
// it gets one of its own.
std::string spoilt(const std::string& bytes, Random& random) {
  flopinj::trace::Trace trace;
  if (!trace.ParseFromString(bytes)) return bytes.substr(0, bytes.size() / 2);
  const bool no_session = random.uniform() < 0.5, no_header = random.uniform() < 0.2;
  const double lost = random.uniform() < 0.5 ? 0 : 0.2, again = random.uniform() < 0.5 ? 0 : 0.2;
  std::string out;
  for (auto& packet : *trace.mutable_packet()) {
    if (packet.has_header() && no_header) continue;
    if (packet.has_header() && no_session)
      packet.mutable_header()->clear_session_id();
    else if (packet.has_header())
      packet.mutable_header()->set_session_id(1 + below(random, size_t{1} << 50));
    if (!packet.has_header() && random.uniform() < lost) continue;
    append(out, packet);
    if (!packet.has_header() && random.uniform() < again) append(out, packet);
  }
  if (random.uniform() < 0.2) out.resize(out.size() - std::min<size_t>(out.size() / 2, 40));
  return out;
}

std::string merged(const std::vector<Named>& parts) { return merge_bytes(parts).bytes; }

// One recording of a job: all are alike but for the session and the rank.
std::string rank_of_job(int32_t rank) {
  TraceBuilder t;
  t.rank_header(1'000 + static_cast<uint64_t>(rank), rank, 1);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.kernel(1, "k", 11);
  t.launches({{1, 10, 0}});
  t.end();
  return t.bytes();
}

}  // namespace

TEST_CASE("a summary of more processes than any job has ranks is read again whole") {
  constexpr int32_t kRanks = 20'000;
  std::vector<Named> ranks, halves(2);
  for (int32_t rank = 0; rank < kRanks; ++rank)
    ranks.push_back({"rank" + std::to_string(rank), rank_of_job(rank)});
  const std::string flat = merged(ranks);
  for (size_t half : {size_t{0}, size_t{1}}) {
    const auto begin = ranks.begin() + static_cast<std::ptrdiff_t>(half * kRanks / 2);
    halves[half] = {"half", merged({begin, begin + kRanks / 2})};
  }
  CHECK(merged(halves) == flat);
  CHECK(merged({{"flat", flat}}) == flat);
  const Report report = reduce_bytes({flat});
  CHECK(report.traces.size() == kRanks);
  CHECK(report.total.launches == kRanks);
  CHECK(report.damage.empty());
}

TEST_CASE("a merge of a merge is the merge, of recorded traces however spoilt") {
  std::vector<Named> traces = recorded();
  REQUIRE(traces.size() >= 8);
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::vector<Named> parts;
    for (size_t n = 1 + below(random, 5), i = 0; i < n; ++i) {  // each once: copies are one
      std::swap(traces[i], traces[i + below(random, traces.size() - i)]);
      parts.push_back({traces[i].name, spoilt(traces[i].bytes, random)});
    }
    const std::string whole = merged(parts);
    CHECK(merged({{"one.sum", whole}}) == whole);
    CHECK(merged({{"one.sum", whole}, {"two.sum", whole}}) == whole);
    std::rotate(parts.begin(),
                parts.begin() + static_cast<std::ptrdiff_t>(below(random, parts.size())),
                parts.end());
    const auto cut = parts.begin() + static_cast<std::ptrdiff_t>(below(random, parts.size()));
    std::vector<Named> halves;
    for (const auto& half :
         {std::vector<Named>(parts.begin(), cut), std::vector<Named>(cut, parts.end())})
      if (!half.empty()) halves.push_back({"half" + std::to_string(halves.size()), merged(half)});
    CHECK(merged(halves) == merged(parts));
    std::reverse(parts.begin(), parts.end());
    CHECK(merged(parts) == whole);
  }
}

TEST_CASE("recordings with the same definitions are in a summary as each of them is alone") {
  for (const Named& recorded_one : recorded()) {
    flopinj::trace::Trace trace;
    if (!trace.ParseFromString(recorded_one.bytes)) continue;
    INFO(recorded_one.name);
    std::vector<Named> ranks;
    std::string alone;
    for (uint64_t session = 1; session <= 5; ++session) {
      std::string bytes;
      for (auto packet : trace.packet()) {
        if (packet.has_header()) packet.mutable_header()->set_session_id(session);
        if (session == 2 && (packet.has_steps() || packet.has_step_sums())) continue;
        if (session == 3 && packet.has_ledger()) continue;
        if (session == 4 && packet.has_device()) continue;
        append(bytes, std::move(packet));
      }
      ranks.push_back({"rank" + std::to_string(session), bytes});
      alone += merged({ranks.back()});
    }
    CHECK(merged(ranks) == alone);
  }
}

TEST_CASE("of several copies of a recording the most complete counts, in a report as in a merge") {
  // Ten launches; or of the same recording the first four, as far as it was written by then.
  const auto trace = [](bool whole) {
    TraceBuilder t = started(7);
    t.kernel(1, "kernel", 11);
    t.samples(1, 1, {sass(100, 0, 100)});
    t.launches(std::vector<TraceBuilder::Launch>(4, {1, 10}));
    if (!whole) return t.bytes();
    t.launches(std::vector<TraceBuilder::Launch>(6, {1, 10}), 1, 1, 5000);
    t.ledger(10, 10, 0);
    t.end();
    return t.bytes();
  };
  const auto other = [] {
    TraceBuilder t = started(8);
    t.kernel(1, "kernel", 11);
    t.launches(std::vector<TraceBuilder::Launch>(3, {1, 10}));
    t.end();
    return t.bytes();
  }();
  const auto summary = [](const std::string& a, const std::string& b = "") {
    std::vector<Named> inputs = {{"a", a}};
    if (!b.empty()) inputs.push_back({"b", b});
    return merge_bytes(inputs).bytes;
  };
  const std::vector<std::vector<std::string>> cases = {
      {summary(trace(false)), trace(true)},
      {summary(trace(true)), trace(false)},
      {summary(trace(false)), summary(trace(true))},
      {summary(trace(false), other), trace(true)},
      {summary(trace(false), other), summary(trace(true), other)},
  };
  for (size_t i = 0; i < cases.size(); ++i)
    for (const bool turned : {false, true}) {
      INFO("case " << i << (turned ? ", turned" : ""));
      std::vector<std::string> inputs = cases[i];
      if (turned) std::ranges::reverse(inputs);
      const Report report = reduce_bytes(inputs);
      const uint64_t others = i >= 3 ? 3 : 0;
      CHECK(report.total.launches == 10 + others);
      CHECK(report.traces.size() == (others > 0 ? 2 : 1));
      const std::string merged = merge_bytes({{"x", inputs[0]}, {"y", inputs[1]}}).bytes;
      CHECK(reduce_bytes({merged}).total.launches == report.total.launches);
    }
}
