#include "report/work_rows.h"

#include <algorithm>

#include "report/report.h"

namespace flopinj::reduce {
namespace {

using Ids = std::array<uint32_t, kMostKeys>;

uint32_t pass_of(const std::string& phase) {
  const auto found = std::ranges::find(kPasses, phase == "loss" ? "forward" : phase);
  return found == kPasses.end() ? kNoIndex : static_cast<uint32_t>(found - kPasses.begin());
}

// Of each range the outermost one around it. Ranges are in tree order.
std::vector<uint32_t> outermost_of(const Report& report) {
  std::vector<uint32_t> outermost(report.ranges.size());
  for (uint32_t i = 0; i < outermost.size(); ++i)
    outermost[i] = report.ranges[i].depth <= 1 ? i : outermost[i - 1];
  return outermost;
}

bool is_of_home(WorkKey key) { return key == WorkKey::kLayer || key == WorkKey::kOperator; }
// Groups by these alone hold all launches of a signature on a kind of device.
bool holds_whole(WorkKey key) {
  return key == WorkKey::kKernel || key == WorkKey::kSignature || key == WorkKey::kChip ||
         key == WorkKey::kFormat;
}
template <typename Is>
bool any_of(const WorkKeys& keys, Is is) {
  return std::ranges::any_of(keys, [&](const auto& key) { return key && is(*key); });
}

// Where a launch belongs, key by key.
class IdsOf {
 public:
  IdsOf(const Report& report, const WorkKeys& keys) : report_(report), keys_(keys) {
    for (const PhaseReport& phase : report.phases) passes_.push_back(pass_of(phase.name));
    if (any_of(keys, [](WorkKey key) { return key == WorkKey::kOutermostRange; }))
      outermost_ = outermost_of(report);
  }
  Ids operator()(const WorkRow& row, const WorkHome* home) const {
    Ids ids{};
    for (size_t i = 0; i < kMostKeys; ++i)
      if (keys_[i]) ids[i] = id(*keys_[i], row, home);
    return ids;
  }

 private:
  uint32_t id(WorkKey key, const WorkRow& row, const WorkHome* home) const {
    switch (key) {
      case WorkKey::kKernel:
        return row.kernel;
      case WorkKey::kSignature:
        return row.signature;
      case WorkKey::kChip:
        return row.chip;
      case WorkKey::kPhase:
        return row.phase;
      case WorkKey::kRule:
        return row.rule;
      case WorkKey::kRange:
        return row.range;
      case WorkKey::kOutermostRange:
        return row.range == kNoRange ? kNoRange : outermost_[row.range];
      case WorkKey::kLayer:
        return home->layer;
      case WorkKey::kOperator:
        return home->operator_name;
      case WorkKey::kPass:
        return passes_[row.phase];
      case WorkKey::kFormat:
        break;
    }
    return 0;
  }

  const Report& report_;
  const WorkKeys& keys_;
  std::vector<uint32_t> passes_;     // by Report::phases
  std::vector<uint32_t> outermost_;  // by Report::ranges
};

void add(WorkGroup& group, bool fresh, const WorkRow& row, const Work& work, const Part& part) {
  if (fresh)
    group.phase = row.phase;
  else if (group.phase != row.phase)
    group.phase.reset();
  group.work.add(work);
  for (const FormatWork& format : row.formats) {
    const u128 operations = part.of(format.operations);
    if (format.format >= kMaxPrecisions) {
      add_saturating(group.flop.integer[format.format - kMaxPrecisions], operations);
      continue;
    }
    add_saturating(group.flop.by_precision[format.format], operations);
    if (format.format < kInstructionPrecisions)
      add_saturating(group.flop.doubtful[format.format], part.of(format.doubtful));
  }
}

// The list that a key's ids are places in has so many; kNoIndex: launches may have none.
size_t size_of(WorkKey key, const Report& report) {
  switch (key) {
    case WorkKey::kKernel:
      return report.kernels.size();
    case WorkKey::kSignature:
      return report.signatures.size();
    case WorkKey::kChip:
      return report.chips.size();
    case WorkKey::kPhase:
      return report.phases.size();
    case WorkKey::kRule:
      return report.rules.size();
    case WorkKey::kRange:
    case WorkKey::kOutermostRange:
      return report.ranges.size();
    case WorkKey::kLayer:
      return report.work.layers.size();
    case WorkKey::kOperator:
      return report.work.operators.size();
    case WorkKey::kPass:
      return kPasses.size();
    case WorkKey::kFormat:
      break;
  }
  return 0;
}

bool may_have_none(WorkKey key) {
  return key == WorkKey::kRange || key == WorkKey::kOutermostRange || key == WorkKey::kPass ||
         is_of_home(key);
}

// Also those of ids that no launch has.
std::vector<WorkGroup> with_every(std::vector<WorkGroup> groups, WorkKey key,
                                  const Report& report) {
  std::vector<WorkGroup> all(size_of(key, report));
  for (uint32_t id = 0; id < all.size(); ++id) all[id].ids[0] = id;
  if (may_have_none(key)) all.emplace_back().ids[0] = kNoIndex;
  for (WorkGroup& group : groups)
    (group.ids[0] == kNoIndex ? all.back() : all[group.ids[0]]) = std::move(group);
  return all;
}

}  // namespace

Work WorkRow::in_whole() const {
  Work whole = work;
  whole.varying = varying_in_whole;
  whole.uncertainty = uncertainty_in_whole;
  return whole;
}

std::vector<WorkGroup> group(const Report& report, const WorkKeys& keys, bool every) {
  const WorkRows& all = report.work;
  const bool of_homes = any_of(keys, [](WorkKey key) { return is_of_home(key); });
  const bool whole = !any_of(keys, [](WorkKey key) { return !holds_whole(key); });
  const IdsOf ids_of(report, keys);
  std::vector<std::pair<Ids, uint32_t>> order;  // and the place of a row, or of a home
  order.reserve(of_homes ? all.homes.size() : all.rows.size());
  if (of_homes)
    for (uint32_t i = 0; i < all.homes.size(); ++i)
      order.emplace_back(ids_of(all.rows[all.homes[i].row], &all.homes[i]), i);
  else
    for (uint32_t i = 0; i < all.rows.size(); ++i)
      order.emplace_back(ids_of(all.rows[i], nullptr), i);
  // Sums of doubles depend on the order: that of the rows.
  std::ranges::sort(order);
  std::vector<WorkGroup> groups;
  for (const auto& [ids, i] : order) {
    const bool fresh = groups.empty() || groups.back().ids != ids;
    if (fresh) groups.emplace_back().ids = ids;
    const Part part = of_homes ? all.homes[i].part : Part{};
    const WorkRow& row = all.rows[of_homes ? all.homes[i].row : i];
    if (whole)
      add(groups.back(), fresh, row, row.in_whole(), part);
    else if (part.whole())
      add(groups.back(), fresh, row, row.work, part);
    else
      add(groups.back(), fresh, row, part.of(row.work), part);
  }
  if (every && keys[0]) return with_every(std::move(groups), *keys[0], report);
  if (all.chosen)
    std::ranges::stable_sort(groups, std::greater<>(), [](const WorkGroup& g) {
      return std::pair(g.work.flop, g.work.launches);
    });
  return groups;
}

WorkRows where(const WorkRows& all, const std::function<bool(const WorkRow&)>& holds, bool whole) {
  WorkRows chosen{{}, {}, all.layers, all.operators, true};
  std::vector<uint32_t> places(all.rows.size(), kNoIndex);
  for (size_t i = 0; i < all.rows.size(); ++i) {
    if (!holds(all.rows[i])) continue;
    places[i] = static_cast<uint32_t>(chosen.rows.size());
    WorkRow& row = chosen.rows.emplace_back(all.rows[i]);
    if (whole) continue;
    row.varying_in_whole = row.work.varying;
    row.uncertainty_in_whole = row.work.uncertainty;
  }
  for (WorkHome home : all.homes) {
    if (places[home.row] == kNoIndex) continue;
    home.row = places[home.row];
    chosen.homes.push_back(home);
  }
  return chosen;
}

WorkRows where_home(const WorkRows& all,
                    const std::function<bool(const WorkRow&, const WorkHome&)>& holds) {
  WorkRows chosen{{}, {}, all.layers, all.operators, true};
  for (WorkHome home : all.homes) {
    const WorkRow& whole = all.rows[home.row];
    if (!holds(whole, home)) continue;
    WorkRow& row = chosen.rows.emplace_back(whole);
    row.work = home.part.of(whole.work);
    row.varying_in_whole = row.work.varying;
    row.uncertainty_in_whole = row.work.uncertainty;
    for (FormatWork& format : row.formats) {
      format.operations = home.part.of(format.operations);
      format.doubtful = home.part.of(format.doubtful);
    }
    home.row = static_cast<uint32_t>(chosen.rows.size() - 1);
    home.part = {};
    chosen.homes.push_back(home);
  }
  return chosen;
}

}  // namespace flopinj::reduce
