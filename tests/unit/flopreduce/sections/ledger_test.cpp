// The ledger's tables: what became of every launch, by device and in total, and why.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// Two devices of one chip. On the first "gemm" runs 10 times, 4 of them in graphs, was read twice,
// and 5 launches of "lost" were never read; 3 launches were dropped. On the second "gemm" runs 7
// times, unread; its ledger has a launch that it neither recorded nor dropped.
std::string two_devices() {
  TraceBuilder t = started();
  t.device(2, "GH100", "Other GPU", 132);
  t.stream(2, 2);
  t.kernel(1, "gemm", 11);
  t.kernel(2, "lost", 12);
  t.samples(1, 1, {sass(0, 0, 64), sass(0, 0, 64)});
  std::vector<TraceBuilder::Launch> first(15);
  for (size_t i = 0; i < first.size(); ++i)
    first[i] = {.signature = i < 10 ? 1U : 2U, .duration_ns = 100, .graph = i < 4};
  t.launches(first);
  t.launches(std::vector<TraceBuilder::Launch>(7, {.signature = 1, .duration_ns = 100}), 1, 2);
  flopinj::trace::TracePacket packet;
  auto& ledger = *packet.mutable_ledger();
  const uint64_t counts[][3] = {{18, 15, 3}, {9, 7, 1}};  // launches, recorded, dropped
  for (uint32_t d = 0; d < 2; ++d) {
    auto& device = *ledger.add_device();
    device.set_device(d + 1);
    device.set_launches(counts[d][0]);
    device.set_recorded(counts[d][1]);
    device.set_dropped(counts[d][2]);
  }
  const auto add = [](auto& reason, const char* name, uint64_t count) {
    reason.set_reason(name);
    reason.set_count(count);
  };
  add(*ledger.add_dropped(), "ring_full", 4);
  add(*ledger.add_duplicate(), "graph_and_kernel", 2);
  add(*ledger.add_unseen(), "device_launch", 6);
  t.add(packet);
  t.end();
  return t.bytes();
}

void check_fates(const nlohmann::json& row, std::array<uint64_t, 5> fates) {
  INFO(row);
  size_t at = 0;
  for (const char* key : {"launches", "measured", "extrapolated", "unmeasured", "dropped"})
    CHECK(row[key] == fates[at++]);
}

}  // namespace

TEST_CASE("each launch has one fate, on its device and in total") {
  const Report r = reduce_bytes({two_devices()});
  const auto json = json_of(r);
  const auto& ledger = json["ledger"];
  REQUIRE(ledger.size() == 3);
  const std::string process = r.traces[0].name;
  CHECK(ledger[0]["device"] == process + " GPU 0 Test GPU");
  CHECK(ledger[1]["device"] == process + " GPU 1 Other GPU");
  CHECK(ledger[2]["device"] == "all devices");
  check_fates(ledger[0], {18, 2, 8, 5, 3});
  check_fates(ledger[1], {8, 0, 7, 0, 1});
  check_fates(ledger[2], {26, 2, 15, 5, 4});
  check_fates(json["devices"][0], {18, 2, 8, 5, 3});
  check_fates(json["devices"][1], {8, 0, 7, 0, 1});
  // These columns are known for all devices together, and not for one.
  CHECK(ledger[0]["extrapolated_in_graphs"].is_null());
  CHECK(ledger[1]["balanced"].is_null());
  CHECK(ledger[2]["measured_in_graphs"] == 0);
  CHECK(ledger[2]["extrapolated_in_graphs"] == 4);
  CHECK(ledger[2]["counted_by_graphs"] == 0);
  CHECK(ledger[2]["duplicates_removed"] == 2);
  CHECK(ledger[2]["balanced"] == false);
  REQUIRE(json["ledger_disagreements"].size() == 1);
  CHECK(json["ledger_disagreements"][0]["disagreement"] ==
        process + " device 1: the trace's ledger has 9 launches made, but 8 recorded or dropped");
}

TEST_CASE("launches without a count and lost launches have their reasons, for people too") {
  const Report r = reduce_bytes({two_devices()});
  const auto json = json_of(r);
  const std::tuple<const char*, const char*, uint64_t> reasons[] = {
      {"unmeasured", "not_sampled:sass", 5},
      {"dropped", "ring_full", 4},
      {"duplicate", "graph_and_kernel", 2},
      {"unseen", "device_launch", 6}};
  REQUIRE(json["ledger_reasons"].size() == std::size(reasons));
  size_t at = 0;
  for (const auto& [fate, reason, launches] : reasons) {
    const auto& row = json["ledger_reasons"][at++];
    CHECK(row["fate"] == fate);
    CHECK(row["reason"] == reason);
    CHECK(row["launches"] == launches);
  }
  const std::string text = text_of(r);
  INFO(text);
  for (const char* line :
       {"  extrapolated: 4  in graphs, from eager launches of the same signature\n",
        "  unmeasured: 5  not_sampled:sass\n", "  dropped: 4  ring_full\n",
        "  duplicate records removed: 2  graph_and_kernel\n",
        "  launches that may have run more, unseen: 6  device_launch\n", "  does not balance: "})
    CHECK(text.find(line) != text.npos);
}

TEST_CASE("people see the ledger of one device once, and of very many the first and their number") {
  for (const uint32_t devices : {1U, 2U, 32U, 33U, 40U}) {
    TraceBuilder t = started();
    t.kernel(1, "gemm", 11);
    t.samples(1, 1, {sass(0, 0, 64)});
    for (uint32_t d = 1; d <= devices; ++d) {
      if (d > 1) t.device(d);
      if (d > 1) t.stream(d, d);
      t.launches({{.signature = 1, .duration_ns = 100}}, 1, d);
    }
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    INFO(devices);
    CHECK(json_of(r)["ledger"].size() == (devices == 1 ? 1 : devices + 1));
    const std::string text = text_of(r);
    const std::string section = text.substr(text.find("\nLedger\n"));
    size_t shown = 0;
    for (size_t at = 0; (at = section.find(" GPU ", at + 1)) != section.npos;) ++shown;
    CHECK(shown >= std::min(devices == 1 ? 0U : devices, 32U));
    const bool more = section.find("  and " + std::to_string(devices - 32) +
                                   " more devices: --format json") != section.npos;
    CHECK(more == (devices > 32));
  }
}
