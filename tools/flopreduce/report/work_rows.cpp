#include "report/work_rows.h"

#include <algorithm>
#include <set>
#include <span>

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

// What a key's ids are found by, beside the launches.
struct IdsBy {
  std::vector<uint32_t> passes;     // by Report::phases
  std::vector<uint32_t> outermost;  // by Report::ranges

  explicit IdsBy(const Report& report) : outermost(outermost_of(report)) {
    for (const PhaseReport& phase : report.phases) passes.push_back(pass_of(phase.name));
  }
};

struct KeyFacts {
  WorkKey key;
  uint32_t (*id)(const WorkRow&, const WorkHome&, const IdsBy&);
  size_t (*size)(const Report&);  // of the list that ids are places in
  bool holds_whole = false;       // a group has all launches of a signature on a kind of device
  bool may_be_none = false;       // launches may have none
  bool of_homes = false;
};
constexpr KeyFacts kKeys[] = {
    {.key = WorkKey::kKernel,
     .id = [](const WorkRow& row, const WorkHome&, const IdsBy&) { return row.kernel; },
     .size = [](const Report& report) { return report.kernels.size(); },
     .holds_whole = true},
    {.key = WorkKey::kSignature,
     .id = [](const WorkRow& row, const WorkHome&, const IdsBy&) { return row.signature; },
     .size = [](const Report& report) { return report.signatures.size(); },
     .holds_whole = true},
    {.key = WorkKey::kChip,
     .id = [](const WorkRow& row, const WorkHome&, const IdsBy&) { return row.chip; },
     .size = [](const Report& report) { return report.chips.size(); },
     .holds_whole = true},
    {.key = WorkKey::kPhase,
     .id = [](const WorkRow& row, const WorkHome&, const IdsBy&) { return row.phase; },
     .size = [](const Report& report) { return report.phases.size(); }},
    {.key = WorkKey::kRule,
     .id = [](const WorkRow& row, const WorkHome&, const IdsBy&) { return row.rule; },
     .size = [](const Report& report) { return report.rules.size(); }},
    {.key = WorkKey::kRange,
     .id = [](const WorkRow& row, const WorkHome&, const IdsBy&) { return row.range; },
     .size = [](const Report& report) { return report.ranges.size(); },
     .may_be_none = true},
    {.key = WorkKey::kOutermostRange,
     .id =
         [](const WorkRow& row, const WorkHome&, const IdsBy& by) {
           return row.range == kNoRange ? kNoRange : by.outermost[row.range];
         },
     .size = [](const Report& report) { return report.ranges.size(); },
     .may_be_none = true},
    {.key = WorkKey::kLayer,
     .id = [](const WorkRow&, const WorkHome& home, const IdsBy&) { return home.layer; },
     .size = [](const Report& report) { return report.work.layers.size(); },
     .may_be_none = true,
     .of_homes = true},
    {.key = WorkKey::kLayerOrRange,
     .id = [](const WorkRow&, const WorkHome& home, const IdsBy&) { return home.layer_or_range; },
     .size = [](const Report& report) { return report.work.layers_or_ranges.size(); },
     .may_be_none = true,
     .of_homes = true},
    {.key = WorkKey::kOperator,
     .id = [](const WorkRow&, const WorkHome& home, const IdsBy&) { return home.operator_name; },
     .size = [](const Report& report) { return report.work.operators.size(); },
     .may_be_none = true,
     .of_homes = true},
    {.key = WorkKey::kPass,
     .id = [](const WorkRow& row, const WorkHome&,
              const IdsBy& by) { return by.passes[row.phase]; },
     .size = [](const Report&) { return kPasses.size(); },
     .may_be_none = true},
    // Its ids are of the formats that a row used: add_formats().
    {.key = WorkKey::kFormat,
     .id = [](const WorkRow&, const WorkHome&, const IdsBy&) { return uint32_t{0}; },
     .size = nullptr,
     .holds_whole = true},
};
const KeyFacts& facts_of(WorkKey key) { return *std::ranges::find(kKeys, key, &KeyFacts::key); }

void note_common(WorkGroup& group, bool fresh, const WorkRow& row) {
  const std::array<uint32_t, kKeysInCommon> its = {row.kernel, row.signature, row.chip, row.phase,
                                                   row.rule};
  for (size_t i = 0; i < its.size(); ++i)
    if (fresh)
      group.common[i] = its[i];
    else if (group.common[i] != its[i])
      group.common[i] = kNoIndex;
}

void add_format(Flop& flop, const FormatWork& format) {
  if (format.format >= kMaxPrecisions) {
    add_saturating(flop.integer[format.format - kMaxPrecisions], format.operations);
    return;
  }
  add_saturating(flop.by_precision[format.format], format.operations);
  if (format.format < kInstructionPrecisions)
    add_saturating(flop.doubtful[format.format], format.doubtful);
}

FormatWork part_of(const FormatWork& format, const Part& part) {
  return {format.format, part.of(format.operations), part.of(format.doubtful)};
}

// Launches of a group: of one row.
struct Share {
  const WorkRow* row = nullptr;
  Part part;
  bool whole = false;  // the group holds signatures whole

  Work work() const {
    if (whole) return row->in_whole();
    return part.whole() ? row->work : part.of(row->work);
  }
};

WorkGroup sum_of(std::span<const Share> shares, const Ids& ids) {
  WorkGroup group{.ids = ids};
  for (const Share& share : shares) {
    note_common(group, &share == shares.data(), *share.row);
    group.work.add(share.work());
    for (const FormatWork& format : share.row->formats)
      add_format(group.flop, part_of(format, share.part));
  }
  return group;
}

// One group for each format that the launches used. Launches without a count may have used any.
// `place`: of the format's id.
void add_formats(std::span<const Share> shares, Ids ids, size_t place,
                 std::vector<WorkGroup>& groups) {
  std::set<uint8_t> used;
  for (const Share& share : shares)
    for (const FormatWork& format : share.row->formats)
      if (share.part.of(format.operations) > 0) used.insert(format.format);
  for (const uint8_t format : used) {
    ids[place] = format;
    WorkGroup& group = groups.emplace_back();
    group.ids = ids;
    bool fresh = true;
    for (const Share& share : shares) {
      const auto& formats = share.row->formats;
      const auto its = std::ranges::find(formats, format, &FormatWork::format);
      if (its == formats.end() && share.row->work.flop_complete()) continue;
      const FormatWork part = its == formats.end() ? FormatWork{format} : part_of(*its, share.part);
      note_common(group, fresh, *share.row);
      fresh = false;
      group.work.add(of_format(share.work(), *share.row, part));
      add_format(group.flop, part);
    }
  }
}

// Also those of ids that no launch has.
std::vector<WorkGroup> with_every(std::vector<WorkGroup> groups, const KeyFacts& key,
                                  const Report& report) {
  std::vector<WorkGroup> all(key.size(report));
  for (uint32_t id = 0; id < all.size(); ++id) all[id].ids[0] = id;
  if (key.may_be_none) all.emplace_back().ids[0] = kNoIndex;
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

Work of_format(Work work, const WorkRow& row, const FormatWork& format) {
  const bool precision = format.format < kMaxPrecisions;
  if (format.operations == 0) work.varying = work.rounded = work.agreeing = work.bounded = 0;
  // Intervals are of all formats together.
  if (work.varying == 0 || !precision || format.operations != work.flop) {
    work.uncertainty = {};
    if (work.varying > 0) work.uncertainty.add_unknown(work.varying);
  }
  work.flop = precision ? format.operations : 0;
  work.doubtful = format.doubtful;
  work.left_out = 0;
  work.matrix_flop = std::min(work.matrix_flop, work.flop);
  work.by_formula = {};
  if (row.formats.size() > 1) {
    work.roof = {};
    work.roof.no_peak = work.roof.no_bytes = work.launches;
  }
  return work;
}

std::vector<WorkGroup> group(const Report& report, const WorkKeys& keys, bool every) {
  const WorkRows& all = report.work;
  std::vector<const KeyFacts*> facts;
  for (const auto& key : keys)
    if (key) facts.push_back(&facts_of(*key));
  const bool of_homes = std::ranges::any_of(facts, &KeyFacts::of_homes);
  const bool whole = std::ranges::all_of(facts, &KeyFacts::holds_whole);
  const IdsBy by(report);
  const auto ids_of = [&](const WorkRow& row, const WorkHome& home) {
    Ids ids{};
    for (size_t i = 0; i < facts.size(); ++i) ids[i] = facts[i]->id(row, home, by);
    return ids;
  };
  std::vector<std::pair<Ids, uint32_t>> order;  // and the place of a row, or of a home
  order.reserve(of_homes ? all.homes.size() : all.rows.size());
  if (of_homes)
    for (uint32_t i = 0; i < all.homes.size(); ++i)
      order.emplace_back(ids_of(all.rows[all.homes[i].row], all.homes[i]), i);
  else
    for (uint32_t i = 0; i < all.rows.size(); ++i)
      order.emplace_back(ids_of(all.rows[i], WorkHome{}), i);
  // Sums of doubles depend on the order: that of the rows.
  std::ranges::sort(order);
  const size_t format =
      static_cast<size_t>(std::ranges::find(keys, std::optional(WorkKey::kFormat)) - keys.begin());
  std::vector<WorkGroup> groups;
  std::vector<Share> shares;  // of one group
  for (size_t i = 0; i < order.size();) {
    const Ids ids = order[i].first;
    shares.clear();
    for (; i < order.size() && order[i].first == ids; ++i) {
      const uint32_t at = order[i].second;
      shares.push_back({&all.rows[of_homes ? all.homes[at].row : at],
                        of_homes ? all.homes[at].part : Part{}, whole});
    }
    if (format < keys.size())
      add_formats(shares, ids, format, groups);
    else
      groups.push_back(sum_of(shares, ids));
  }
  if (format < keys.size()) std::ranges::sort(groups, {}, &WorkGroup::ids);
  if (every && facts.size() == 1 && facts[0]->size != nullptr)
    return with_every(std::move(groups), *facts[0], report);
  if (all.chosen)
    std::ranges::stable_sort(groups, std::greater<>(), [](const WorkGroup& g) {
      return std::pair(g.work.flop, g.work.launches);
    });
  return groups;
}

WorkRows where(const WorkRows& all, const std::function<bool(const WorkRow&)>& holds, bool whole) {
  WorkRows chosen{{}, {}, all.layers, all.layers_or_ranges, all.operators, true};
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
  WorkRows chosen{{}, {}, all.layers, all.layers_or_ranges, all.operators, true};
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
