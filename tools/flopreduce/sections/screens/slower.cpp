#include "sections/screens/slower.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "sections/parts/cells.h"

namespace flopinj::reduce::slower {
namespace {

using enum LostLine;

constexpr LostLines kAll = LostLines::range(0, kLostLines), kOutside{kIdleStartEnd};

// Lines that both ledgers have; `causes`: the lines that they are made of.
struct Part {
  std::string words;
  LostLines lines;
  std::vector<const LostRow*> causes = {};
};

// Of a ledger without FLOP all kernels are one line, and without formulas all work is: then they
// are one here. Time before a device's first kernel and after its last one is in no step.
std::vector<Part> parts_of(const LostReport& a, const LostReport& b, LostLines in) {
  constexpr LostLines kWork{kPadding, kOtherFlop, kModel};
  const bool of_time = a.of_time() || b.of_time(), formula = a.formula && b.formula;
  std::vector<Part> parts;
  for (const LostRow& row : kLostRows) {
    if (row.parent != nullptr) {
      const bool known = a.tells(row.last) && b.tells(row.last);
      if (known && !parts.empty() && !(row.lines() & parts.back().lines).empty())
        parts.back().causes.push_back(&row);
      continue;
    }
    Part part{row.words, row.lines() & in};
    if (of_time && row.last == kUncounted) {
      part = {"kernels", (row.lines() | row.rest()).without({kProfiler})};
    } else if (of_time && !(a.tells(row.last) && b.tells(row.last))) {
      continue;
    } else if (!of_time && !formula && !(row.lines() & kWork).empty()) {
      if (row.last != kOtherFlop) continue;
      part = {a.formula == b.formula ? "FLOP, no formula known" : "FLOP at peak", kWork};
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

bool have_steps(const LostReport& a, const LostReport& b) {
  return a.device_steps > 0 && b.device_steps > 0;
}

// A ledger in time of one step of a device, or of all of it. Lines that it does not tell are none.
class Unit {
 public:
  Unit(const LostReport& lost, bool steps, double divisor = 1)
      : of_(lost), factor_(1 / divisor / (steps ? static_cast<double>(lost.device_steps) : 1)) {
    for (const LostRow& row : kLostRows)
      if (row.first == row.last && lost.tells(row.last)) told_ = told_ | row.lines();
  }
  Figure sum(LostLines lines) const { return of_.sum(lines & told_) * factor_; }
  double ns(LostLines lines) const { return static_cast<double>(lines.ns_of(of_.ns)) * factor_; }
  // From where to where it is, estimates left aside.
  std::pair<double, double> range(LostLines lines) const {
    const auto [least, most] = of_.marks.range_ns(lines & told_, of_.ns);
    return {static_cast<double>(least) * factor_, static_cast<double>(most) * factor_};
  }

 private:
  const LostReport& of_;
  double factor_;
  LostLines told_;
};

// The difference of two ledgers, in shares of A's whole.
class Difference {
 public:
  Difference(const Unit& a, const Unit& b, LostLines in) : a_(a), b_(b), whole_(a.ns(in)) {}

  double of(LostLines lines) const { return (b_.ns(lines) - a_.ns(lines)) / whole_; }
  // Nothing where it is not known on which side of this figure it is.
  std::optional<Mark> marks(LostLines lines) const {
    const Figure difference = b_.sum(lines) - a_.sum(lines);
    return difference.known() ? std::optional(difference.marks()) : std::nullopt;
  }
  bool shown(LostLines lines) const { return std::fabs(of(lines)) >= kShown; }
  // "+8.0 %", ">= +8.0 %", "+3.1 to +8.2 %"
  std::string words(LostLines lines) const {
    if (const auto known = marks(lines)) return marked_text(*known, text(of(lines)) + " %");
    const auto [a_least, a_most] = a_.range(lines);
    const auto [b_least, b_most] = b_.range(lines);
    return text((b_least - a_most) / whole_) + " to " + text((b_most - a_least) / whole_) + " %";
  }

 private:
  static constexpr double kShown = 0.0005;  // smaller shares print as 0
  static std::string text(double share) {
    const std::string shown = fixed(100 * share, 1);
    return shown.starts_with('-') ? shown : "+" + shown;
  }
  const Unit &a_, &b_;
  double whole_;
};

// " (host late +4.6 %)": of the causes that moved as the whole did the largest, if it is known.
std::string cause_words(const Part& part, const Difference& difference) {
  const double whole = difference.of(part.lines);
  const LostRow* largest = nullptr;
  double most = 0;
  for (const LostRow* row : part.causes) {
    const double by = difference.of(row->lines());
    if (!difference.shown(row->lines()) || !difference.marks(row->lines()) ||
        std::signbit(by) != std::signbit(whole) || std::fabs(by) <= most)
      continue;
    largest = row;
    most = std::fabs(by);
  }
  if (largest == nullptr) return "";
  return " (" + std::string(largest->words) + " " + difference.words(largest->lines()) + ")";
}

// Joins lines whose bounds leave open how much each of them changed: time that may belong to either
// of them belongs to both together. They stay apart where their sum is not known either.
void join_open(std::vector<Part>& parts, const Difference& difference) {
  Part all{"", {}};
  for (const Part& part : parts) {
    if (difference.marks(part.lines)) continue;
    all.words += (all.words.empty() ? "" : " and ") + part.words;
    all.lines = all.lines | part.lines;
    all.causes.insert(all.causes.end(), part.causes.begin(), part.causes.end());
  }
  if (all.lines.empty() || !difference.marks(all.lines)) return;
  std::erase_if(parts, [&](const Part& part) { return !(part.lines & all.lines).empty(); });
  parts.push_back(std::move(all));
}

// ": communication alone +8.0 %, products below peak +4.0 %, others -0.1 %"
std::string causes_words(std::vector<Part> parts, const Difference& difference) {
  constexpr size_t kMost = 4;
  join_open(parts, difference);
  std::erase_if(parts, [&](const Part& part) { return !difference.shown(part.lines); });
  std::ranges::stable_sort(parts, std::greater<>(),
                           [&](const Part& part) { return std::fabs(difference.of(part.lines)); });
  std::string words;
  LostLines others;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i >= kMost && parts.size() > kMost + 1) {
      others = others | parts[i].lines;
      continue;
    }
    words += (i == 0 ? ": " : ", ") + parts[i].words + " " + difference.words(parts[i].lines) +
             cause_words(parts[i], difference);
  }
  return words + (others.empty() ? "" : ", others " + difference.words(others));
}

}  // namespace

std::string words(const LostReport& a, const LostReport& b, const Normalization& n) {
  if (!a.known() || !b.known() || a.of_busy_time != b.of_busy_time) return "";
  const bool steps = have_steps(a, b);
  const LostLines in = steps ? kAll.without(kOutside) : kAll;
  const Unit of_a(a, steps, n.a), of_b(b, steps, n.b);
  const Difference difference(of_a, of_b, in);
  const auto marks = difference.marks(in);
  if (of_a.ns(in) <= 0 || !marks) return "";
  const double by = difference.of(in);
  std::string text = steps ? "B's step takes " : "B takes ";
  if (!difference.shown(in))
    text += "the same ";
  else
    text += marked_text(by > 0 ? *marks : inverse(*marks), percent_text(std::fabs(by))) +
            (by > 0 ? " more " : " less ");
  text += steps ? "time" : a.of_busy_time ? "busy time" : "device time";
  return text + causes_words(parts_of(a, b, in), difference);
}

Section section(const LostReport& a, const LostReport& b) {
  const auto steps = [](const LostReport& lost) { return lost.known() && lost.device_steps > 0; };
  if (!steps(a) && !steps(b)) return {};
  const Unit of_a(a, steps(a)), of_b(b, steps(b));
  Table table{"compared_lost",
              {{"name", ""},
               {"step_a_ns", "A", Kind::kNanoseconds, Worth::kMain},
               {"step_b_ns", "B", Kind::kNanoseconds, Worth::kMain},
               {"step_difference_ns", "B - A", Kind::kNanoseconds, Worth::kMain}}};
  const auto add = [&](const std::string& words, LostLines lines) {
    const Figure left = steps(a) ? of_a.sum(lines) : Figure();
    const Figure right = steps(b) ? of_b.sum(lines) : Figure();
    if (left.number().value_or(0) == 0 && right.number().value_or(0) == 0) return;
    table.rows.push_back({words, dashed(left), dashed(right), dashed(right - left)});
  };
  const auto parts = parts_of(steps(a) ? a : b, steps(b) ? b : a, kAll.without(kOutside));
  for (const Part& part : parts) add(part.words, part.lines);
  add("a step", kAll.without(kOutside));
  add("start and end, for each step", kOutside);
  return {{}, {}, std::move(table), {}};
}

}  // namespace flopinj::reduce::slower
