// Traces with right check sums and wrong content: counted as damage, bounded, and nothing is taken
// from them.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "catch.h"
#include "passes/sequence/sequence_groups.h"
#include "reader/import_child.h"
#include "reader/launch_batch.h"
#include "reader/unpack.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
using flopinj::trace::TracePacket;

namespace {

TraceBuilder with_kernel() {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {sass(1, 0, 0)});
  return t;
}

// Of the packet nothing is taken; the launch that comes after it counts.
void check_that_columns_are_refused(TraceBuilder& t, const TracePacket& p) {
  t.add(p);
  t.launches({{1}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(damage_of(r, Damage::kBadColumns) == 1);
  CHECK(r.total.launches == 1);
  CHECK(r.partial);
}

}  // namespace

TEST_CASE("a trace is none of another profiler's, whatever the length of its first packet") {
  CHECK_FALSE(may_be_foreign("\n{\x52\x79\x08\x01"));  // 123 bytes: a header's
  CHECK_FALSE(may_be_foreign("\n[\x52\x59\x08\x01"));  // 91
  CHECK(may_be_foreign("\n{\n  \"schemaVersion\": 1"));
  CHECK_FALSE(may_be_foreign(""));
  CHECK(may_be_foreign(" {\"traceEvents\": []}"));
  CHECK(may_be_foreign("[{\"ph\": \"X\"}]"));
  CHECK(may_be_foreign(std::string_view("SQLite format 3\0", 16)));
}

TEST_CASE("columns of unequal length: the whole batch is left out") {
  const std::vector<void (*)(flopinj::trace::LaunchBatch&)> faults = {
      [](auto& b) { b.add_gap_ns(1); },
      [](auto& b) { b.mutable_duration_delta_ns()->RemoveLast(); },
      [](auto& b) { b.add_range_path_run(7); },
      [](auto& b) { b.set_range_path_run(1, 5); },
      [](auto& b) { b.set_range_path_run(1, 2); },
      [](auto& b) { b.add_untimed_delta(3); },
      [](auto& b) { b.add_windowed_run(1); },
      [](auto& b) { b.add_graph_run(1), b.add_graph_run(4); },
      [](auto& b) { b.add_sequence_run(1), b.add_sequence_run(UINT64_MAX); },
      [](auto& b) { b.add_signature(1); },
  };
  for (const auto fault : faults) {
    TraceBuilder t = with_kernel();
    TracePacket p;
    TraceBuilder::fill(*p.mutable_launch_batch(), {{1, 5}, {1, 6}, {1, 7}});
    p.mutable_launch_batch()->set_stream(1);
    fault(*p.mutable_launch_batch());
    check_that_columns_are_refused(t, p);
  }
}

namespace {

// A varint at a time. The number of them, or nothing where one is unfinished or longer than ten
// bytes.
std::optional<size_t> count_one_by_one(const std::string& bytes) {
  size_t count = 0;
  size_t run = 0;
  for (const char c : bytes) {
    run = static_cast<uint8_t>(c) < 0x80 ? 0 : run + 1;
    if (run == 10) return std::nullopt;
    count += run == 0 ? 1 : 0;
  }
  return run == 0 ? std::optional(count) : std::nullopt;
}

std::vector<uint64_t> one_by_one(PackedColumn column, size_t count) {
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(column.next_there());
  CHECK(column.empty());
  return numbers;
}

// In pieces of `piece` numbers, beside another column, and the other way round.
using Unpack = decltype(unpack_signed);
std::vector<int64_t> unpacked(Unpack* unpack, PackedColumn column, size_t count, size_t piece,
                              PackedColumn other, bool first) {
  std::vector<int64_t> numbers(count + kUnpackRoom), others(piece + kUnpackRoom);
  for (size_t at = 0; at < count; at += piece) {
    const size_t now = std::min(piece, count - at);
    PackedColumn beside = other;
    int64_t* const to = numbers.data() + at;
    if (first)
      unpack(column, beside, now, to, others.data());
    else
      unpack(beside, column, now, others.data(), to);
  }
  CHECK(column.empty());
  numbers.resize(count);
  return numbers;
}

}  // namespace

TEST_CASE(
    "a column of any bytes has the numbers that protobuf's own decoder finds, or is refused") {
  std::mt19937_64 random(3);
  size_t refused = 0;
  constexpr size_t kFives = 9'001;  // numbers of five bytes
  std::string five_bytes;
  for (size_t k = 0; k < kFives; ++k) five_bytes += "\x80\x81\xff\x80\x01";
  five_bytes.append(kReadAhead, '\xff');
  const protozero::data_view fives(five_bytes.data(), 5 * kFives);
  for (int i = 0; i < 20'000; ++i) {
    const size_t size = random() % (i % 1000 == 0 ? 9000 : 80);
    const size_t long_ones = random() % 20;  // of 20 bytes, those that say "goes on"
    std::string bytes;
    for (size_t k = 0; k < size; ++k)
      bytes += static_cast<char>((random() & 0x7F) | (random() % 20 < long_ones ? 0x80U : 0U));
    const auto count = count_varints({bytes.data(), bytes.size()});
    REQUIRE(count == count_one_by_one(bytes));
    refused += count ? 0 : 1;
    if (!count) continue;
    std::vector<uint64_t> numbers;
    for (const char* at = bytes.data(); numbers.size() < *count;)
      numbers.push_back(protozero::decode_varint(&at, bytes.data() + bytes.size()));
    const std::string readable = bytes + std::string(kReadAhead, '\xff');
    const protozero::data_view column(readable.data(), bytes.size());
    CAPTURE(i);
    REQUIRE(one_by_one(PackedColumn(column), numbers.size()) == numbers);
    std::vector<int64_t> with_signs;
    for (const uint64_t number : numbers) with_signs.push_back(protozero::decode_zigzag64(number));
    const size_t piece = 1 + random() % (numbers.size() + 1);
    for (Unpack* const unpack : {unpack_signed, unpack_signed_one_by_one})
      for (const bool first : {true, false})
        REQUIRE(unpacked(unpack, PackedColumn(column), numbers.size(), piece, PackedColumn(fives),
                         first) == with_signs);
  }
  CHECK(refused > 1000);
  CHECK(refused < 19'000);
}

namespace {

// Rows 1 to 3 of a pattern: kernel 1 in range paths 0, 0 and 1.
void add_pattern(TraceBuilder& t,
                 const std::function<void(flopinj::trace::Interned::Pattern&)>& fault = {}) {
  t.path(1, 0, "range");
  TracePacket p;
  auto& pattern = *p.mutable_interned()->add_patterns();
  pattern.set_first_row(1);
  for (int i = 0; i < 3; ++i) pattern.add_signature(1);
  for (const uint32_t value : {0, 2, 1, 1}) pattern.add_range_path_run(value);
  if (fault) fault(pattern);
  t.add(p);
}

// Three launches of 5, 6 and 7 ns, as rows 1 to 3.
TracePacket pattern_batch() {
  TracePacket p;
  auto& b = *p.mutable_launch_batch();
  TraceBuilder::fill(b, {{1, 5}, {1, 6}, {1, 7}});
  b.set_stream(1);
  b.clear_signature();
  b.clear_range_path_run();
  b.add_pattern_run(1);
  b.add_pattern_run(3);
  return p;
}

}  // namespace

TEST_CASE("patterns: launches by reference, some of them named between") {
  TraceBuilder t = with_kernel();
  add_pattern(t);
  TracePacket p = pattern_batch();
  auto& b = *p.mutable_launch_batch();
  b.clear_pattern_run();
  for (const uint32_t value : {3, 1, 0, 1, 2, 1}) b.add_pattern_run(value);
  b.add_signature(1);
  b.add_range_path_run(1);
  b.add_range_path_run(1);
  t.add(p);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.damage.empty());
  CHECK(r.total.launches == 3);
  CHECK(r.total.time.ns == u128{18});
  REQUIRE(r.ranges.size() == 1);
  const Work inside = group(r, {by::kAnyRange}).front().work;
  CHECK(inside.launches == 2);
  CHECK(inside.time.ns == u128{11});
  const auto by_range = group(r, {by::kRange});
  REQUIRE(by_range.size() == 2);
  CHECK(by_range[1].ids[0] == kNoRange);
  CHECK(by_range[1].work.launches == 1);
}

TEST_CASE("patterns: sequence numbers count on from row to row") {
  flopinj::trace::LaunchBatch b = pattern_batch().launch_batch();
  b.clear_pattern_run();
  for (const uint32_t value : {1, 2, 0, 1}) b.add_pattern_run(value);
  b.add_signature(1);
  b.add_range_path_run(7);
  b.add_range_path_run(1);
  b.add_sequence_run(500);
  b.add_sequence_run(1);
  for (const uint32_t value : {1, 2}) b.add_pattern_run(value);  // rows 1 and 2 again
  for (int i = 0; i < 2; ++i) b.add_gap_ns(10), b.add_duration_delta_ns(0);
  b.set_sequence_base(100);
  PatternTable patterns;
  REQUIRE(patterns.set(1, {1, 3, 1 + 2 * 5}));  // 5 more
  REQUIRE(patterns.set(2, {1, 4, 1 + 1}));      // 1 less
  LaunchBatchReader batch;
  DamageLog damage;
  std::string bytes = b.SerializeAsString();
  const size_t size = bytes.size();
  bytes.append(kReadAhead, '\0');
  REQUIRE(batch.open({bytes.data(), size}, damage));
  std::vector<std::array<uint64_t, 3>> seen;
  std::vector<LaunchCall> room;
  for (const LaunchCall& call : batch.calls(PatternCalls(patterns), room))
    seen.push_back({call.path, call.sequence, call.launches});
  CHECK(seen == std::vector<std::array<uint64_t, 3>>{
                    {3, 105, 1}, {4, 104, 1}, {7, 500, 1}, {3, 505, 1}, {4, 504, 1}});
}

namespace {

struct Drawn {
  uint64_t sequence = 0;
  uint32_t path = 0;
  bool call = false, graph = false;
};

// The same launches, all named one by one.
flopinj::trace::LaunchBatch named(const std::vector<Drawn>& launches) {
  flopinj::trace::LaunchBatch b;
  for (const Drawn& launch : launches) {
    b.add_signature(1);
    for (const uint32_t value : {launch.path, 1U}) b.add_range_path_run(value);
    for (const uint64_t value : {launch.sequence, uint64_t{1}}) b.add_sequence_run(value);
    for (const uint32_t value : {launch.call ? 1U : 0U, 1U}) b.add_call_run(value);
    for (const uint32_t value : {launch.graph ? 1U : 0U, 1U}) b.add_graph_run(value);
    b.add_gap_ns(10), b.add_duration_delta_ns(0);
  }
  return b;
}

}  // namespace

TEST_CASE("patterns: their calls are those of the same launches named one by one") {
  std::mt19937 random(20261130);
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  for (int round = 0; round < 300; ++round) {
    PatternTable patterns;
    std::vector<PatternTable::Row> rows(1 + draw(12));
    for (uint32_t i = 0; i < rows.size(); ++i) {
      rows[i] = {1, 1 + draw(2), draw(2) * (1 + draw(2) * draw(5)), draw(2) == 0};
      REQUIRE(patterns.set(i + 1, rows[i]));
    }
    const PatternCalls pattern_calls(patterns);
    SequenceGroups of_patterns, of_named;
    DamageLog damage;
    for (uint32_t number = 0; number < 6; ++number) {
      flopinj::trace::LaunchBatch b;
      uint64_t last = 1000 + 40 * number;
      b.set_sequence_base(last);
      std::vector<Drawn> launches;
      std::vector<std::array<uint64_t, 5>> expected;
      const auto launch = [&](Drawn one) {
        one.graph = draw(8) == 0;
        for (const uint32_t value : {one.graph ? 1U : 0U, 1U}) b.add_graph_run(value);
        b.add_gap_ns(10), b.add_duration_delta_ns(0);
        launches.push_back(one);
        if (expected.empty() || expected.back()[0] != one.sequence ||
            expected.back()[1] != one.path || expected.back()[4] != (one.graph ? 1U : 0U))
          expected.push_back({one.sequence, one.path, 0, 0, one.graph ? 1U : 0U});
        ++expected.back()[2];
        expected.back()[3] += one.call ? 1 : 0;
      };
      for (uint32_t runs = 1 + draw(4); runs > 0; --runs) {
        const uint32_t first = draw(static_cast<uint32_t>(rows.size()) + 1);
        const uint32_t most = first == 0 ? 3 : static_cast<uint32_t>(rows.size()) + 1 - first;
        const uint32_t count = 1 + draw(most);
        b.add_pattern_run(first), b.add_pattern_run(count);
        for (uint32_t i = 0; i < count; ++i) {
          if (first > 0) {
            const PatternTable::Row& row = rows[first - 1 + i];
            const int step = static_cast<int>(row.sequence_step) - 1;  // zigzag
            if (step >= 0)
              last += static_cast<uint64_t>(step % 2 == 0 ? step / 2 : -(step + 1) / 2);
            launch({step >= 0 ? last : 0, row.path, row.call, false});
            continue;
          }
          const Drawn one{draw(2) * (900 + draw(9)), 1 + draw(2), draw(2) == 0, false};
          if (one.sequence != 0) last = one.sequence;
          b.add_signature(1);
          for (const uint32_t value : {one.path, 1U}) b.add_range_path_run(value);
          for (const uint64_t value : {one.sequence, uint64_t{1}}) b.add_sequence_run(value);
          for (const uint32_t value : {one.call ? 1U : 0U, 1U}) b.add_call_run(value);
          launch(one);
        }
      }
      const auto read = [&](const flopinj::trace::LaunchBatch& message, SequenceGroups& groups) {
        std::string bytes = message.SerializeAsString();
        const size_t size = bytes.size();
        bytes.append(kReadAhead, '\0');
        LaunchBatchReader batch;
        REQUIRE(batch.open({bytes.data(), size}, damage));
        groups.launches(batch, pattern_calls, damage);
        std::vector<std::array<uint64_t, 5>> seen;
        std::vector<LaunchCall> room;
        for (const LaunchCall& call : batch.calls(pattern_calls, room))
          seen.push_back(
              {call.sequence, call.path, call.launches, call.calls, call.graph ? 1U : 0U});
        return seen;
      };
      CHECK(read(b, of_patterns) == expected);
      CHECK(read(named(launches), of_named) == expected);
    }
    std::string groups_of_patterns, groups_of_named;
    for (const auto& message : of_patterns.take(damage))
      groups_of_patterns += message.SerializeAsString();
    for (const auto& message : of_named.take(damage))
      groups_of_named += message.SerializeAsString();
    CHECK(groups_of_patterns == groups_of_named);
    CHECK(!damage.partial());
  }
}

TEST_CASE("pattern runs that do not fit their batch: it is left out") {
  const std::vector<void (*)(flopinj::trace::LaunchBatch&)> faults = {
      [](auto& b) { b.set_pattern_run(1, 2); },
      [](auto& b) { b.set_pattern_run(1, 4); },
      [](auto& b) { b.set_pattern_run(1, 0xFFFFFFFF); },
      [](auto& b) { b.add_pattern_run(1); },
      [](auto& b) { b.add_pattern_run(1), b.add_pattern_run(0); },
      [](auto& b) { b.set_pattern_run(0, 0); },
      [](auto& b) { b.add_signature(1); },
      [](auto& b) { b.add_range_path_run(1), b.add_range_path_run(1); },
      [](auto& b) { b.add_sequence_run(1), b.add_sequence_run(3); },
      // A few bytes that stand for billions of launches.
      [](auto& b) {
        b.clear_gap_ns();
        b.clear_duration_delta_ns();
        b.set_pattern_run(1, 0x7FFFFFFF);
      },
      [](auto& b) {
        b.clear_gap_ns();
        b.clear_duration_delta_ns();
      },
  };
  for (const auto fault : faults) {
    TraceBuilder t = with_kernel();
    add_pattern(t);
    TracePacket p = pattern_batch();
    fault(*p.mutable_launch_batch());
    check_that_columns_are_refused(t, p);
  }
}

TEST_CASE("launches of rows that no pattern defines are unmeasured, not gone") {
  for (const uint32_t first : {2U, 4U, 1'000'000U, 0xFFFFFFFFU}) {
    TraceBuilder t = with_kernel();
    add_pattern(t);
    TracePacket p = pattern_batch();
    p.mutable_launch_batch()->set_pattern_run(0, first);
    t.add(p);
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    CHECK(balances(r));
    CHECK(r.total.launches == 3);
    CHECK(r.total.unmeasured == (first == 2 ? 1 : 3));
    CHECK(damage_of(r, Damage::kUndefinedId) == r.total.unmeasured);
    // A duration is told by its difference to the last one of its signature, which is lost.
    CHECK(r.total.time.ns == u128{first == 2 ? 12U : 18U});
  }
}

TEST_CASE("patterns whose columns do not fit, or far out of range, are refused") {
  using Pattern = flopinj::trace::Interned::Pattern;
  const std::vector<std::pair<void (*)(Pattern&), Damage>> faults = {
      {[](Pattern& p) { p.set_range_path_run(1, 5); }, Damage::kBadColumns},
      {[](Pattern& p) { p.set_range_path_run(1, 0xFFFFFFFF); }, Damage::kBadColumns},
      {[](Pattern& p) { p.set_range_path_run(1, 1); }, Damage::kBadColumns},
      {[](Pattern& p) { p.add_sequence_step_run(1), p.add_sequence_step_run(2); },
       Damage::kBadColumns},
      {[](Pattern& p) { p.set_first_row(0); }, Damage::kBadId},
      {[](Pattern& p) { p.set_first_row(0xFFFFFFFF); }, Damage::kBadId},
      {[](Pattern& p) { p.set_first_row(1U << 20); }, Damage::kBadId},
  };
  for (const auto& [fault, kind] : faults) {
    TraceBuilder t = with_kernel();
    add_pattern(t, fault);
    t.add(pattern_batch());
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    CHECK(damage_of(r, kind) >= 1);
    CHECK(r.total.launches == 3);
    CHECK(r.partial);
  }
}

TEST_CASE("times at the ends of their range do no harm") {
  TraceBuilder t = with_kernel();
  for (const uint64_t first :
       {uint64_t{0}, UINT64_MAX, uint64_t{1} << 63, (uint64_t{1} << 62) - 3}) {
    TracePacket p;
    auto& b = *p.mutable_launch_batch();
    TraceBuilder::fill(b, {{1, 5}, {1, 6}, {1, int64_t{1} << 50}, {1, 9}});
    b.set_stream(1);
    b.set_first_start_ns(first);
    b.set_gap_ns(3, INT64_MIN);
    t.add(p);
  }
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.launches == 16);
  CHECK(r.time.devices.at(0).placed + r.time.devices.at(0).unplaced == 16);
  CHECK_NOTHROW(json_of(r));
}

TEST_CASE("tallies of unequal length are left out") {
  TraceBuilder t = with_kernel();
  TracePacket p;
  p.mutable_tally_batch()->add_signature(1);
  p.mutable_tally_batch()->add_launches(5);
  t.add(p);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(damage_of(r, Damage::kBadColumns) == 1);
  CHECK(r.total.launches == 0);
}

TEST_CASE("columns in pieces and unpacked columns are read as protobuf allows") {
  TraceBuilder t = with_kernel();
  TracePacket a;
  TraceBuilder::fill(*a.mutable_launch_batch(), {{1, 5}});
  a.mutable_launch_batch()->set_stream(1);
  TracePacket b = a;
  a.set_sequence(7);
  // Two bodies of one message merge field by field on the wire: columns come in two pieces.
  std::string bodies = a.launch_batch().SerializeAsString() + b.launch_batch().SerializeAsString();
  TracePacket merged;
  REQUIRE(merged.mutable_launch_batch()->ParseFromString(bodies));
  REQUIRE(merged.launch_batch().signature_size() == 2);
  std::string raw = std::string(1, '\x0a') + static_cast<char>(bodies.size()) + bodies + "\x70\x08";
  t.add_raw(raw);
  t.skip_sequence(1);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.launches == 2);
  CHECK(to_decimal(r.total.flop) == "2");
  CHECK(r.damage.empty());
}

TEST_CASE("undefined ids make launches unmeasured, not vanish") {
  TraceBuilder t = with_kernel();
  t.launches({{99, 10}, {4'000'000'000, 10}, {0, 10}, {1, 10}});
  t.launches({{1, 10, 55}});  // path unknown: the work is known all the same
  t.launches({{1, 10, 0}}, 1,
             44);  // stream unknown: so is the device, and whose counters would serve
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(balances(r));
  CHECK(r.total.launches == 6);
  CHECK(r.total.unmeasured == 4);
  CHECK(r.ledger.unmeasured.size() >= 1);
  CHECK(damage_of(r, Damage::kUndefinedId) == 5);
  CHECK(r.total.time.ns == u128{60});
}

TEST_CASE("ids out of range are refused without taking memory") {
  TraceBuilder t = with_kernel();
  t.string(4'294'967'295U, "far");
  t.string(0, "none");
  t.string(1U << 22, "still far");
  t.stream(4'000'000'000U);
  t.end();
  CHECK(damage_of(reduce_bytes({t.bytes()}), Damage::kBadId) == 4);
}

TEST_CASE("range paths that are their own ancestors end") {
  TraceBuilder t = with_kernel();
  t.path(5, 5, "self");
  t.path(7, 8, "a");
  t.path(8, 7, "b");
  t.path(7, 8, "a");  // defined anew below its own child
  for (int i = 0; i < 2000; ++i) t.path(9, 9, "deeper");
  t.launches({{1, 1, 5}, {1, 1, 7}, {1, 1, 8}, {1, 1, 9}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.launches == 4);
  CHECK(to_decimal(r.total.flop) == "4");
  CHECK(damage_of(r, Damage::kParentLoop) > 0);
  CHECK(json_of(r)["ranges"].size() < 1000);
}

TEST_CASE("impossible counter values are thrown away") {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e30}) {
    TraceBuilder t = started();
    t.kernel(1, "k", 11);
    t.samples(1, 1, {sass(1, 0, bad), sass(1, 0, 3)});
    t.launches({{1}});
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    CHECK(damage_of(r, Damage::kBadCounter) == 1);
    CHECK(to_decimal(r.total.flop) == "7");
    CHECK(r.partial);
  }
}

TEST_CASE("sample columns that do not fit their group are left out") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {{1, 2}});
  t.samples(9, 1, {{1, 2}});  // group 9 is not defined
  t.launches({{1}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(damage_of(r, Damage::kBadColumns) == 1);
  CHECK(damage_of(r, Damage::kUndefinedId) == 1);
  CHECK(r.total.unmeasured == 1);
}

TEST_CASE("sums that overflow are held and said") {
  TraceBuilder t = with_kernel();
  t.samples(1, 1, {sass(9.0e18, 9.0e18, 9.0e18)});
  t.tally({{1, UINT64_MAX, 0, 0}, {1, UINT64_MAX, UINT64_MAX, UINT64_MAX}, {1, 5, 1, UINT64_MAX}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.launches == UINT64_MAX);
  CHECK(damage_of(r, Damage::kOverflow) > 0);
  CHECK(damage_of(r, Damage::kBadTime) == 1);
  CHECK(r.partial);
  CHECK_NOTHROW(json_of(r));
}

TEST_CASE("a negative duration leaves the launch untimed") {
  TraceBuilder t = with_kernel();
  TracePacket p;
  TraceBuilder::fill(*p.mutable_launch_batch(), {{1, 5}, {1, 6}});
  p.mutable_launch_batch()->set_stream(1);
  p.mutable_launch_batch()->set_duration_delta_ns(1, -100);
  t.add(p);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(damage_of(r, Damage::kBadTime) == 1);
  CHECK(r.total.launches == 2);
  CHECK(r.total.time.ns == u128{10});  // the other stands with the mean
}

TEST_CASE("bodies that are no messages are counted") {
  TraceBuilder t = with_kernel();
  for (int field = 1; field <= 11; ++field) {
    std::string raw;
    raw.push_back(static_cast<char>(field << 3 | 2));
    raw += std::string("\x03\xff\xff\xff", 4);
    raw += "\x70" + std::string(1, static_cast<char>(7 + field));
    t.add_raw(raw);
    t.skip_sequence(1);
  }
  t.launches({{1}});
  const Report r = reduce_bytes({t.bytes()});
  CHECK(damage_of(r, Damage::kMalformedPacket) + damage_of(r, Damage::kBadColumns) >= 10);
  CHECK(r.partial);
}

TEST_CASE("unknown packets and fields of a newer minor version are passed over") {
  TraceBuilder t = with_kernel();
  t.add_raw(std::string("\xa2\x01\x02hi\x70\x08", 7));  // field 20
  t.skip_sequence(1);
  t.launches({{1}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.damage.empty());
  CHECK(r.total.launches == 1);
}

TEST_CASE("names cannot act on a terminal or break JSON") {
  TraceBuilder t = with_kernel();
  const std::string evil =
      "\x1b]0;title\x07\x1b[2J\xc2\x9b"
      "31m\xe2\x80\xae\r\n\t\xff\"</script>";
  t.kernel(2, evil, 12);
  t.path(1, 0, evil);
  t.diagnostic("code", "\x1b[31mred");
  t.samples(1, 2, {sass(5, 0, 0)});
  t.launches({{2, 7, 1}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  for (const std::string& out : {text_of(r), json_text_of(r)}) {
    for (const char c : out) CHECK((c == '\n' || (static_cast<uint8_t>(c) >= 0x20 && c != 0x7f)));
    CHECK(out.find("\xc2\x9b") == std::string::npos);
    CHECK(out.find("\xe2\x80\xae") == std::string::npos);
  }
  CHECK(text_of(r).find("\\x1B[2J") != std::string::npos);
}

TEST_CASE("strings that are not UTF-8 do not cost their packet") {
  TraceBuilder t = with_kernel();
  // Diagnostic, as a recorder without protobuf would write it: code "c", message with a byte that
  // is not UTF-8.
  t.add_raw(
      std::string("\x3a\x0b\x08\x01\x12\x01"
                  "c"
                  "\x1a\x04"
                  "ab\xff"
                  "d"
                  "\x70\x08",
                  15));
  t.skip_sequence(1);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.damage.empty());
  REQUIRE(r.traces.at(0).diagnostics.size() == 1);
  CHECK(r.traces[0].diagnostics[0].message() == "ab?d");
}

TEST_CASE("hostile: of a device's UUID the 16 bytes are shown that CUDA's have") {
  TraceBuilder t = started();
  TracePacket packet;
  packet.mutable_device()->set_id(1);
  packet.mutable_device()->set_uuid("\x0f" + std::string(14, '1') +
                                    "\xa0"
                                    "and more");
  t.add(packet);
  t.end();
  const auto devices = json_of(reduce_bytes({t.bytes()}))["devices"];
  REQUIRE(devices.size() == 1);
  CHECK(devices[0]["uuid"] == "0f3131313131313131313131313131a0");
}
