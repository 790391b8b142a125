// Traces with right check sums and wrong content: counted as damage, bounded, and nothing is taken
// from them.
#include <cmath>
#include <limits>

#include "catch.h"
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

}  // namespace

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
    t.add(p);
    t.launches({{1}});
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    CHECK(damage_of(r, Damage::kBadColumns) == 1);
    CHECK(r.total.launches == 1);
    CHECK(r.partial);
  }
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
  std::ostringstream json;
  write_json(json, r);
  for (const std::string& out : {text_of(r), json.str()}) {
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
