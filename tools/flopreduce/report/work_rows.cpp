#include "report/work_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "report/report.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

uint32_t pass_of(std::string_view phase) {
  const auto found = std::ranges::find(kPasses, phase == "loss" ? "forward" : phase,
                                       [](const char* pass) { return std::string_view(pass); });
  return found == kPasses.end() ? kNoIndex : static_cast<uint32_t>(found - kPasses.begin());
}

// The first of its parts, from this one on.
uint32_t part_from(const WorkRow& row, uint32_t part) {
  while (part < kPhaseParts.size() && (row.parts >> part & 1) == 0) ++part;
  return part < kPhaseParts.size() ? part : kNoIndex;
}

uint32_t outermost_of(uint32_t range, const Report& report) {
  while (range != kNoRange && report.ranges[range].depth > 1) range = report.ranges[range].around;
  return range;
}

// The ids of launches by one key.
class Ids {
 public:
  Ids(const WorkKey& key, const Report& report) : key_(key), report_(report) {}
  // Of all launches, before ids are asked for: texts have places in their order.
  void note(const WorkRow& row, const WorkHome& home) {
    if (key_.text == nullptr) return;
    if (auto text = key_.text(row, home, report_)) places_.emplace(std::move(*text), 0);
  }
  void order() {
    uint32_t next = 0;
    for (auto& [text, place] : places_) place = next++;
  }
  uint32_t first(const WorkRow& row, const WorkHome& home) const {
    if (key_.text == nullptr) return key_.id(row, home, report_);
    const auto text = key_.text(row, home, report_);
    return text ? places_.at(*text) : kNoIndex;
  }
  uint32_t next(const WorkRow& row, uint32_t id) const {
    return key_.next == nullptr || id == kNoIndex ? kNoIndex : key_.next(row, id, report_);
  }

 private:
  const WorkKey& key_;
  const Report& report_;
  std::map<std::string, uint32_t> places_;
};

using GroupIds = std::array<uint32_t, kMostKeys>;

// All that launches have: of several keys each with each.
void find_ids(const std::vector<Ids>& keys, const WorkRow& row, const WorkHome& home,
              std::vector<GroupIds>& found) {
  found.assign(1, GroupIds{});
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t before = found.size();
    uint32_t id = keys[i].first(row, home);
    for (GroupIds& ids : found) ids[i] = id;
    while ((id = keys[i].next(row, id)) != kNoIndex)
      for (size_t j = 0; j < before; ++j) {
        found.push_back(found[j]);
        found.back()[i] = id;
      }
  }
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
  uint32_t member = 0;

  Work work() const {
    if (whole) return row->in_whole();
    return part.whole() ? row->work : part.of(row->work);
  }
};

WorkGroup sum_of(std::span<const Share> shares, const GroupIds& ids) {
  WorkGroup group{.ids = ids};
  for (const Share& share : shares) {
    group.members.push_back(share.member);
    group.work.add(share.work());
    for (const FormatWork& format : share.row->formats)
      add_format(group.flop, part_of(format, share.part));
  }
  return group;
}

// One group for each format that the launches used. Launches without a count may have used any.
// `place`: of the format's id.
void add_formats(std::span<const Share> shares, GroupIds ids, size_t place,
                 std::vector<WorkGroup>& groups) {
  std::set<uint8_t> used;
  for (const Share& share : shares)
    for (const FormatWork& format : share.row->formats)
      if (share.part.of(format.operations) > 0) used.insert(format.format);
  for (const uint8_t format : used) {
    ids[place] = format;
    WorkGroup& group = groups.emplace_back();
    group.ids = ids;
    for (const Share& share : shares) {
      const auto& formats = share.row->formats;
      const auto its = std::ranges::find(formats, format, &FormatWork::format);
      if (its == formats.end() && share.row->work.flop_complete()) continue;
      const FormatWork part = its == formats.end() ? FormatWork{format} : part_of(*its, share.part);
      group.members.push_back(share.member);
      group.work.add(of_format(share.work(), *share.row, part));
      add_format(group.flop, part);
    }
  }
}

// Also those of ids that no launch has.
std::vector<WorkGroup> with_every(std::vector<WorkGroup> groups, const WorkKey& key,
                                  const Report& report) {
  std::vector<WorkGroup> all(key.size(report));
  for (uint32_t id = 0; id < all.size(); ++id) all[id].ids[0] = id;
  if (key.may_be_none) all.emplace_back().ids[0] = kNoIndex;
  for (WorkGroup& group : groups)
    (group.ids[0] == kNoIndex ? all.back() : all[group.ids[0]]) = std::move(group);
  return all;
}

}  // namespace

namespace by {

constexpr WorkKey kKernel{
    .column = "kernel",
    .heading = "kernel",
    .id = [](const WorkRow& row, const WorkHome&, const Report&) { return row.kernel; },
    .size = [](const Report& report) { return report.kernels.size(); },
    .name = [](const Report& report, uint32_t id) { return report.kernels[id].name; },
    .holds_whole = true};
constexpr WorkKey kSignature{
    .column = "stable_hash",
    .heading = "hash",
    .meaning = kStableHashMeaning,
    .id = [](const WorkRow& row, const WorkHome&, const Report&) { return row.signature; },
    .size = [](const Report& report) { return report.signatures.size(); },
    .name = [](const Report& report,
               uint32_t id) { return hash_text(report.signatures[id].stable_hash); },
    .holds_whole = true};
constexpr WorkKey kChip{
    .column = "chip",
    .heading = "chip",
    .id = [](const WorkRow& row, const WorkHome&, const Report&) { return row.chip; },
    .size = [](const Report& report) { return report.chips.size(); },
    .name = [](const Report& report, uint32_t id) { return report.chips[id]; },
    .holds_whole = true};
constexpr WorkKey kPhase{
    .column = "phase",
    .heading = "phase",
    .id = [](const WorkRow& row, const WorkHome&, const Report&) { return row.phase; },
    .size = [](const Report& report) { return report.phases.size(); },
    .name = [](const Report& report, uint32_t id) { return report.phases[id].name; }};
constexpr WorkKey kPhasePart{
    .column = "part",
    .heading = "part",
    .meaning =
        "unclear: launches that may have run forward, their sequence numbers do not say. "
        "gradients: products outside of autograd's nodes that may be gradients which "
        "backward lacks. products: of operators that multiply matrices, which no sequence "
        "number places: the optimizer's own, as of Muon and Shampoo, or those of a closure",
    .id = [](const WorkRow& row, const WorkHome&, const Report&) { return part_from(row, 0); },
    .size = [](const Report&) { return kPhaseParts.size(); },
    .name = [](const Report&, uint32_t id) { return std::string(kPhaseParts[id].part); },
    .next = [](const WorkRow& row, uint32_t id, const Report&) { return part_from(row, id + 1); },
    .may_be_none = true};
constexpr WorkKey kRule{
    .column = "rule",
    .heading = "rule",
    .meaning = "the rule that gave the phase",
    .id = [](const WorkRow& row, const WorkHome&, const Report&) { return row.rule; },
    .size = [](const Report& report) { return report.rules.size(); },
    .name = [](const Report& report, uint32_t id) { return report.rules[id].rule; }};
constexpr WorkKey kRange{
    .column = "range",
    .heading = "range",
    .meaning = "null: in no range",
    .id = [](const WorkRow& row, const WorkHome&, const Report&) { return row.range; },
    .size = [](const Report& report) { return report.ranges.size(); },
    .name = [](const Report& report, uint32_t id) { return report.ranges[id].path; },
    .may_be_none = true};
constexpr WorkKey kAnyRange{
    .column = "range",
    .heading = "range",
    .meaning = "names of the ranges around it and its own, with \"/\" between",
    .id = kRange.id,
    .size = kRange.size,
    .name = kRange.name,
    .next = [](const WorkRow&, uint32_t id,
               const Report& report) { return report.ranges[id].around; },
    .may_be_none = true};
constexpr WorkKey kOutermostRange{
    .column = "outermost_range",
    .heading = "outermost range",
    .meaning = "null: in no range",
    .id = [](const WorkRow& row, const WorkHome&,
             const Report& report) { return outermost_of(row.range, report); },
    .size = [](const Report& report) { return report.ranges.size(); },
    .name = [](const Report& report, uint32_t id) { return report.ranges[id].path; },
    .may_be_none = true};
constexpr WorkKey kPass{
    .column = "pass",
    .heading = "pass",
    .meaning = "forward, backward or recompute; null: none",
    .id = [](const WorkRow& row, const WorkHome&,
             const Report& report) { return pass_of(report.phases[row.phase].name); },
    .size = [](const Report&) { return kPasses.size(); },
    .name = [](const Report&, uint32_t id) { return std::string(kPasses[id]); },
    .may_be_none = true};
constexpr WorkKey kLayer{
    .column = "layer",
    .heading = "layer",
    .meaning = "null: in no layer",
    .id = [](const WorkRow&, const WorkHome& home, const Report&) { return home.layer; },
    .size = [](const Report& report) { return report.work.layers.size(); },
    .name = [](const Report& report, uint32_t id) { return report.work.layers[id]; },
    .may_be_none = true,
    .of_homes = true};
constexpr WorkKey kLayerOrRange{
    .column = "layer",
    .heading = "layer",
    .meaning = "or a range that stands for one, where no range gives the phase; null: in none",
    .id = [](const WorkRow&, const WorkHome& home, const Report&) { return home.layer_or_range; },
    .size = [](const Report& report) { return report.work.layers_or_ranges.size(); },
    .name = [](const Report& report, uint32_t id) { return report.work.layers_or_ranges[id]; },
    .may_be_none = true,
    .of_homes = true};
constexpr WorkKey kOperator{
    .column = "operator",
    .heading = "operator",
    .meaning =
        "the function that forward called, or the autograd node where it is not known; "
        "null: none",
    .id = [](const WorkRow&, const WorkHome& home, const Report&) { return home.operator_name; },
    .size = [](const Report& report) { return report.work.operators.size(); },
    .name = [](const Report& report, uint32_t id) { return report.work.operators[id]; },
    .may_be_none = true,
    .of_homes = true};
// add_formats() makes groups of one kind out of those of the other keys.
constexpr WorkKey kFormat{
    .column = "precision",
    .heading = "precision",
    .id = [](const WorkRow&, const WorkHome&, const Report&) { return uint32_t{0}; },
    .name =
        [](const Report& report, uint32_t id) {
          return id < kMaxPrecisions ? report.precisions[id]
                                     : std::string(kIntegerFormats[id - kMaxPrecisions]);
        },
    .holds_whole = true};

}  // namespace by

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

std::optional<uint32_t> WorkGroup::in_common(const WorkKey& key, const Report& report) const {
  if (key.id == nullptr) return std::nullopt;
  const WorkRows& all = report.work;
  std::optional<uint32_t> common;
  const auto agrees = [&](const WorkRow& row, const WorkHome& home) {
    const uint32_t id = key.id(row, home, report);
    return std::exchange(common, id).value_or(id) == id && id != kNoIndex;
  };
  const auto homes_agree = [&](uint32_t row) {
    auto home = std::ranges::lower_bound(all.homes, row, {}, &WorkHome::row);
    for (; home != all.homes.end() && home->row == row; ++home)
      if (!agrees(all.rows[row], *home)) return false;
    return true;
  };
  for (const uint32_t at : members)
    if (of_homes       ? !agrees(all.rows[all.homes[at].row], all.homes[at])
        : key.of_homes ? !homes_agree(at)
                       : !agrees(all.rows[at], WorkHome{}))
      return std::nullopt;
  return common;
}

std::optional<std::string> WorkGroup::name(const WorkKey& key, size_t place,
                                           const Report& report) const {
  if (ids[place] == kNoIndex) return std::nullopt;
  if (key.text == nullptr) return key.name(report, ids[place]);
  const WorkRows& all = report.work;
  const WorkHome home = of_homes ? all.homes[members[0]] : WorkHome{.row = members[0]};
  return key.text(all.rows[home.row], home, report);
}

std::vector<WorkGroup> group(const Report& report, const WorkKeys& keys, bool every) {
  const WorkRows& all = report.work;
  bool of_homes = false, whole = true;
  std::vector<Ids> ids_by;
  for (const ByKey& key : keys) {
    if (!key) continue;
    ids_by.emplace_back(*key, report);
    of_homes = of_homes || key->of_homes;
    whole = whole && key->holds_whole;
  }
  const auto each = [&](const auto& visit) {
    if (of_homes)
      for (uint32_t i = 0; i < all.homes.size(); ++i)
        visit(i, all.rows[all.homes[i].row], all.homes[i]);
    else
      for (uint32_t i = 0; i < all.rows.size(); ++i) visit(i, all.rows[i], WorkHome{.row = i});
  };
  for (Ids& ids : ids_by) {
    each([&](uint32_t, const WorkRow& row, const WorkHome& home) { ids.note(row, home); });
    ids.order();
  }
  std::vector<std::pair<GroupIds, uint32_t>> order;  // and the place of a row, or of a home
  order.reserve(of_homes ? all.homes.size() : all.rows.size());
  std::vector<GroupIds> found;
  each([&](uint32_t i, const WorkRow& row, const WorkHome& home) {
    find_ids(ids_by, row, home, found);
    for (const GroupIds& ids : found) order.emplace_back(ids, i);
  });
  // Sums of doubles depend on the order: that of the rows.
  std::ranges::sort(order);
  const auto format =
      static_cast<size_t>(std::ranges::find(keys, ByKey(by::kFormat)) - keys.begin());
  std::vector<WorkGroup> groups;
  std::vector<Share> shares;  // of one group
  for (size_t i = 0; i < order.size();) {
    const GroupIds ids = order[i].first;
    shares.clear();
    for (; i < order.size() && order[i].first == ids; ++i) {
      const uint32_t at = order[i].second;
      shares.push_back({&all.rows[of_homes ? all.homes[at].row : at],
                        of_homes ? all.homes[at].part : Part{}, whole, at});
    }
    if (format < keys.size())
      add_formats(shares, ids, format, groups);
    else
      groups.push_back(sum_of(shares, ids));
  }
  for (WorkGroup& one : groups) one.of_homes = of_homes;
  if (format < keys.size()) std::ranges::sort(groups, {}, &WorkGroup::ids);
  if (every && ids_by.size() == 1 && keys[0]->size != nullptr)
    return with_every(std::move(groups), *keys[0], report);
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
