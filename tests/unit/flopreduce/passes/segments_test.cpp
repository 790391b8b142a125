// Segments that pass one cuts: all packets of each trace, once and in order, in parts of one size.
#include "passes/packets/segments.h"

#include <map>
#include <random>
#include <vector>

#include "catch.h"
#include "support/effort.h"

using namespace flopinj::reduce;

TEST_CASE("segments: all packets of a trace, about equal, and their number divides by four") {
  constexpr uint64_t kMiB = 1U << 20;
  const auto input = Input::from_memory("trace", "", 0);
  std::mt19937_64 random(1);
  const int rounds = flopinj::test::effort(20, 5);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const auto traces = static_cast<uint32_t>(1 + random() % 3);
    const bool mixed = random() % 2 == 0;  // else one trace after another
    const size_t packets = 1 + random() % 2000;
    Segments segments;
    std::map<uint32_t, std::vector<uint64_t>> begins;  // of packets, by trace
    uint64_t at = 0;
    for (size_t i = 0; i < packets; ++i) {
      const auto trace = static_cast<uint32_t>(mixed && random() % 50 == 0 ? random() % traces
                                                                           : i * traces / packets);
      const bool of_none = random() % 200 == 0;
      Packet packet;
      packet.sequence = static_cast<uint32_t>(i + 1);
      packet.offset = at;
      packet.end = at += 1 + random() % (kMiB / 8);
      CHECK(segments.note(0, *input, of_none ? kNoIndex : trace, 0, packet));
      if (!of_none) begins[trace].push_back(packet.offset);
    }
    segments.end();
    size_t covered = 0;
    uint32_t last = 0;
    for (const Segment& segment : segments.all()) {
      CHECK(segment.trace >= last);
      last = segment.trace;
      const auto& of = begins[segment.trace];
      const auto first = std::ranges::lower_bound(of, segment.begin);
      const auto end = std::ranges::lower_bound(of, segment.end);
      CHECK((first != of.end() && *first == segment.begin));
      covered += static_cast<size_t>(end - first);
      CHECK(segment.end - segment.begin <= Segments::kBytes + kMiB);
    }
    size_t all = 0;
    for (const auto& [trace, of] : begins) all += of.size();
    CHECK(covered == all);
    // Packets of others lie in none of them.
    for (const auto& [trace, of] : begins)
      for (const Segment& segment : segments.all())
        if (segment.trace != trace) {
          const auto inside = std::ranges::lower_bound(of, segment.begin);
          CHECK((inside == of.end() || *inside >= segment.end));
        }
  }
}

TEST_CASE("segments: of one trace without others, as many bytes for each of four threads") {
  constexpr uint64_t kMiB = 1U << 20;
  const auto input = Input::from_memory("trace", "", 0);
  for (const uint64_t size : {1 * kMiB, 5 * kMiB, 17 * kMiB, 38 * kMiB, 100 * kMiB}) {
    CAPTURE(size);
    Segments segments;
    constexpr uint64_t kPacket = kMiB / 16;
    for (uint64_t at = 0; at < size; at += kPacket) {
      Packet packet;
      packet.sequence = static_cast<uint32_t>(at / kPacket + 1);
      packet.offset = at;
      packet.end = at + kPacket;
      REQUIRE(segments.note(0, *input, 0, 0, packet));
    }
    segments.end();
    const auto& all = segments.all();
    CHECK(all.front().begin == 0);
    CHECK(all.back().end == size);
    for (size_t i = 1; i < all.size(); ++i) CHECK(all[i].begin == all[i - 1].end);
    if (size <= Segments::kBytes) {
      CHECK(all.size() == 1);
      continue;
    }
    CHECK(all.size() % 4 == 0);
    uint64_t most = 0, least = size;
    for (const Segment& segment : all) {
      most = std::max(most, segment.end - segment.begin);
      least = std::min(least, segment.end - segment.begin);
    }
    CHECK(most <= Segments::kBytes);
    CHECK(most - least <= kMiB);
  }
}
