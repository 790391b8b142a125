// Time of a device split among its kernels: against the same worked out nanosecond by nanosecond.
#include "passes/rows/time_split.h"

#include <cmath>
#include <memory>
#include <random>

#include "catch.h"
#include "passes/rows/device_split.h"
#include "support/effort.h"
#include "support/lost_sums.h"

using namespace flopinj::reduce;
using flopinj::test::adds_up;

namespace {

using enum LostLine;
constexpr double kFs = 1e6;

struct Kernel {
  uint64_t begin = 0, length = 0;
  LaunchWorth worth;
  size_t place = 0;
  uint32_t step = 0;
  bool measured = false;
  bool runs_at(uint64_t ns) const { return begin <= ns && ns < begin + length; }
  uint64_t kernel_ns() const {
    return measured && worth.mean_ns ? std::min(length, *worth.mean_ns) : length;
  }
  KernelClass of(uint64_t ns) const {
    return ns < begin + kernel_ns() ? worth.of : KernelClass::kSlowed;
  }
  LaunchInTime launch(uint32_t row) const { return {begin, length, row, step, 0, 0, measured}; }
  LaunchGuess guess() const {
    return {worth.of == KernelClass::kCommunication, worth.work_fs == 0};
  }
  // Of a kernel that is only counted where it runs alone.
  bool is_faster_than_its_roof() const {
    const bool roofs = worth.of == KernelClass::kMatrix || worth.of == KernelClass::kOther;
    return !measured && (roofs ? worth.blocks_fs : worth.work_fs) > length * kFsInNs;
  }
};

struct Expected {
  std::vector<std::array<double, kLostLines>> places;
  std::array<double, kLostLines> all{};
  std::array<double, kWorkClasses> excess{};
  double hidden = 0;
  void add(size_t place, LostLine line, double fs) {
    places[place][place_of(line)] += fs;
    all[place_of(line)] += fs;
  }
};

struct Copy {
  uint64_t begin = 0, length = 0;
  bool runs_at(uint64_t ns) const { return begin <= ns && ns < begin + length; }
};
// Some beside kernels, some alone, some beside each other.
std::vector<Copy> random_copies(std::mt19937& random) {
  std::vector<Copy> copies(random() % 12);
  uint64_t at = 0;
  for (Copy& copy : copies) copy = {at += random() % 40, random() % 30};
  return copies;
}

// Straight from what the header says, one nanosecond after another.
Expected by_nanosecond(const std::vector<Kernel>& kernels, size_t places, uint64_t begin,
                       uint64_t end) {
  Expected out;
  out.places.resize(places);
  for (uint64_t ns = begin; ns < end; ++ns) {
    std::vector<const Kernel*> run;
    auto of = KernelClass::kSlowed;
    bool communication = false;
    for (const Kernel& k : kernels)
      if (k.runs_at(ns)) {
        run.push_back(&k);
        of = std::min(of, k.of(ns));
        communication = communication || k.of(ns) == KernelClass::kCommunication;
      }
    if (run.empty()) continue;
    if (communication && of != KernelClass::kCommunication) out.hidden += kFs;
    double work = 0, memory = 0, blocks = 0, mine = 0;
    for (const Kernel* k : run) {
      if (k->of(ns) == of) ++mine;
      if (k->of(ns) == KernelClass::kSlowed) continue;
      const auto rate = [&](uint64_t fs) {
        return static_cast<double>(fs) / static_cast<double>(k->kernel_ns());
      };
      out.add(k->place, k->worth.work_line, rate(k->worth.work_fs - k->worth.padding_fs));
      out.add(k->place, kPadding, rate(k->worth.padding_fs));
      work += rate(k->worth.work_fs);
      if (k->of(ns) != of) continue;
      memory += rate(k->worth.memory_fs - k->worth.work_fs);
      blocks += rate(k->worth.blocks_fs - k->worth.memory_fs);
    }
    if (work > kFs) {
      out.excess[static_cast<size_t>(of)] += work - kFs;
      continue;
    }
    double rest = kFs - work;
    memory = std::min(memory, rest);
    blocks = std::min(blocks, rest - memory);
    for (const Kernel* k : run) {
      if (k->of(ns) != of) continue;
      const auto lose = [&](LostLine line, double fs) { out.add(k->place, line, fs / mine); };
      switch (of) {
        case KernelClass::kMatrix:
          lose(kMatrixMemory, memory);
          lose(kMatrixBlocks, blocks);
          lose(kMatrixBelowRoof, rest - memory - blocks);
          break;
        case KernelClass::kOther:
          lose(kOtherMemory, memory);
          lose(kOtherBelowRoof, rest - memory);
          break;
        case KernelClass::kInteger:
          lose(kInteger, rest);
          break;
        case KernelClass::kUncounted:
          lose(kUncounted, rest);
          break;
        case KernelClass::kCommunication:
          lose(kCommunication, rest);
          break;
        case KernelClass::kSlowed:
          lose(kProfiler, rest);
          break;
      }
    }
  }
  return out;
}

// Kernels of all classes, most of them short, some within others; nearly no work is beyond peak.
std::vector<Kernel> random_kernels(std::mt19937& random, size_t places, size_t at_most = 12) {
  const auto below = [&](uint64_t most) { return random() % most; };
  std::vector<Kernel> kernels(1 + below(at_most));
  uint32_t step = 0;
  uint64_t at = 0;
  for (Kernel& k : kernels) {
    at += below(3) == 0 ? below(40) : 0;
    step += below(4) == 0 ? 1 : 0;
    k = {at, below(30), {}, below(places), step, below(8) == 0};
    k.worth.of = static_cast<KernelClass>(below(kWorkClasses));
    const bool communication = k.worth.of == KernelClass::kCommunication;
    if (communication && below(3) == 0) k.length += below(200);
    const uint64_t begun = k.begin;
    if (k.measured && below(4) != 0) k.worth.mean_ns = 1 + below(k.length + 4);
    const uint64_t took = k.kernel_ns();
    constexpr std::array kWork{kRecompute, kOtherFlop, kModel};
    k.worth.work_line = kWork[below(3)];
    const bool counted = k.worth.of == KernelClass::kMatrix || k.worth.of == KernelClass::kOther;
    if (counted) k.worth.work_fs = below(1'000'000) * took / 2;
    k.worth.padding_fs = below(2) == 0 ? k.worth.work_fs / 3 : 0;
    k.worth.memory_fs = k.worth.work_fs + (counted ? below(1'000'000) * took / 2 : 0);
    k.worth.blocks_fs = k.worth.memory_fs;
    if (k.worth.of == KernelClass::kMatrix) k.worth.blocks_fs += below(500'000) * took;
    at = begun + (communication ? 0 : below(30));
  }
  // Communication that begins and ends beside any of them.
  for (size_t more = below(2) == 0 ? below(4) : 0; more > 0; --more) {
    Kernel k{below(at + 1), below(120), {}, below(places), 0, false};
    k.worth.of = KernelClass::kCommunication;
    kernels.push_back(k);
  }
  std::ranges::stable_sort(kernels, {}, &Kernel::begin);
  for (size_t i = 1; i < kernels.size(); ++i)
    kernels[i].step = std::max(kernels[i].step, kernels[i - 1].step);
  return kernels;
}

u128 sum(const LostFs& fs) {
  u128 all = 0;
  for (const u128 line : fs) all += line;
  return all;
}

}  // namespace

TEST_CASE("time split: as by nanoseconds, and it adds up") {
  constexpr size_t kPlaces = 3;
  constexpr auto kRuns = flopinj::test::effort(3000U, 300U);
  size_t useless = 0;
  for (uint32_t seed = 0; seed < kRuns; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::vector<Kernel> kernels = random_kernels(random, kPlaces);
    std::array<LostTime, kPlaces> places{};
    // Every other one is told the worths when it has seen all launches.
    LogRoom room(size_t{1} << 20);
    const bool later = seed % 2 == 1;
    TimeSplit split(later ? &room : nullptr);
    // Of two in three all counts, of the others what lies in some window.
    uint64_t from = 0, to = UINT64_MAX, end = 0;
    if (seed % 3 == 2) {
      from = random() % 60;
      to = from + random() % 200;
      split.only(from, to);
    }
    const std::vector<Copy> copies = random_copies(random);
    // In one span, where kernels that run alone are only counted; then one by one.
    std::array<LostTime, kPlaces> places_one_by_one{};
    TimeSplit one_by_one;
    if (seed % 3 == 2) one_by_one.only(from, to);
    std::vector<LaunchInTime> launches;
    for (const Copy& copy : copies) launches.push_back(LaunchInTime::copy(copy.begin, copy.length));
    for (const Kernel& k : kernels) {
      const uint32_t row = split.add_row(k.guess());
      if (!later) split.set_worth(row, k.worth, places[k.place]);
      CHECK(one_by_one.add_row(k.guess()) == row);
      one_by_one.set_worth(row, k.worth, places_one_by_one[k.place]);
      launches.push_back(k.launch(row));
      if (k.begin < to) end = std::max(end, k.begin + k.length);
    }
    std::ranges::stable_sort(launches, {}, &LaunchInTime::begin_ns);
    split.launches(launches);
    for (const LaunchInTime& launch : launches) one_by_one.launch(launch);
    split.finish();
    one_by_one.finish();
    if (later) {
      for (uint32_t row = 0; row < kernels.size(); ++row)
        split.set_worth(row, kernels[row].worth, places[kernels[row].place]);
      if (!split.value()) {
        CHECK(std::ranges::any_of(kernels, &Kernel::is_faster_than_its_roof));
        ++useless;
        continue;
      }
    }
    for (size_t i = 0; i < kPlaces; ++i) {
      CHECK(places[i].fs == places_one_by_one[i].fs);
      CHECK(places[i].beside_fs == places_one_by_one[i].beside_fs);
    }
    CHECK(split.hidden_fs() == one_by_one.hidden_fs());
    CHECK(split.excess_fs() == one_by_one.excess_fs());
    end = std::min(end, to);
    // Copies run where no kernel does: between the first one and the last one, and outside.
    uint64_t copied = 0, at_the_edges = 0;
    for (uint64_t ns = from; ns < std::min<uint64_t>(to, 2000); ++ns) {
      const auto runs = [&](const auto& one) { return one.runs_at(ns); };
      const bool is = std::ranges::any_of(copies, runs);
      const bool inside = split.any() && split.begin_ns() <= ns && ns < end;
      if (is && !inside) ++at_the_edges;
      if (is && inside && std::ranges::none_of(kernels, runs)) ++copied;
    }
    CHECK(split.edge_copies_ns() == at_the_edges);
    if (split.any()) CHECK(split.end_ns() == end);
    Expected expected = by_nanosecond(kernels, kPlaces, from, end);
    // What takes no time at all has its work nonetheless.
    for (const Kernel& k : kernels) CHECK((k.length > 0 || k.worth.work_fs == 0));
    LostTime all;
    for (size_t i = 0; i < kPlaces; ++i) {
      for (size_t line = place_of(kCommunication); line < kLostLines; ++line)
        CHECK(std::fabs(static_cast<double>(places[i].fs[line]) - expected.places[i][line]) < 200);
      all.add(places[i]);
    }
    CHECK(all[kIdleCopies] == copied * u128{kFsInNs});
    u128 excess = 0;
    for (size_t of = 0; of < kWorkClasses; ++of) {
      CHECK(std::fabs(static_cast<double>(split.excess_fs()[of]) - expected.excess[of]) < 200);
      excess += split.excess_fs()[of];
    }
    CHECK(static_cast<double>(split.hidden_fs()) == expected.hidden);
    // To the last femtosecond.
    const uint64_t span = split.any() ? end - split.begin_ns() : 0;
    CHECK(sum(all.fs) == u128{span} * kFsInNs + excess);
    if (split.any()) CHECK(split.begin_ns() >= from);
    LostTime of_steps;
    for (const TimeSplit::Step& step : split.steps()) of_steps.add(step.time);
    CHECK(of_steps.fs == all.fs);
  }
  CHECK(useless < kRuns / 4);
}

namespace {

// Launches and copies as they come, nearly in order, and what each has in a split.
struct Arrival {
  LaunchInTime launch{};  // its row is that of kernels
  bool pauses = false;
};

std::vector<Arrival> random_arrivals(std::mt19937& random, std::vector<Kernel>& kernels,
                                     size_t kept) {
  std::vector<Arrival> all;
  uint64_t later = 1000;
  for (Kernel& k : kernels) {
    if (random() % 16 == 0) later += random() % 700;
    k.begin += later;
    const auto row = static_cast<uint32_t>(&k - kernels.data());
    const uint32_t called = random() % 3 == 0 ? 1 + random() % 4 : 0;
    LaunchInTime launch = k.launch(row);
    launch.called_before = called;
    all.push_back({launch, called != 0 && random() % 2 == 0});
    if (random() % 8 == 0)
      all.push_back({LaunchInTime::copy(k.begin + random() % 30, random() % 40), false});
  }
  const auto begin = [](const Arrival& arrival) { return arrival.launch.begin_ns; };
  std::ranges::stable_sort(all, {}, begin);
  for (size_t i = 0; kept > 1 && i + 1 < all.size(); ++i)
    if (random() % 4 == 0) std::swap(all[i], all[i + 1]);
  return all;
}

RowPlace place_of(const Kernel& kernel, const std::vector<Kernel>& kernels) {
  return {.signature = static_cast<uint32_t>(&kernel - kernels.data()),
          .path = static_cast<uint32_t>(kernel.place)};
}

// A part of the arrivals. `log`: nothing is known of launches' worth.
void read_part(std::span<const Arrival> arrivals, const std::vector<Kernel>& kernels, bool log,
               DeviceSplit& part) {
  part.split.clock_error(5);
  std::vector<uint32_t> rows(kernels.size(), UINT32_MAX);
  for (const Arrival& arrival : arrivals) {
    LaunchInTime launch = arrival.launch;
    if (launch.row != LaunchInTime::kCopy) {
      const Kernel& kernel = kernels[launch.row];
      uint32_t& row = rows[launch.row];
      const RowPlace place = place_of(kernel, kernels);
      if (row == UINT32_MAX && log) row = part.add_row(place, kernel.guess());
      if (row == UINT32_MAX) row = part.add_row(place, kernel.worth);
      if (arrival.pauses) launch.set_pause(part.split.add_pause(launch, 7, 10, 90));
      launch.row = row;
    }
    part.add(launch);
  }
}

}  // namespace

TEST_CASE("device split: parts come to what one reading does, and to what nanoseconds do") {
  constexpr size_t kPlaces = 3;
  size_t seams = 0, taken = 0, unclean = 0, useless = 0;
  constexpr auto kRuns = flopinj::test::effort(4000U, 400U);
  for (uint32_t seed = 0; seed < kRuns; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const size_t kept = 1 + random() % 4;
    std::vector<Kernel> kernels = random_kernels(random, kPlaces, 80);
    const std::vector<Arrival> arrivals = random_arrivals(random, kernels, kept);

    DeviceSplit whole(arrivals.size() + 1, true);
    read_part(arrivals, kernels, false, whole);
    whole.end();

    LogRoom room(size_t{1} << 20);
    const bool log = seed % 2 == 1;
    const auto new_part = [&](bool first) {
      return std::make_unique<DeviceSplit>(kept, first, nullptr, log ? &room : nullptr);
    };
    auto all = new_part(true);
    bool first = true;
    for (size_t at = 0; at < arrivals.size();) {
      const size_t size = std::min<size_t>(1 + random() % 60, arrivals.size() - at);
      auto part = new_part(first);
      read_part(std::span(arrivals).subspan(at, size), kernels, log, *part);
      at += size;
      if (std::exchange(first, false)) {
        all = std::move(part);
      } else if (all->take(*part)) {
        ++taken;
      } else {
        ++seams;
        all = std::move(part);
      }
    }
    all->end();
    const auto worth_of = [&](const RowPlace& place) { return kernels[place.signature].worth; };
    constexpr uint64_t kClockErrorNs = 5;
    if (log && !all->value(worth_of, kClockErrorNs)) {
      CHECK(std::ranges::any_of(kernels, &Kernel::is_faster_than_its_roof));
      ++useless;
      continue;
    }
    // Where there is but one part some may be late as well.
    if (!all->clean() || all->split.unplaced_fs() > 0 || all->split.lost_copies()) {
      ++unclean;
      continue;
    }
    for (size_t i = 0; i < kPlaces; ++i) {
      const uint64_t place = DeviceSplit::key(static_cast<uint32_t>(i), 0);
      CHECK(all->places[place].fs == whole.places[place].fs);
      CHECK(all->places[place].beside_fs == whole.places[place].beside_fs);
    }
    const TimeSplit& split = all->split;
    CHECK(split.hidden_fs() == whole.split.hidden_fs());
    CHECK(split.excess_fs() == whole.split.excess_fs());
    CHECK(split.begin_ns() == whole.split.begin_ns());
    CHECK(split.end_ns() == whole.split.end_ns());
    CHECK(split.edge_copies_ns() == whole.split.edge_copies_ns());
    CHECK(split.host_ns() == whole.split.host_ns());
    const auto steps = split.steps(), steps_of_whole = whole.split.steps();
    REQUIRE(steps.size() == steps_of_whole.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      CHECK(steps[i].first == steps_of_whole[i].first);
      CHECK(steps[i].time.fs == steps_of_whole[i].time.fs);
    }
    if (seed % 8 != 0) continue;
    const Expected expected = by_nanosecond(kernels, kPlaces, 0, split.end_ns());
    for (size_t i = 0; i < kPlaces; ++i)
      for (size_t line = place_of(kCommunication); line < kLostLines; ++line)
        CHECK(std::fabs(static_cast<double>(
                            all->places[DeviceSplit::key(static_cast<uint32_t>(i), 0)].fs[line]) -
                        expected.places[i][line]) < 2000);
    CHECK(static_cast<double>(split.hidden_fs()) == expected.hidden);
  }
  CHECK(seams > kRuns / 4);
  CHECK(taken > kRuns / 4);
  CHECK(unclean < 1000);
  CHECK(useless < kRuns / 3);
}

TEST_CASE("device split: parts that do not fit are found") {
  const LaunchWorth worth{.of = KernelClass::kOther};
  constexpr size_t kKept = 2;
  const auto read = [&](DeviceSplit& part, std::initializer_list<LaunchInTime> launches) {
    const uint32_t row = part.add_row(RowPlace{}, worth);
    for (LaunchInTime launch : launches) {
      if (launch.row != LaunchInTime::kCopy) launch.row = row;
      part.add(launch);
    }
  };
  const auto at = [](uint64_t begin, uint64_t length) {
    return LaunchInTime{begin, length, 0, 0, 0, 0, 0};
  };
  const auto joined = [&](std::initializer_list<LaunchInTime> before) {
    DeviceSplit first(kKept, true), second(kKept, false);
    read(first, before);
    read(second, {at(100, 5), at(110, 5), at(120, 5), at(130, 5), at(140, 5), at(150, 5),
                  at(160, 5), at(170, 5), at(180, 5)});
    CHECK(!first.take(second));
    second.end();
    return second.clean();
  };
  CHECK(joined({at(50, 5), at(60, 5)}));
  CHECK(joined({at(50, 65), at(105, 5)}));
  CHECK(!joined({at(50, 75)}));             // runs where the seam is, of no head
  CHECK(!joined({at(50, 5), at(125, 5)}));  // begins after the seam
  CHECK(!joined({at(50, 5), LaunchInTime::copy(60, 70)}));
  CHECK(joined({at(50, 5), LaunchInTime::copy(60, 60)}));
}

TEST_CASE("device split: launches that turn out otherwise than was taken for granted") {
  const auto fits = [](const LaunchGuess& guess, const LaunchWorth& worth, uint64_t clock_error_ns,
                       size_t bytes = 1U << 20) {
    LogRoom room(bytes);
    DeviceSplit device(4, true, nullptr, &room);
    const uint32_t row = device.add_row(RowPlace{}, guess);
    device.add({100, 10, row, 0, 0, 0, 0});
    // Called for at most 3 units after the end of the first, or one unit less.
    device.add({110 + 500, 10, row, 0, 3, 0, 0});
    device.end();
    return device.value([&](const RowPlace&) { return worth; }, clock_error_ns);
  };
  const auto of_roof = [&](uint64_t fs) {
    return LaunchWorth{.of = KernelClass::kOther, .memory_fs = fs, .blocks_fs = fs};
  };
  CHECK(fits({}, of_roof(10 * kFsInNs), 0));
  CHECK(!fits({}, of_roof(10 * kFsInNs + 1), 0));  // faster than its roof
  CHECK(!fits({.communicates = true}, of_roof(0), 0));
  const LaunchWorth communicates{.of = KernelClass::kCommunication, .work_fs = 1};
  CHECK(fits({.communicates = true}, communicates, 0));
  CHECK(!fits({}, communicates, 0));
  CHECK(!fits({.communicates = true, .no_work = true}, communicates, 0));
  // The gap of 500 ns is the host's where it called 383 ns before, and clocks differ by the rest.
  CHECK(fits({}, of_roof(0), 500 - 383));
  CHECK(!fits({}, of_roof(0), 500 - 383 + 1));
  CHECK(!fits({}, of_roof(0), 0, 32));  // no room
}

TEST_CASE("time split: gaps by their kind, with the kernel after them") {
  const LaunchWorth worth{.of = KernelClass::kOther};
  std::array<LostTime, 5> places{};
  TimeSplit split;
  const auto launch = [&](uint64_t begin, size_t place, uint32_t step, bool windowed = false) {
    const uint32_t row = split.add_row();
    split.set_worth(row, worth, places[place]);
    split.launch({begin, 10, row, step, 0, 0, windowed});
  };
  launch(1000, 0, 1);
  launch(1050, 1, 1);           // 40 ns
  launch(101'060, 2, 1);        // 100 us
  launch(201'069, 3, 1);        // 1 ns less
  launch(201'100, 4, 2, true);  // 21 ns
  split.finish();
  CHECK(places[1][kIdleShortGaps] == 40 * kFsInNs);
  CHECK(places[2][kIdleLongGaps] == 100'000 * kFsInNs);
  CHECK(places[3][kIdleShortGaps] == 99'999 * kFsInNs);
  CHECK(places[4][kIdleBetweenSteps] == 21 * kFsInNs);
  CHECK(places[4].beside_fs[place_beside(kIdleBetweenSteps)] == 21 * kFsInNs);
  CHECK(places[1].beside_fs == std::array<u128, 3>{});
  // The gap before a step's first kernel is the step's.
  const auto steps = split.steps();
  REQUIRE(steps.size() == 3);
  CHECK(sum(steps[0].time.fs) == 0);
  CHECK(steps[1].first == 1);
  CHECK(sum(steps[1].time.fs) == 200'079 * kFsInNs);
  CHECK(sum(steps[2].time.fs) == 31 * kFsInNs);
}

TEST_CASE("time split: many steps share places") {
  const LaunchWorth worth{.of = KernelClass::kOther};
  LostTime place;
  TimeSplit split;
  constexpr uint32_t kSteps = 5 * TimeSplit::kMostSteps;
  const uint32_t row = split.add_row();
  split.set_worth(row, worth, place);
  for (uint32_t step = 1; step <= kSteps; ++step)
    split.launch({step * uint64_t{10}, 10, row, step, 0, 0, 0});
  split.finish();
  const auto steps = split.steps();
  CHECK(steps.size() <= TimeSplit::kMostSteps + 1);
  u128 all = 0;
  for (const auto& step : steps) {
    if (step.first == 0) continue;
    CHECK(step.steps == 8);
    CHECK((step.first - 1) % step.steps == 0);
    if (step.first + step.steps <= kSteps) CHECK(sum(step.time.fs) == 80 * kFsInNs);
    all += sum(step.time.fs);
  }
  CHECK(all == sum(place.fs));
}

// ---- the ledger by itself ----

namespace {

LostTime random_time(std::mt19937_64& random) {
  LostTime time;
  for (size_t line = 1; line < kLostLines; ++line)
    if (random() % 3 != 0) time.fs[line] = random() % 1'000'000'000;
  for (size_t i = 0; i < time.beside_fs.size(); ++i)
    if (random() % 2 == 0)
      time.beside_fs[i] = time.fs[place_of(kIdleBetweenSteps) + i] / (1 + random() % 3);
  return time;
}

// The same time in some parts.
std::vector<LostTime> cut_up(LostTime time, std::mt19937_64& random) {
  std::vector<LostTime> cut(1 + random() % 5);
  const auto share = [&](u128 whole, auto&& to) {
    for (size_t i = 0; i + 1 < cut.size(); ++i) {
      const u128 part = whole == 0 ? 0 : random() % static_cast<uint64_t>(whole + 1);
      to(cut[i]) = part;
      whole -= part;
    }
    to(cut.back()) = whole;
  };
  for (size_t i = 0; i < kLostLines; ++i)
    share(time.fs[i], [i](LostTime& part) -> u128& { return part.fs[i]; });
  // Of no part more than it is idle: all in the first that has room.
  for (size_t i = 0; i < time.beside_fs.size(); ++i)
    for (LostTime& part : cut) {
      part.beside_fs[i] = std::min(part.fs[place_of(kIdleBetweenSteps) + i], time.beside_fs[i]);
      time.beside_fs[i] -= part.beside_fs[i];
    }
  return cut;
}

template <typename Parts>
LostFs sum_of(const Parts& parts) {
  LostTime all;
  for (const auto& part : parts) all.add(part.time);
  return all.fs;
}

}  // namespace

TEST_CASE("lost: lines add up to the wall time, and none is negative") {
  size_t settled = 0, refused = 0, moved = 0;
  constexpr auto kRuns = flopinj::test::effort(6000U, 600U);
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const LostTime time = random_time(random);
    LostDevice device;
    for (const LostTime& part : cut_up(time, random)) device.parts.push_back({"a", "", part});
    uint32_t number = static_cast<uint32_t>(random() % 2);
    for (const LostTime& part : cut_up(time, random)) device.steps.push_back({number++, 1, part});
    // More was done than time went by, or launches ran while the device seemed to be idle.
    if (random() % 2 == 0) device.excess_fs[random() % kWorkClasses] = random() % 2'000'000'000;
    if (random() % 2 == 0) device.unplaced_fs = random() % 2'000'000'000;
    device.windows_fs = random() % 1'000'000'000;
    u128 excess = 0;
    for (const u128 of : device.excess_fs) excess += of;
    const u128 all = sum(time.fs);
    if (excess + device.unplaced_fs > all) continue;  // no time can have been so
    device.span_fs = all - excess - device.unplaced_fs;
    device.wall_fs = device.span_fs + random() % 1'000'000'000;
    const LostFs work{[&] {
      LostFs fs{};
      std::copy(time.fs.begin() + place_of(kRecompute), time.fs.end(),
                fs.begin() + place_of(kRecompute));
      return fs;
    }()};
    const std::string why = settle(device);
    if (!why.empty()) {
      ++refused;
      continue;
    }
    ++settled;
    moved += excess > 0;
    const LostFs parts = sum_of(device.parts), steps = sum_of(device.steps);
    CHECK(parts == steps);
    CHECK(sum(parts) == *device.wall_fs);
    for (size_t line = place_of(kRecompute); line < kLostLines; ++line)
      CHECK(parts[line] == work[line]);  // work is never moved
    for (const auto& part : device.parts)
      for (const u128 fs : part.time.fs) CHECK(fs <= all + *device.wall_fs);  // none wrapped
    LostReport report;
    LostSums sums;
    sums.add(0, device);
    sums.add_up(report);
    const auto wall_ns = static_cast<uint64_t>((*device.wall_fs + kFsInNs / 2) / kFsInNs);
    CHECK(report.capacity_ns == wall_ns);
    report.missing.clear();
    CHECK(adds_up(report));
  }
  CHECK(settled > kRuns / 2);
  CHECK(refused > kRuns / 20);
  CHECK(moved > kRuns / 6);
}

TEST_CASE("lost: parts are rounded line by line, device by device, in whatever order they come") {
  std::mt19937_64 random(1);
  std::vector<LostDevice> devices(4);
  for (uint32_t number = 0; number < devices.size(); ++number) {
    devices[number].trace = number / 2;
    devices[number].device = number % 2;
    const LostTime time = random_time(random);
    for (const LostTime& part : cut_up(time, random))
      devices[number].parts.push_back({"phase", std::to_string(number), part});
    for (const LostTime& part : cut_up(time, random)) devices[number].steps.push_back({0, 0, part});
  }
  std::vector<LostNs> expected;
  for (const LostDevice& device : devices) expected.resize(expected.size() + device.parts.size());
  const auto rounded = [](u128 fs) { return (fs + kFsInNs / 2) / kFsInNs; };
  u128 until = 0;
  for (size_t line = 0; line < kLostLines; ++line) {
    size_t place = 0;
    for (const LostDevice& device : devices)
      for (const auto& part : device.parts) {
        const u128 before = until;
        until += part.time.fs[line];
        expected[place++][line] = static_cast<uint64_t>(rounded(until) - rounded(before));
      }
  }
  std::erase(expected, LostNs{});
  for (const std::vector<uint32_t>& order : {std::vector<uint32_t>{0, 1, 2, 3}, {3, 1, 0, 2}}) {
    LostSums sums;
    for (const uint32_t number : order) sums.add(number, devices[number]);
    LostReport report;
    sums.add_up(report);
    std::vector<LostNs> found;
    for (const LostReport::Part& part : report.parts) found.push_back(part.ns);
    CHECK(found == expected);
    report.missing.clear();
    CHECK(adds_up(report));
  }
}

TEST_CASE("lost: what cannot be is no ledger") {
  LostDevice device;
  device.parts.push_back({});
  device.parts[0].time[kModel] = 10;
  device.steps.push_back({0, 0, device.parts[0].time});
  device.wall_fs = 9;
  device.span_fs = 10;
  CHECK(settle(device) == "the recording ended before its kernels did, by its clock");
  LostDevice above = {};
  above.parts.push_back({});
  above.parts[0].time[kModel] = 10;
  above.steps.push_back({0, 0, above.parts[0].time});
  above.wall_fs = above.span_fs = 9;
  above.excess_fs[0] = 1;
  CHECK(settle(above) == "above peak: FLOP, times or peaks are wrong");
}
