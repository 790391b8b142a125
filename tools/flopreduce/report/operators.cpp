#include "report/operators.h"

#include <algorithm>

#include "analytic/operator_flop.h"
#include "report/layers.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

u128 difference(u128 a, u128 b) { return a > b ? a - b : b - a; }

}  // namespace

OperatorsBuilder::OperatorsBuilder(const Model& model, const PhaseRules& rules,
                                   const OperatorMap& operators, const OperatorCalls& calls,
                                   const Formulas& formulas)
    : model_(model),
      rules_(rules),
      operators_(operators),
      calls_(calls),
      formulas_(formulas),
      join_(calls),
      forward_backward_(model, operators, join_) {}

void OperatorsBuilder::add(const Row& row, const Work& work, const Flop& flop,
                           const std::string& reason) {
  const std::string& phase = rules_.rules()[row.rule].phase;
  forward_backward_.add(row.path, phase, work);
  const uint32_t path = operators_.operator_of(row.path);
  if (path == kNoIndex) return;
  Place& place = places_[{path, phase}];
  place.work.add(work);
  if (place.reason.empty()) place.reason = reason;
  for (size_t i = 0; i < formulas_.precisions().size(); ++i)
    if (flop.by_precision[i] > 0 && formulas_.precisions()[i].starts_with("tensor"))
      place.tensor = true;
  place.kernels[{row.path, model_.signatures[row.signature].name}].add(
      {work.launches, work.flop, work.matrix_flop});
}

void OperatorsBuilder::KernelSum::add(const KernelSum& other) {
  add_saturating(launches, other.launches);
  add_saturating(flop, other.flop);
  add_saturating(matrix_flop, other.matrix_flop);
}

// The gradient that a backward operator takes has the shape of the forward operator's result.
const OperatorName* OperatorsBuilder::gradient_of(const Place& place) const {
  const OperatorName* found = nullptr;
  for (const auto& [where, kernel] : place.kernels) {
    const auto* backwards = join_.backwards_of(where.first);
    if (backwards == nullptr) continue;
    for (uint32_t path : *backwards) {
      const OperatorName* name = nullptr;
      for (; path > PathTable::kLost; path = model_.paths[path].parent) {
        name = operators_.name_of(path);
        const bool gradient =
            name != nullptr && name->has_sizes && !name->sizes.empty() &&
            (name->kind == OperatorKind::kAutograd || name->function().ends_with("_backward"));
        if (gradient) break;
      }
      if (path <= PathTable::kLost) continue;
      if (found != nullptr && found->sizes[0] != name->sizes[0]) return nullptr;
      if (found == nullptr || found->kind == OperatorKind::kAutograd) found = name;
    }
  }
  return found;
}

void OperatorsBuilder::add_forward(const Place& place, OperatorCall& call) const {
  const ModuleSettings* settings = nullptr;
  bool one = true;
  for (const auto& [where, kernel] : place.kernels) {
    const auto* forwards = join_.forwards_of(where.first);
    if (forwards == nullptr) continue;
    for (const auto& [path, launches] : *forwards) {
      const uint32_t forward = operators_.operator_of(path);
      if (forward == kNoIndex) continue;
      const OperatorName* name = operators_.name_of(forward);
      const ModuleSettings* around = operators_.settings_of(forward);
      if (call.forward == nullptr) settings = around;
      if (call.forward != nullptr && call.forward->function() != name->function()) one = false;
      if (around == nullptr || settings == nullptr || *settings != *around) settings = nullptr;
      call.forward = name;
    }
  }
  if (!one) call.forward = nullptr;
  if (call.settings == nullptr) call.settings = settings;
}

Formula OperatorsBuilder::formula_of(uint32_t path, const Place& place) const {
  const OperatorName& name = *operators_.name_of(path);
  OperatorCall call{.sizes = name.has_sizes ? &name.sizes : nullptr,
                    .settings = operators_.settings_of(path),
                    .gradient = gradient_of(place)};
  if (call.gradient != nullptr) call.output = &call.gradient->sizes[0];
  add_forward(place, call);
  return operator_formula(name, call);
}

std::pair<uint64_t, bool> OperatorsBuilder::calls_of(const Place& place,
                                                     const Formula& formula) const {
  // The kernel that does most, and all launches of the range it is in.
  const auto most = std::max_element(
      place.kernels.begin(), place.kernels.end(), [](const auto& a, const auto& b) {
        return a.second.flop != b.second.flop ? a.second.flop < b.second.flop
                                              : a.second.launches < b.second.launches;
      });
  const KernelSum& kernel = most->second;
  const uint64_t counted = calls_.calls.empty() ? 0 : calls_.calls[most->first.first];
  if (counted == 0) return {kernel.launches, false};
  // One number may stand for several calls, as for the two products of a square matrix's gradients:
  // then each launch does the work of a whole call.
  const u128 each = formula.flop ? formula.flop->flop(formulas_.fma()) : 0;
  const bool whole = each > 0 && kernel.launches > counted &&
                     quotient(kernel.flop, kernel.launches) >= 0.75 * static_cast<double>(each);
  return {whole ? kernel.launches : std::min(counted, std::max<uint64_t>(1, place.work.launches)),
          true};
}

OperatorFacts OperatorsBuilder::facts_of(uint32_t path, const std::string& phase,
                                         const Place& place) const {
  OperatorFacts facts;
  facts.name = operators_.name_of(path);
  facts.phase = phase;
  facts.fma = formulas_.fma();
  facts.work = place.work;
  facts.tensor = place.tensor;
  facts.unmeasured_reason = place.reason;
  facts.formula = formula_of(path, place);
  std::tie(facts.calls, facts.calls_counted) = calls_of(place, facts.formula);
  std::map<uint32_t, KernelSum> kernels;
  for (const auto& [where, sum] : place.kernels) kernels[where.second].add(sum);
  for (const auto& [kernel, sum] : kernels)
    facts.kernels.push_back({model_.names[kernel], sum.launches, sum.flop, sum.matrix_flop});
  std::stable_sort(facts.kernels.begin(), facts.kernels.end(),
                   [](const auto& a, const auto& b) { return a.flop > b.flop; });
  return facts;
}

// By function and phase. The cause is that of the place where most differs.
void OperatorsBuilder::add_types() {
  struct Sum {
    OperatorReport report;
    u128 executed = 0;  // where a formula is known too
    u128 most = 0;
    std::vector<std::string> causes;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const OperatorReport& place : report_.places) {
    Sum& sum = sums[{place.name, place.phase}];
    OperatorReport& type = sum.report;
    type.name = place.name;
    type.phase = place.phase;
    type.calls_counted = (type.calls == 0 || type.calls_counted) && place.calls_counted;
    add_saturating(type.calls, place.calls);
    type.work.add(place.work);
    add_saturating(type.formula_uncounted, place.formula_uncounted);
    if (place.formula_flop && place.work.flop_complete()) {
      if (!type.formula_flop) type.formula_flop = type.model_flop = 0;
      add_saturating(*type.formula_flop, *place.formula_flop);
      add_saturating(*type.model_flop, *place.model_flop);
      add_saturating(sum.executed, place.work.flop);
    }
    if (place.cause.empty()) continue;
    const u128 weight =
        place.formula_flop ? difference(place.work.flop, *place.formula_flop) : place.work.flop;
    if (sum.causes.empty() || weight > sum.most) {
      sum.most = weight;
      type.evidence = place.evidence;
      std::erase(sum.causes, place.cause);
      sum.causes.insert(sum.causes.begin(), place.cause);
    } else if (std::find(sum.causes.begin(), sum.causes.end(), place.cause) == sum.causes.end()) {
      sum.causes.push_back(place.cause);
    }
  }
  for (auto& [key, sum] : sums) {
    OperatorReport& type = sum.report;
    if (type.formula_flop && *type.formula_flop > 0)
      type.ratio = quotient(sum.executed, *type.formula_flop);
    for (const auto& cause : sum.causes) type.cause += (type.cause.empty() ? "" : ", ") + cause;
    report_.types.push_back(std::move(type));
  }
}

void OperatorsBuilder::add_place(uint32_t path, const Place& place, const OperatorFacts& facts) {
  OperatorReport& r = report_.places.emplace_back();
  r.name = facts.name->name;
  r.range = range_label(model_, path);
  r.layer = forward_backward_.layer_name(path);
  r.phase = facts.phase;
  r.calls = facts.calls;
  r.calls_counted = facts.calls_counted;
  r.work = place.work;
  if (facts.formula.flop) {
    r.formula_flop = facts.formula_flop();
    r.formula_uncounted = facts.formula.flop->times(facts.calls).uncounted;
    r.model_flop = model_flop(facts);
    if (place.work.flop_complete() && *r.formula_flop > 0)
      r.ratio = quotient(place.work.flop, *r.formula_flop);
    if (r.phase != "recompute") add_saturating(report_.formula_flop, *r.model_flop);
  }
  std::vector<uint32_t> launching;
  for (const auto& [where, kernel] : place.kernels) launching.push_back(where.first);
  forward_backward_.add_formula(path, r.phase, r.formula_flop, launching);
  const Cause cause = cause_of(facts);
  r.cause = cause.cause;
  r.evidence = cause.evidence;
  if (r.phase == "recompute") add_saturating(report_.recompute_flop, place.work.flop);
}

OperatorsReport OperatorsBuilder::build() {
  GradientFinder gradients(operators_, join_, calls_);
  for (const auto& [key, place] : places_) {
    OperatorFacts facts = facts_of(key.first, key.second, place);
    if (key.second == "backward") facts.gradients = gradients.add(key.first, facts);
    add_place(key.first, place, facts);
  }
  add_types();
  forward_backward_.finish(gradients, report_);
  const auto most_first = [](const OperatorReport& a, const OperatorReport& b) {
    return a.work.flop > b.work.flop;
  };
  std::stable_sort(report_.types.begin(), report_.types.end(), most_first);
  std::stable_sort(report_.places.begin(), report_.places.end(), most_first);
  report_.joined = calls_.joined_launches;
  report_.without_forward = calls_.without_forward;
  report_.other_operator = calls_.other_operator;
  report_.ambiguous = calls_.ambiguous;
  report_.out_of_window = calls_.out_of_window;
  return std::move(report_);
}

}  // namespace flopinj::reduce
