#include "tables/energy_readings.h"

#include "catch.h"

using namespace flopinj::reduce;

namespace {

flopinj::trace::Energy reading(uint32_t device, uint64_t begin_ns, uint64_t end_ns,
                               uint64_t millijoules) {
  flopinj::trace::Energy message;
  auto& of = *message.add_device();
  of.set_device(device);
  of.set_begin_ns(begin_ns);
  of.set_end_ns(end_ns);
  of.set_millijoules(millijoules);
  return message;
}

// One device that draws 500 W from 1,000 ns on, read every `every` ns: half a nanojoule, which is
// a unit of the test's counter.
EnergyReadings steady(uint64_t every, uint64_t readings) {
  EnergyReadings all;
  for (uint64_t i = 1; i <= readings; ++i)
    all.add(reading(1, 1000, 1000 + i * every, i * every / 2));
  return all;
}

}  // namespace

TEST_CASE("energy between two times is in proportion to the readings around them") {
  const EnergyReadings all = steady(100, 100);
  CHECK(all.between(1000, 11'000) == 5000);  // from the first to the last
  CHECK(all.between(2030, 8070) == 3020);
  CHECK(all.between(2030, 2030 + 2200) == 1100);
}

TEST_CASE("energy is not known where readings leave more than a tenth of it open") {
  const EnergyReadings all = steady(100, 100);
  // From the reading before 2,030 to the one after 3,870 there are 19 of which two are open.
  CHECK_FALSE(all.between(2030, 3870));
  // And of 20 intervals two are a tenth.
  CHECK(all.between(2030, 3970) == 970);
  CHECK_FALSE(all.between(2030, 2040));  // between two readings
  CHECK_FALSE(all.between(900, 8000));   // before the first
  CHECK_FALSE(all.between(2000, 11'001));
  CHECK_FALSE(all.between(8000, 2000));
  CHECK_FALSE(EnergyReadings().between(0, 1000));
}

TEST_CASE("energy of several devices is their sum, if it is known of all") {
  EnergyReadings all = steady(100, 100);
  for (uint64_t i = 1; i <= 100; ++i) all.add(reading(2, 500, 500 + i * 100, i * 100));
  CHECK(all.between(2000, 8000) == 3000 + 6000);
  CHECK_FALSE(all.between(2000, 10'600));  // the second one was not read any more
  flopinj::trace::Energy none;
  none.add_device()->set_device(3);
  none.mutable_device(0)->set_unavailable("the GPU has no energy counter");
  all.add(none);
  CHECK_FALSE(all.between(2000, 8000));
}

TEST_CASE("energy: a counter that stays is no energy, and one that goes back is left out") {
  EnergyReadings all;
  for (uint64_t i = 1; i <= 100; ++i) all.add(reading(1, 0, i * 100, 0));
  CHECK_FALSE(all.between(1000, 9000));
  EnergyReadings damaged = steady(100, 50);
  damaged.add(reading(1, 1000, 2000, 77'777));
  damaged.add(reading(1, 1000, 6100, 3));
  damaged.add(reading(1, 1000, 6200, 2600));
  CHECK(damaged.between(2000, 6000) == 2000);
}

TEST_CASE("energy of very long recordings is known of longer times") {
  const uint64_t count = EnergyReadings::kMost * 5;
  const EnergyReadings all = steady(100, count);
  CHECK_FALSE(all.between(5'003'000, 5'007'000));
  CHECK(all.between(5'003'000, 5'043'000) == 20'000);
  const uint64_t late = 1000 + (count - 1000) * 100;
  CHECK(all.between(late, late + 40'000) == 20'000);
}
