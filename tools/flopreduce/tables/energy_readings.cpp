#include "tables/energy_readings.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "support/wide.h"

namespace flopinj::reduce {

void EnergyReadings::add(const trace::Energy& message) {
  for (const auto& device : message.device()) {
    OfDevice& of = devices_[device.device()];
    if (!device.unavailable().empty() || device.end_ns() <= device.begin_ns()) continue;
    if (of.readings.empty()) of.add({device.begin_ns(), 0});
    of.add({device.end_ns(), device.millijoules()});
  }
}

std::optional<uint64_t> EnergyReadings::between(uint64_t from_ns, uint64_t to_ns) const {
  double sum = 0;
  u128 least = 0, most = 0;
  for (const auto& [id, device] : devices_) {
    const auto from = device.around(from_ns), to = device.around(to_ns);
    if (!from || !to) return std::nullopt;
    if (to->before.ns > from->after.ns) least += to->before.millijoules - from->after.millijoules;
    most += to->after.millijoules - from->before.millijoules;
    sum += to->at(to_ns) - from->at(from_ns);
  }
  constexpr u128 kMostMillijoules = u128{1} << 53;  // of a double, each one
  if (most == 0 || most > kMostMillijoules) return std::nullopt;
  if ((most - least) * kMostOpen > most) return std::nullopt;
  return static_cast<uint64_t>(std::llround(sum));
}

double EnergyReadings::Around::at(uint64_t ns) const {
  const auto begin = static_cast<double>(before.millijoules);
  if (after.ns == before.ns) return begin;
  return begin + static_cast<double>(after.millijoules - before.millijoules) *
                     static_cast<double>(ns - before.ns) /
                     static_cast<double>(after.ns - before.ns);
}

void EnergyReadings::OfDevice::add(const Reading& reading) {
  if (!readings.empty() &&
      (reading.ns <= readings.back().ns || reading.millijoules < readings.back().millijoules))
    return;  // counters and clocks do not go back: the trace is damaged
  if (++left_out < every && !readings.empty()) return;
  left_out = 0;
  readings.push_back(reading);
  if (readings.size() < kMost) return;
  for (size_t i = 0; i < kMost / 2; ++i) readings[i] = readings[i * 2];
  readings.resize(kMost / 2);
  every *= 2;
  left_out = every / 2;
}

std::optional<EnergyReadings::Around> EnergyReadings::OfDevice::around(uint64_t ns) const {
  const auto after = std::ranges::lower_bound(readings, ns, {}, &Reading::ns);
  if (after == readings.end()) return std::nullopt;
  if (after->ns == ns) return Around{*after, *after};
  if (after == readings.begin()) return std::nullopt;
  return Around{*std::prev(after), *after};
}

}  // namespace flopinj::reduce
