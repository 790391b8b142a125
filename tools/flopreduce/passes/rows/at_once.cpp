#include "passes/rows/at_once.h"

#include <algorithm>
#include <utility>

#include "support/wide.h"

namespace flopinj::reduce {
namespace {

// The causes of gaps as the format numbers them.
constexpr std::array kGapLines{LostLine::kIdleHostLate,     LostLine::kIdleQueued,
                               LostLine::kIdleBetweenSteps, LostLine::kIdleLongGaps,
                               LostLine::kIdleShortGaps,    LostLine::kIdleCopies};

// Of a launch, what has run by then.
uint64_t launches_until(const LaunchInTime& launch, uint64_t to) {
  const uint64_t ran = to - launch.begin_ns;
  if (ran == launch.length_ns) return AtOnce::kLaunch;
  if (ran < AtOnce::kLaunch) return (ran << 32) / launch.length_ns;
  return static_cast<uint64_t>((u128{ran} << 32) / launch.length_ns);
}

// Whole launches, as most are, take few bytes.
uint64_t packed(uint64_t launches) {
  return launches % AtOnce::kLaunch == 0 ? launches / AtOnce::kLaunch << 1
                                         : std::min(launches, UINT64_MAX >> 1) << 1 | 1;
}

// Numbers of a message, one after another.
class Numbers {
 public:
  explicit Numbers(const google::protobuf::RepeatedField<uint64_t>& of) : of_(of) {}
  bool any() const { return at_ < of_.size(); }
  bool bad() const { return bad_; }
  uint64_t next(uint64_t most = UINT64_MAX) {
    const uint64_t value = any() ? of_.Get(at_++) : UINT64_MAX;
    if (value <= most && !(value == UINT64_MAX)) return value;
    bad_ = true;
    return 0;
  }

 private:
  const google::protobuf::RepeatedField<uint64_t>& of_;
  int at_ = 0;
  bool bad_ = false;
};

}  // namespace

size_t AtOnceLine::Hash::operator()(const Key& key) const {
  uint64_t hash = key.size();
  for (const uint32_t row : key) hash = (hash ^ row) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

void AtOnceLine::launch(const Launch& launch) {
  if (launch.row == Launch::kCopy)
    return add_copy(launch.begin_ns, launch.begin_ns + launch.length_ns);
  touch(launch.row);
  if (!next(launch)) add_saturating(spread(launch.row).launches, kLaunch);
}

// Of key_; null where there is no room.
AtOnceLine::Set* AtOnceLine::set_of_key() {
  auto found = sets_.find(key_);
  if (found == sets_.end()) {
    if (sets_.size() >= kMostSets) return nullptr;
    found = sets_.try_emplace(key_).first;
    found->second.launches.resize(key_.size());
  }
  return &found->second;
}

AtOnceLine::Set* AtOnceLine::set_of(uint32_t row, uint32_t higher_row) {
  const uint64_t rows = uint64_t{row} << 32 | higher_row;
  Pair& pair = pairs_[(rows * 0x9E3779B97F4A7C15ULL) >> 56];
  if (std::exchange(pair.rows, rows) == rows) return pair.set;
  key_ = {row, higher_row};
  return pair.set = set_of_key();
}

AtOnceLine::Set* AtOnceLine::set_of_running() {
  if (running().size() > AtOnce::kMostRows) return nullptr;
  const auto row_of = [this](uint32_t i) { return running()[i].launch.row; };
  order_.clear();
  for (uint32_t i = 0; i < running().size(); ++i) {
    auto at = order_.end();
    while (at != order_.begin() && row_of(*(at - 1)) > row_of(i)) --at;
    order_.insert(at, i);
  }
  key_.clear();
  for (const uint32_t i : order_) key_.push_back(row_of(i));
  return set_of_key();
}

void AtOnceLine::stretch(uint64_t to) {
  if (running().size() == 1) return as_if_alone(to);
  if (running().size() == 2) return stretch_of_two(to);
  Set* const set = set_of_running();
  if (set == nullptr) return as_if_alone(to);
  add_saturating(set->ns, to - now());
  for (size_t i = 0; i < order_.size(); ++i) {
    Running& one = running()[order_[i]];
    const uint64_t until = launches_until(one.launch, to);
    add_saturating(set->launches[i], until - std::exchange(one.done, until));
  }
}

// As most are where kernels run at once.
void AtOnceLine::stretch_of_two(uint64_t to) {
  Running* one = &running()[0];
  Running* other = &running()[1];
  if (one->launch.row > other->launch.row) std::swap(one, other);
  Set* const set = set_of(one->launch.row, other->launch.row);
  if (set == nullptr) return as_if_alone(to);
  add_saturating(set->ns, to - now());
  uint64_t* launches = set->launches.data();
  for (Running* const running : {one, other}) {
    const uint64_t until = launches_until(running->launch, to);
    add_saturating(*launches++, until - std::exchange(running->done, until));
  }
}

void AtOnceLine::as_if_alone(uint64_t to) {
  const uint64_t ns = to - now(), kernels = running().size();
  if (kernels > 1) add_saturating(spread_ns_, ns);
  uint64_t number = 0;
  for (Running& one : running()) {
    const uint64_t until = launches_until(one.launch, to);
    Spread& of = spread(one.launch.row);
    add_saturating(of.launches, until - std::exchange(one.done, until));
    add_saturating(of.ns, ns / kernels + (number++ < ns % kernels ? 1 : 0));
  }
}

// By the rows' numbers in the summary, of which some may have one.
std::vector<std::pair<AtOnceLine::Key, AtOnceLine::Set>> AtOnceLine::numbered_sets(
    std::span<const uint32_t> rows) {
  std::vector<std::pair<Key, Set>> out;
  for (auto& [key, set] : sets_) {
    std::vector<std::pair<uint32_t, uint64_t>> parts;
    for (size_t i = 0; i < key.size(); ++i) parts.emplace_back(rows[key[i]], set.launches[i]);
    std::ranges::sort(parts);
    auto& [numbers, numbered] = out.emplace_back(Key{}, std::move(set));
    for (size_t i = 0; i < parts.size(); ++i) {
      numbers.push_back(parts[i].first);
      numbered.launches[i] = parts[i].second;
    }
  }
  std::ranges::sort(out, {}, [](const auto& one) -> const Key& { return one.first; });
  size_t size = 0;
  for (auto& one : out) {
    if (size > 0 && out[size - 1].first == one.first) {
      Set& to = out[size - 1].second;
      add_saturating(to.ns, one.second.ns);
      for (size_t i = 0; i < to.launches.size(); ++i)
        add_saturating(to.launches[i], one.second.launches[i]);
    } else if (&out[size++] != &one) {
      out[size - 1] = std::move(one);
    }
  }
  out.resize(size);
  return out;
}

std::optional<AtOnce> AtOnceLine::take(std::span<const uint32_t> rows, uint32_t all_rows) {
  if (!any()) return std::nullopt;
  run_until(UINT64_MAX);
  end_copies();
  struct Sums {
    uint64_t ns = 0, launches = 0;
    std::array<uint64_t, kGapLines.size()> gap_ns{}, beside_ns{};
  };
  std::vector<Sums> numbered(all_rows);
  for (const uint32_t row : touched_rows()) {
    const RowTimes& from = this->rows()[row].times;
    Sums& to = numbered[rows[row]];
    add_saturating(to.ns, from.ns);
    add_saturating(to.launches, from.launches < kLaunch ? from.launches * kLaunch : UINT64_MAX);
    if (row < spread_.size()) {
      add_saturating(to.ns, spread_[row].ns);
      add_saturating(to.launches, spread_[row].launches);
    }
    for (size_t i = 0; i < kGapLines.size(); ++i) {
      const LostLine line = kGapLines[i];
      add_saturating(to.gap_ns[i], from.gap_ns[RowTimes::place_of_gap(line)]);
      if (is_beside(line)) add_saturating(to.beside_ns[i], from.beside_ns[place_beside(line)]);
    }
  }
  AtOnce sums;
  sums.all_rows = all_rows;
  const auto sets = numbered_sets(rows);
  auto set = sets.begin();
  for (uint32_t row = 0; row < all_rows; ++row) {
    const Sums& of = numbered[row];
    if (of.launches > 0) {
      sums.parts.push_back({row, of.launches});
      sums.sets.push_back({of.ns, sums.parts.size() - 1, sums.parts.size()});
    }
    for (; set != sets.end() && set->first.front() == row; ++set) {
      const auto& [key, its] = *set;
      const size_t begin = sums.parts.size();
      for (size_t i = 0; i < key.size(); ++i) sums.parts.push_back({key[i], its.launches[i]});
      sums.sets.push_back({its.ns, begin, sums.parts.size()});
    }
    for (size_t i = 0; i < kGapLines.size(); ++i)
      if (of.gap_ns[i] > 0) sums.gaps.push_back({row, kGapLines[i], of.gap_ns[i], of.beside_ns[i]});
  }
  sums.spread_ns = spread_ns_;
  sums.edge_copies_ns = edge_copies_ns();
  sums.lost_copies = lost_copies();
  sums.host_ns = {host_ns().begin(), host_ns().end()};
  return sums;
}

uint64_t AtOnce::ns() const {
  uint64_t all = 0;
  for (const Set& set : sets) all += set.ns;
  for (const Gap& gap : gaps) all += gap.ns;
  return all;
}

trace::AtOnce AtOnce::message(uint32_t device) const {
  trace::AtOnce message;
  message.set_device(device);
  message.set_rows(all_rows);
  uint32_t before = 0;
  for (const Set& set : sets) {
    message.add_set(set.end - set.begin);
    message.add_set(set.ns);
    uint32_t last = std::exchange(before, parts[set.begin].row);
    for (size_t i = set.begin; i < set.end; ++i) {
      message.add_set(parts[i].row - std::exchange(last, parts[i].row));
      message.add_set(packed(parts[i].launches));
    }
  }
  before = 0;
  for (const Gap& gap : gaps) {
    message.add_gap(gap.row - std::exchange(before, gap.row));
    message.add_gap(
        static_cast<uint64_t>(std::ranges::find(kGapLines, gap.line) - kGapLines.begin()));
    message.add_gap(gap.ns);
    message.add_gap(gap.beside_ns);
  }
  message.set_spread_ns(spread_ns);
  message.set_edge_copies_ns(edge_copies_ns);
  message.set_copies_lost(lost_copies);
  for (const auto& [path, ns] : host_ns) {
    message.add_host(path);
    message.add_host(ns);
  }
  return message;
}

std::optional<AtOnce> AtOnce::of(const trace::AtOnce& message) {
  constexpr uint64_t kMostNs = uint64_t{1} << 62;
  if (message.rows() == 0 || message.rows() > UINT32_MAX) return std::nullopt;
  AtOnce sums;
  sums.all_rows = static_cast<uint32_t>(message.rows());
  u128 all = 0;
  uint64_t before = 0;
  const auto next_row = [&](Numbers& numbers, uint64_t last) {
    return last + numbers.next(sums.all_rows - std::min<uint64_t>(sums.all_rows, last + 1));
  };
  for (Numbers numbers(message.set()); numbers.any();) {
    const uint64_t size = numbers.next(kMostRows);
    const size_t begin = sums.parts.size();
    const uint64_t ns = numbers.next(kMostNs);
    all += ns;
    for (uint64_t i = 0, last = before; i < size; ++i) {
      last = next_row(numbers, last);
      if (i == 0) before = last;
      const uint64_t coded = numbers.next();
      if (numbers.bad() || (coded % 2 == 0 && coded >> 33 != 0)) return std::nullopt;
      sums.parts.push_back(
          {static_cast<uint32_t>(last), coded % 2 != 0 ? coded >> 1 : (coded >> 1) * kLaunch});
    }
    if (numbers.bad() || size == 0) return std::nullopt;
    sums.sets.push_back({ns, begin, sums.parts.size()});
  }
  before = 0;
  for (Numbers numbers(message.gap()); numbers.any();) {
    before = next_row(numbers, before);
    const uint64_t line = numbers.next(kGapLines.size() - 1);
    const uint64_t ns = numbers.next(kMostNs);
    const uint64_t beside_ns = numbers.next(ns);
    if (numbers.bad() || (beside_ns > 0 && !is_beside(kGapLines[line]))) return std::nullopt;
    sums.gaps.push_back({static_cast<uint32_t>(before), kGapLines[line], ns, beside_ns});
    all += ns;
  }
  if (sums.sets.empty() || all > kMostNs || message.host_size() % 2 != 0) return std::nullopt;
  for (int i = 0; i < message.host_size(); i += 2)
    add_saturating(sums.host_ns[message.host(i)], message.host(i + 1));
  sums.spread_ns = message.spread_ns();
  sums.edge_copies_ns = std::min(message.edge_copies_ns(), kMostNs);
  sums.lost_copies = message.copies_lost();
  return sums;
}

}  // namespace flopinj::reduce
