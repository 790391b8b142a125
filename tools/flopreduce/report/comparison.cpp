#include "report/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "phases/phases.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

// Sides whose normalised figures differ by less than this part are the same: what varies in
// rounding.
constexpr double kSame = 1e-9;

std::optional<double> per(const std::optional<u128>& x, const std::optional<u128>& by) {
  if (!x || !by || *by == 0) return std::nullopt;
  return quotient(*x, *by);
}

struct Side {
  std::optional<u128> launches, flop, time;
};
Side side_of(const Work* work) {
  Side s;
  if (work == nullptr) return s;
  s.launches = work->launches;
  if (work->flop_complete()) s.flop = work->flop;
  if (work->time.unknown == 0) s.time = work->time.ns;
  return s;
}

// Integers differ in the last digit, normalised ones by more than their division rounds. What is
// not known on a side does not.
bool differ(const Pair<u128>& p, const Normalization& n) {
  if (!p.a || !p.b) return false;
  if (n.name.empty()) return *p.a != *p.b;
  const double a = static_cast<double>(*p.a) / n.a;
  const double b = static_cast<double>(*p.b) / n.b;
  return std::fabs(a - b) > kSame * std::max(a, b);
}

// A null side has no launches there: its figures are those of `absent`, or nothing.
ComparedWork compared(std::string name, const Work* a, const Work* b, const Normalization& n,
                      const Work* absent = nullptr) {
  const Side x = side_of(a != nullptr ? a : absent);
  const Side y = side_of(b != nullptr ? b : absent);
  ComparedWork out;
  out.name = std::move(name);
  out.launches = {x.launches, y.launches};
  out.flop = {x.flop, y.flop};
  out.gpu_time_ns = {x.time, y.time};
  out.flop_per_launch = {per(x.flop, x.launches), per(y.flop, y.launches)};
  out.time_per_launch_ns = {per(x.time, x.launches), per(y.time, y.launches)};
  if (a == nullptr)
    out.change = Change::kAppeared;
  else if (b == nullptr)
    out.change = Change::kVanished;
  else if (differ(out.flop, n) || (n.name.empty() && differ(out.launches, n)) ||
           x.flop.has_value() != y.flop.has_value())
    out.change = Change::kChanged;
  return out;
}

// How much normalised GPU time, or FLOP where time is not known, a kernel moved.
double moved(const ComparedWork& w, const Normalization& n) {
  const auto difference = [&](const Pair<u128>& p) {
    return std::fabs(static_cast<double>(p.b.value_or(0)) / n.b -
                     static_cast<double>(p.a.value_or(0)) / n.a);
  };
  return difference(w.gpu_time_ns) + difference(w.flop) * 1e-15;
}

// Of one side: what has one identity, or one name.
struct Item {
  std::string name, mangled;
  Work work;
};
using Items = std::map<std::string, Item>;

Items by_name(const std::vector<PhaseReport>& phases) {
  Items items;
  for (const PhaseReport& phase : phases) items[phase.name] = {phase.name, {}, phase.work};
  return items;
}

void add(const KernelReport& kernel, std::string key, Items& items) {
  Item& item = items[std::move(key)];
  if (item.name.empty()) item = {kernel.name, kernel.mangled, {}};
  if (item.mangled != kernel.mangled) item.mangled.clear();  // of several
  item.work.add(kernel.work);
}

// A kernel is its mangled name. One that the other side lacks is its name as it is shown: what the
// compiler made of an anonymous namespace differs from build to build. Several of that name are
// added up.
std::pair<Items, Items> by_identity(const std::vector<KernelReport>& a,
                                    const std::vector<KernelReport>& b) {
  const auto names_of = [](const std::vector<KernelReport>& kernels) {
    std::set<std::string_view> names;
    for (const KernelReport& kernel : kernels) names.insert(kernel.mangled);
    return names;
  };
  const auto in_a = names_of(a), in_b = names_of(b);
  const auto items_of = [](const std::vector<KernelReport>& kernels, const auto& others) {
    Items items;
    for (const KernelReport& kernel : kernels)
      add(kernel, others.contains(kernel.mangled) ? "=" + kernel.mangled : "~" + kernel.name,
          items);
    return items;
  };
  return {items_of(a, in_b), items_of(b, in_a)};
}

std::vector<ComparedWork> match(const Items& a, const Items& b, const Normalization& n,
                                const Work* absent = nullptr) {
  std::vector<ComparedWork> out;
  const auto join = [&](const Item& shown, const Item* left, const Item* right) {
    out.push_back(compared(shown.name, left != nullptr ? &left->work : nullptr,
                           right != nullptr ? &right->work : nullptr, n, absent));
    if (left == nullptr || right == nullptr || left->mangled == right->mangled)
      out.back().mangled = shown.mangled;
  };
  for (const auto& [key, item] : a) {
    const auto other = b.find(key);
    join(item, &item, other == b.end() ? nullptr : &other->second);
  }
  for (const auto& [key, item] : b)
    if (!a.contains(key)) join(item, nullptr, &item);
  return out;
}

// Phases of the rules that are not among these.
std::vector<ComparedWork> absent_phases(const Report& a, const Report& b,
                                        const std::vector<ComparedWork>& present) {
  std::set<std::string> names;
  for (const Report* report : {&a, &b})
    for (const RuleReport& rule : report->rules)
      if (rule.phase != kNoPhase) names.insert(rule.phase);
  for (const ComparedWork& phase : present) names.erase(phase.name);
  std::vector<ComparedWork> out;
  const Work none;
  for (const auto& name : names) out.push_back(compared(name, &none, &none, {}));
  return out;
}

// Nothing where it is a limit only.
std::optional<double> certain(const Figure& figure) {
  return figure.bound() ? std::nullopt : figure.number();
}

std::optional<double> over_wall_time(const UtilizationMethod* method) {
  return method == nullptr ? std::nullopt : certain(method->wall);
}

std::optional<double> certain_ratio(const Report& report) { return certain(report.ratio.ratio); }

std::optional<double> covered_share(const Report& report) {
  const LedgerLine& all = report.ledger.total;
  if (all.launches == 0) return std::nullopt;
  return quotient(all.measured + all.extrapolated, all.launches);
}

std::optional<double> median_step(const Report& report) {
  return report.steps.wall_ns ? std::optional(report.steps.wall_ns->median) : std::nullopt;
}

}  // namespace

bool parse_normalization(const std::string& text, Normalization& out) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const std::string_view values = std::string_view(text).substr(equals + 1);
  const size_t comma = values.find_first_of(",:");
  if (comma == std::string_view::npos) return false;
  const auto a = parse_si(values.substr(0, comma));
  const auto b = parse_si(values.substr(comma + 1));
  if (!a || !b || *a <= 0 || *b <= 0) return false;
  out = {text.substr(0, equals), *a, *b};
  return true;
}

bool same_flop(const ComparedWork& work, const Normalization& normalization) {
  return work.flop.a && work.flop.b && !differ(work.flop, normalization);
}

const char* change_word(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kAppeared:
      return "appeared";
    case Change::kVanished:
      return "vanished";
    case Change::kChanged:
      break;
  }
  return "changed";
}

Comparison compare(const Report& a, const Report& b, const Normalization& normalization) {
  Comparison out;
  out.normalization = normalization;
  out.simulated = a.simulated.value_or(false) || b.simulated.value_or(false);
  out.hfu = {over_wall_time(a.utilization.hfu()), over_wall_time(b.utilization.hfu())};
  out.mfu = {over_wall_time(a.utilization.mfu()), over_wall_time(b.utilization.mfu())};
  out.coverage = {covered_share(a), covered_share(b)};
  out.backward_forward_ratio = {certain_ratio(a), certain_ratio(b)};
  out.step_time_ns = {median_step(a), median_step(b)};
  out.total = compared("total", &a.total, &b.total, normalization);
  const Work none;
  out.phases = match(by_name(a.phases), by_name(b.phases), normalization, &none);
  out.absent_phases = absent_phases(a, b, out.phases);
  const auto [left, right] = by_identity(a.kernels, b.kernels);
  out.kernels = match(left, right, normalization);
  std::stable_sort(out.kernels.begin(), out.kernels.end(), [&](const auto& x, const auto& y) {
    return moved(x, normalization) > moved(y, normalization);
  });
  return out;
}

}  // namespace flopinj::reduce
