// Launches of several streams, written a batch at a time, against a stable sort of all of them.
#include "passes/rows/nearly_in_order.h"

#include <algorithm>
#include <random>
#include <vector>

#include "catch.h"
#include "support/effort.h"

using namespace flopinj::reduce;

namespace {

constexpr size_t kKept = 256;

struct Seen {
  std::vector<LaunchInTime> in_order;
  size_t too_late = 0;
  void launches(std::span<const LaunchInTime> some) {
    in_order.insert(in_order.end(), some.begin(), some.end());
  }
  void late(const LaunchInTime&) { ++too_late; }
};

// A stream writes up to `most` launches at a time, all after they ran: fewer than kKept launches
// come before one that began sooner. Each has its place among all as its row.
std::vector<LaunchInTime> written(std::mt19937_64& random, size_t streams, size_t most) {
  struct Stream {
    uint64_t now = 0;
    std::vector<LaunchInTime> batch;
  };
  std::vector<Stream> all(streams);
  std::vector<LaunchInTime> launches;
  uint64_t now = 0;
  const auto write = [&](Stream& stream) {
    for (LaunchInTime launch : stream.batch) {
      launch.row = static_cast<uint32_t>(launches.size());
      launches.push_back(launch);
    }
    stream.batch.clear();
  };
  for (size_t i = 0; i < 20 * kKept; ++i) {
    // The last stream has few launches, as that of collectives has.
    const bool rare = streams > 1 && random() % 26 == 0;
    Stream& stream = all[rare ? streams - 1 : random() % std::max<size_t>(1, streams - 1)];
    now += random() % 3;
    stream.batch.push_back({now, random() % 5, 0, 0, 0, 0, 0});
    if (stream.batch.size() >= most) write(stream);
    if (i % (kKept / 4) == 0)
      for (Stream& each : all) write(each);
  }
  for (Stream& each : all) write(each);
  return launches;
}

}  // namespace

TEST_CASE("launches in time: in order, equals as they came, one by one or many at a time") {
  std::mt19937_64 random(1);
  SpareLaunches spare;
  const int rounds = flopinj::test::effort(40, 8);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const auto launches = written(random, 1 + random() % 4, 1 + random() % 40);
    auto expected = launches;
    std::ranges::stable_sort(expected, {}, &LaunchInTime::begin_ns);
    const bool many = random() % 2 == 0;
    Seen seen;
    NearlyInOrder in_order(kKept, &spare);  // with the memory of the round before
    for (size_t at = 0; at < launches.size();) {
      if (!many) {
        in_order.add(launches[at++], seen);
        continue;
      }
      const size_t some = std::min<size_t>(launches.size() - at, 1 + random() % kKept);
      const size_t used = random() % (some + 1);  // of the room that is asked for
      in_order.add(
          some,
          [&](LaunchInTime* to) {
            std::copy_n(launches.begin() + static_cast<std::ptrdiff_t>(at), used, to);
            return used;
          },
          seen);
      at += used;
    }
    in_order.end(seen);
    CHECK(seen.too_late == 0);
    const auto same = [](const LaunchInTime& a, const LaunchInTime& b) { return a.row == b.row; };
    CHECK(std::ranges::equal(seen.in_order, expected, same));
  }
}
