#include "passes/lost_reading.h"

#include <algorithm>
#include <utility>

namespace flopinj::reduce {

LostReading::LostReading(const TraceTables& tables, const PhaseRules& rules, const PhaseMap& phases,
                         const std::vector<Segment>& segments, const std::set<uint32_t>& revised)
    : tables_(tables),
      guesses_(tables, rules, phases),
      segments_(segments),
      in_parts_(tables.traces.size(), true) {
  for (uint32_t i = 0; i < in_parts_.size(); ++i)
    in_parts_[i] = !tables.traces[i].has_summary && !revised.contains(i);
}

LostPass& LostReading::consumer(bool first) {
  const LostParts::Ended ended = [this](uint32_t trace, LostPass::Devices devices) {
    keep(trace, std::move(devices));
  };
  if (first) {
    passes_.clear();
    kept_.clear();
    parts_ = std::make_unique<LostParts>(segments_, in_parts_, &room_, ended);
  }
  passes_.push_back(
      std::make_unique<LostPass>(LostPass::Reading{tables_, guesses_, *parts_, {}, {}, ended}));
  return *passes_.back();
}

void LostReading::keep(uint32_t trace, LostPass::Devices devices) {
  for (const auto& [number, device] : devices)
    if (!device.clean() || device.split.given_up()) return;
  const std::lock_guard lock(lock_);
  kept_.emplace(trace, std::move(devices));
}

std::vector<bool> LostReading::value(LaunchWorths& worths, const Totals& totals,
                                     LostLedger& ledger) {
  std::vector<bool> left(tables_.traces.size(), true);
  const auto worth_of = [&](const RowPlace& place) { return worths.of(place); };
  while (!kept_.empty()) {  // one by one, since what they are worth takes memory, too
    const auto kept = kept_.extract(kept_.begin());
    const uint32_t trace = kept.key();
    LostPass::Devices& devices = kept.mapped();
    left[trace] = std::ranges::any_of(devices, [&](auto& device) {
      return !device.second.value(worth_of, totals.devices[device.first].clock_error_ns);
    });
    if (!left[trace]) ledger.add(trace, devices);
  }
  return left;
}

}  // namespace flopinj::reduce
