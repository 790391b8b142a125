#include "report/lost.h"

#include <algorithm>

#include "support/text.h"

namespace flopinj::reduce {

using enum LostLine;

const std::array<LostRow, 23> kLostRows{{
    {"idle", nullptr, "no kernel runs", kIdleStartEnd, kIdleShortGaps,
     "time of the devices in which no kernel ran"},
    {"idle_start_end", "idle", "start and end", kIdleStartEnd, kIdleStartEnd,
     "before a device's first kernel and after its last"},
    {"idle_copies", "idle", "copies alone", kIdleCopies, kIdleCopies,
     "memory was copied or filled, and no kernel ran"},
    {"idle_host_late", "idle", "host late", kIdleHostLate, kIdleHostLate,
     "the program called for the next kernel after the last one's end"},
    {"idle_queued", "idle", "launched in time", kIdleQueued, kIdleQueued,
     "the program had called for the next kernel before, and it waited"},
    {"idle_between_steps", "idle", "between steps", kIdleBetweenSteps, kIdleBetweenSteps,
     "gaps without a known cause, between kernels of different steps"},
    {"idle_long_gaps", "idle", "long gaps", kIdleLongGaps, kIdleLongGaps,
     "gaps without a known cause, of 100 us or more"},
    {"idle_short_gaps", "idle", "short gaps", kIdleShortGaps, kIdleShortGaps,
     "gaps without a known cause, shorter than 100 us"},
    {"communication", nullptr, "communication alone", kCommunication, kCommunication,
     "kernels of communication ran, and no other kernel"},
    {"uncounted", nullptr, "no FLOP count", kUncounted, kUncounted, "kernels without a FLOP count"},
    {"integer", nullptr, "integer products", kInteger, kInteger,
     "kernels whose tensor work is in integers: OP are no FLOP"},
    {"other", nullptr, "other kernels below peak", kOtherMemory, kOtherBelowRoof,
     "time of kernels that are no products, beyond their work at peak"},
    {"other_memory", "other", "memory", kOtherMemory, kOtherMemory,
     "of that, at the roof of memory: DRAM bytes / bandwidth"},
    {"other_below_roof", "other", "below the roof", kOtherBelowRoof, kOtherBelowRoof,
     "of that, below the roof of memory, too"},
    {"matrix", nullptr, "products below peak", kMatrixMemory, kMatrixBelowRoof,
     "time of products (tensor kernels, and operators that multiply matrices), beyond their work "
     "at peak"},
    {"matrix_memory", "matrix", "memory", kMatrixMemory, kMatrixMemory,
     "of that, at the roof of memory: DRAM bytes / bandwidth"},
    {"matrix_blocks", "matrix", "blocks", kMatrixBlocks, kMatrixBlocks,
     "of that, since blocks fill the multiprocessors unevenly"},
    {"matrix_below_roof", "matrix", "below the roof", kMatrixBelowRoof, kMatrixBelowRoof,
     "of that, for no reason that bytes and blocks explain"},
    {"profiler", nullptr, "slowed by measuring", kProfiler, kProfiler,
     "launches took longer while counters were read, and idle time beside them"},
    {"recompute", nullptr, "recomputation", kRecompute, kRecompute,
     "work at peak that is done again, as by activation checkpointing"},
    {"padding", nullptr, "padding", kPadding, kPadding,
     "work at peak of operators beyond their formula, such as padded tiles"},
    {"other_flop", nullptr, "other FLOP", kOtherFlop, kOtherFlop,
     "work at peak in no operator that has a formula"},
    {"model", nullptr, "model FLOP", kModel, kModel,
     "work at peak that the model needs by formula: MFU"},
}};

uint64_t LostLines::ns_of(const LostNs& ns) const {
  uint64_t sum = 0;
  for (size_t line = 0; line < kLostLines; ++line)
    if (has(line)) add_saturating(sum, ns[line]);
  return sum;
}

void LostMarks::add(const Doubt& doubt) { doubts_.push_back(doubt); }

void LostMarks::may_be(LostLines from, LostLines to, uint64_t most_ns) {
  if (most_ns == 0) return;
  add({to, Mark::kAtLeast, from, most_ns});
  add({from, Mark::kAtMost, to, most_ns});
}

void LostMarks::may_be_too(LostLines from, LostLines to) {
  add({to, Mark::kAtLeast, from, UINT64_MAX});
}

void LostMarks::about(LostLines lines, LostLines others) {
  add({lines, Mark::kEstimate, others, UINT64_MAX});
}

void LostMarks::add(const LostMarks& o) {
  doubts_.insert(doubts_.end(), o.doubts_.begin(), o.doubts_.end());
}

Mark LostMarks::of(LostLines lines, const LostNs& ns) const {
  constexpr uint64_t kFourDigits = 2000;
  const uint64_t sum = lines.ns_of(ns);
  Mark marks = Mark::kNone;
  for (const Doubt& doubt : doubts_) {
    const LostLines inside = doubt.lines & lines, outside = doubt.others.without(lines);
    if (inside.empty() || outside.empty()) continue;
    const uint64_t in_ns = inside.ns_of(ns), out_ns = outside.ns_of(ns);
    const uint64_t most = std::min(doubt.most_ns, doubt.mark == Mark::kAtLeast  ? out_ns
                                                  : doubt.mark == Mark::kAtMost ? in_ns
                                                                                : in_ns + out_ns);
    if (most > sum / kFourDigits) marks = marks | doubt.mark;
  }
  return marks;
}

std::pair<uint64_t, uint64_t> LostMarks::range_ns(LostLines lines, const LostNs& ns) const {
  uint64_t less = 0, more = 0;
  LostLines from, to;  // inside, which may be of others; outside, which may be of these
  for (const Doubt& doubt : doubts_) {
    const LostLines inside = doubt.lines & lines, outside = doubt.others.without(lines);
    if (inside.empty() || outside.empty()) continue;
    if (doubt.mark == Mark::kAtMost) {
      add_saturating(less, doubt.most_ns);
      from = from | inside;
    } else if (doubt.mark == Mark::kAtLeast) {
      add_saturating(more, doubt.most_ns);
      to = to | outside;
    }
  }
  const uint64_t sum = lines.ns_of(ns);
  return {sum - std::min(less, from.ns_of(ns)), sum + std::min(more, to.ns_of(ns))};
}

Figure LostReport::sum(LostLines lines, const std::string& phase, const LostNs& of) const {
  const auto found = marks_by_phase.find(phase);
  return (found == marks_by_phase.end() ? marks : found->second).sum(lines, of);
}

namespace {

// The same time, cut up in one way.
using Cut = std::vector<LostTime*>;

u128 sum_of(const Cut& cut, LostLine line) {
  u128 sum = 0;
  for (const LostTime* time : cut) add_saturating(sum, (*time)[line]);
  return sum;
}

// `amount`, which is their sum or less, in proportion to the weights; none gets more than its own.
std::vector<u128> in_proportion(const std::vector<u128>& weights, u128 amount) {
  u128 all = 0;
  for (const u128 weight : weights) add_saturating(all, weight);
  std::vector<u128> shares(weights.size());
  if (all == 0) return shares;
  const long double scale = static_cast<long double>(amount) / static_cast<long double>(all);
  u128 left = std::min(amount, all);
  for (size_t i = 0; i < weights.size(); ++i) {
    shares[i] = std::min(
        {weights[i], left, static_cast<u128>(static_cast<long double>(weights[i]) * scale)});
    left -= shares[i];
  }
  for (size_t i = 0; i < weights.size() && left > 0; ++i) {
    const u128 more = std::min(left, weights[i] - shares[i]);
    shares[i] += more;
    left -= more;
  }
  return shares;
}

class Settlement {
 public:
  explicit Settlement(LostDevice& device) : device_(device) {
    // What is before and after all kernels is in no phase and no step.
    device.parts.push_back({});
    if (device.steps.empty() || device.steps.front().first != 0)
      device.steps.insert(device.steps.begin(), LostDevice::Step{});
    for (auto& part : device.parts) cuts_[0].push_back(&part.time);
    for (auto& step : device.steps) cuts_[1].push_back(&step.time);
  }

  std::string settle() {
    if (!device_.wall_fs) {
      for (const LostLine line : kIdle) take(line, sum(line));
    } else if (!add_edges()) {
      return "the recording ended before its kernels did, by its clock";
    } else {
      take_windows();
      if (!take_unplaced())
        return "launches of which nothing says when they ran took longer than the idle time";
    }
    if (!take_excess()) return "above peak: FLOP, times or peaks are wrong";
    return adds_up() ? "" : "times contradict each other";
  }

 private:
  static constexpr std::array kIdle{kIdleCopies,       kIdleHostLate, kIdleQueued,
                                    kIdleBetweenSteps, kIdleLongGaps, kIdleShortGaps};
  static constexpr std::array kBeside{kIdleBetweenSteps, kIdleLongGaps, kIdleShortGaps};

  u128 sum(LostLine line) const { return sum_of(cuts_[0], line); }
  // Out of a line.
  void take(LostLine from, u128 amount) {
    for (const Cut& cut : cuts_) {
      std::vector<u128> weights;
      for (const LostTime* time : cut) weights.push_back((*time)[from]);
      move(cut, in_proportion(weights, amount), from, std::nullopt);
    }
  }
  static void move(const Cut& cut, const std::vector<u128>& shares, LostLine from,
                   std::optional<LostLine> to) {
    for (size_t i = 0; i < cut.size(); ++i) {
      (*cut[i])[from] -= shares[i];
      if (to) add_saturating((*cut[i])[*to], shares[i]);
    }
  }

  // Times of a damaged summary need not.
  bool adds_up() const {
    std::array<u128, 2> all{};
    for (size_t i = 0; i < cuts_.size(); ++i)
      for (const LostTime* time : cuts_[i])
        for (const u128 fs : time->fs) add_saturating(all[i], fs);
    return all[0] == all[1] && all[0] == device_.wall_fs.value_or(all[0]);
  }

  bool add_edges() {
    if (*device_.wall_fs < device_.span_fs) return false;
    const u128 edges = *device_.wall_fs - device_.span_fs;
    const u128 copies = std::min(edges, device_.edge_copies_fs);
    for (LostTime* time : {&device_.parts.back().time, &device_.steps.front().time}) {
      (*time)[kIdleStartEnd] = edges - copies;
      add_saturating((*time)[kIdleCopies], copies);
    }
    return true;
  }

  // Idle time beside launches that were made while counters were read.
  void take_windows() {
    u128 all = 0;
    for (const LostTime* time : cuts_[0])
      for (const u128 beside : time->beside_fs) add_saturating(all, beside);
    std::vector<u128> of_line;
    for (const LostLine line : kBeside) {
      u128 beside = 0;
      for (const LostTime* time : cuts_[0])
        add_saturating(beside, time->beside_fs[place_beside(line)]);
      of_line.push_back(beside);
    }
    const auto amounts = in_proportion(of_line, std::min(all, device_.windows_fs));
    for (size_t i = 0; i < kBeside.size(); ++i)
      for (const Cut& cut : cuts_) {
        std::vector<u128> weights;
        for (const LostTime* time : cut) weights.push_back(time->beside_fs[i]);
        move(cut, in_proportion(weights, amounts[i]), kBeside[i], kProfiler);
      }
  }

  // Between kernels first: what launched in a step is in the step's gaps.
  bool take_unplaced() {
    std::vector<u128> idle;
    u128 between = 0;
    for (const LostLine line : kIdle) {
      idle.push_back(sum(line));
      add_saturating(between, idle.back());
    }
    const u128 rest = device_.unplaced_fs - std::min(between, device_.unplaced_fs);
    const auto amounts = in_proportion(idle, device_.unplaced_fs - rest);
    for (size_t i = 0; i < kIdle.size(); ++i) take(kIdle[i], amounts[i]);
    if (rest > sum(kIdleStartEnd)) return false;
    take(kIdleStartEnd, rest);
    return true;
  }

  // Work beyond the time of its class, out of what the class lost, and then out of what the class
  // with most room did.
  bool take_excess() {
    u128 left = 0;
    for (size_t of = 0; of < kWorkClasses; ++of)
      add_saturating(left, take_from(of, device_.excess_fs[of]));
    for (u128 before = 0; left > 0 && left != before;) {
      before = left;
      size_t most = 0;
      for (size_t of = 1; of < kWorkClasses; ++of)
        if (room(of) > room(most)) most = of;
      left = take_from(most, left);
    }
    return left == 0;
  }
  static std::vector<LostLine> lines_of(size_t of) {
    switch (static_cast<KernelClass>(of)) {
      case KernelClass::kMatrix:
        return {kMatrixBelowRoof, kMatrixBlocks, kMatrixMemory};
      case KernelClass::kOther:
        return {kOtherBelowRoof, kOtherMemory};
      case KernelClass::kInteger:
        return {kInteger};
      case KernelClass::kUncounted:
        return {kUncounted};
      default:
        return {kCommunication};
    }
  }
  u128 room(size_t of) const {
    u128 room = 0;
    for (const LostLine line : lines_of(of)) add_saturating(room, sum(line));
    return room;
  }
  // What is left of the amount.
  u128 take_from(size_t of, u128 amount) {
    for (const LostLine line : lines_of(of)) {
      const u128 some = std::min(amount, sum(line));
      if (some == 0) continue;
      take(line, some);
      amount -= some;
    }
    return amount;
  }

  LostDevice& device_;
  std::array<Cut, 2> cuts_;
};

// Parts of a whole in whole nanoseconds: each is the difference of two that are rounded, so that
// whatever is added up, it adds up. A line begins where the line before it ends.
class RoundedLines {
 public:
  explicit RoundedLines(const LostFs& sums) {
    for (size_t line = 1; line < kLostLines; ++line) {
      until_fs_[line] = until_fs_[line - 1];
      add_saturating(until_fs_[line], sums[line - 1]);
    }
  }
  LostNs next(const LostFs& fs) {
    LostNs ns{};
    for (size_t line = 0; line < kLostLines; ++line) {
      const u128 before_ns = rounded(until_fs_[line]);
      add_saturating(until_fs_[line], fs[line]);
      ns[line] =
          static_cast<uint64_t>(std::min<u128>(rounded(until_fs_[line]) - before_ns, UINT64_MAX));
    }
    return ns;
  }

 private:
  static u128 rounded(u128 fs) { return fs / kFsInNs + (fs % kFsInNs >= kFsInNs / 2 ? 1 : 0); }
  LostFs until_fs_{};
};

}  // namespace

std::string settle(LostDevice& device) { return Settlement(device).settle(); }

void LostSums::add(uint32_t number, const LostDevice& device) {
  devices_[number] = {device.trace,        device.device,       parts_.next_place(),
                      steps_.next_place(), device.parts.size(), device.steps.size()};
  for (const auto& [phase, layer, time] : device.parts) parts_.push_back({phase, layer, time.fs});
  for (const auto& [first, steps, time] : device.steps) steps_.push_back({first, steps, time.fs});
  for (size_t line = 0; line < kLostLines; ++line) {
    for (const auto& part : device.parts) add_saturating(of_parts_[line], part.time.fs[line]);
    for (const auto& step : device.steps) add_saturating(of_steps_[line], step.time.fs[line]);
  }
}

u128 LostSums::all_fs() const {
  u128 all = 0;
  for (const u128 fs : of_parts_) add_saturating(all, fs);
  return all;
}

void LostSums::add_up(LostReport& report) {
  RoundedLines of_parts(of_parts_), of_steps(of_steps_);
  // As the report's parts grow those here go, but for what a later device has.
  std::vector<PackedRows<Part>::Place> needed;
  for (auto at = devices_.rbegin(); at != devices_.rend(); ++at) {
    const auto place = at->second.parts_at;
    const bool before = needed.empty() || place.chunk < needed.back().chunk;
    needed.push_back(before ? place : needed.back());
  }
  for (const auto& [number, device] : devices_) {
    parts_.forget_before(needed.back());
    needed.pop_back();
    LostReport::Process& process = report.processes[device.trace];
    auto part = parts_.from(device.parts_at, device.parts);
    for (size_t i = 0; i < device.parts; ++i, ++part) {
      const LostNs ns = of_parts.next(part->fs);
      for (size_t line = 0; line < kLostLines; ++line) {
        report.ns[line] += ns[line];
        report.capacity_ns += ns[line];
        process.ns[line] += ns[line];
        process.capacity_ns += ns[line];
      }
      if (ns != LostNs{})
        report.parts.push_back({device.trace, device.device, part->phase, part->layer, ns});
    }
    auto step = steps_.from(device.steps_at, device.steps);
    for (size_t i = 0; i < device.steps; ++i, ++step)
      if (const LostNs ns = of_steps.next(step->fs); ns != LostNs{})
        report.steps.push_back({device.trace, device.device, step->first, step->steps, ns});
  }
}

std::vector<const LostRow*> lost_rows_named(std::string_view name) {
  constexpr std::string_view kPrefix = "lost:";
  std::string wanted = lower(name);
  if (wanted.starts_with(kPrefix)) wanted.erase(0, kPrefix.size());
  std::vector<const LostRow*> found;
  for (const LostRow& row : kLostRows) {
    if (wanted == row.key) return {&row};
    if (wanted == lower(row.words)) found.push_back(&row);
  }
  return found;
}

std::optional<std::pair<double, double>> shares_by_process(const LostReport& lost,
                                                           const LostRow& row) {
  if (lost.processes.size() < 2) return std::nullopt;
  std::pair<double, double> shares{1, 0};
  for (const auto& [trace, process] : lost.processes) {
    if (process.capacity_ns == 0) continue;
    const double share = quotient(ns_of(process.ns, row), process.capacity_ns);
    shares = {std::min(shares.first, share), std::max(shares.second, share)};
  }
  return shares;
}

std::map<std::string, LostNs> ns_by_phase(const LostReport& lost) {
  std::map<std::string, LostNs> phases;
  for (const LostReport::Part& part : lost.parts) {
    LostNs& of = phases[part.phase];
    for (size_t line = 0; line < kLostLines; ++line) of[line] += part.ns[line];
  }
  return phases;
}

}  // namespace flopinj::reduce
