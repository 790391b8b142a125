#include <algorithm>
#include <map>
#include <optional>

#include "analytic/operator_flop.h"
#include "report/operators/operators.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kBatched = "batched (torch.vmap): several products inside have other sizes";

// How well the work of an operator fits a node for `inner`, a function in it: 0 not at all.
int fitness(const OperatorName& outer, const OperatorName& inner) {
  if (outer.name == inner.name) return 3;
  if (same_kind_of_work(outer.name, inner.name)) return 2;
  return moves_data(inner.name) ? 0 : 1;
}

bool same(const Formula& a, const Formula& b) {
  return a.flop.has_value() == b.flop.has_value() && (!a.flop || *a.flop == *b.flop) &&
         a.again == b.again;
}

class CallForms {
 public:
  CallForms(const OperatorMap& operators, const OperatorJoin& join)
      : operators_(operators), join_(join) {}

  std::vector<CallForm> of(uint32_t path, const std::vector<uint32_t>& launching) const;

 private:
  // What the nodes of some calls say.
  struct Told {
    const OperatorName* gradient = nullptr;  // whose first size is the result's
    uint32_t function = kNoIndex;            // the range of the function that the node is named for
    uint64_t calls = 0, runs = 0;            // as in CallForm
  };
  std::vector<Told> told(uint32_t path, const std::vector<uint32_t>& launching) const;
  const OperatorName* gradient_in(uint32_t backward, uint32_t node) const;
  // Of a backward operator: the forward one's name and its module's settings, where all that it
  // belongs to agree.
  void add_forward(const std::vector<uint32_t>& launching, OperatorCall& call) const;
  Formula formula_of(uint32_t path, const OperatorCall& call, const Told& told) const;
  std::optional<Formula> batched(uint32_t path, const std::vector<uint32_t>& launching) const;
  // Attention of single products, of which a mask leaves out nothing.
  bool of_products(uint32_t path, const std::vector<uint32_t>& launching) const;

  const OperatorMap& operators_;
  const OperatorJoin& join_;
};

// The function that computes the gradient before its node: the name that says more.
const OperatorName* CallForms::gradient_in(uint32_t backward, uint32_t node) const {
  const OperatorName* found = nullptr;
  for (uint32_t path = backward; path != kNoIndex; path = operators_.parent_of(path)) {
    const OperatorName* name = operators_.name_of(path);
    if (name != nullptr && name->has_sizes && !name->sizes.empty()) {
      if (name->kind == OperatorKind::kFunction && name->function().ends_with("_backward"))
        found = name;
      else if (name->kind == OperatorKind::kAutograd && found == nullptr)
        found = name;
    }
    if (path == node) break;
  }
  return found;
}

std::vector<CallForms::Told> CallForms::told(uint32_t path,
                                             const std::vector<uint32_t>& launching) const {
  const OperatorName& own = *operators_.name_of(path);
  // By the result; where the operator itself has no sizes, also by those of the function inside.
  using Key = std::pair<std::vector<Shape>, Shape>;
  std::map<Key, Told> by_result;
  int best = 1;
  for (const uint32_t launch : launching) {
    const auto* backwards = join_.backwards_of(launch);
    if (backwards == nullptr) continue;
    std::map<Key, uint64_t> calls;  // several ranges of a node share its numbers
    for (const auto& [backward, joined] : *backwards) {
      const AutogradNode& node = *operators_.node_of(backward);
      const OperatorName* gradient = gradient_in(backward, node.range);
      const uint32_t function = operators_.function_of(launch, node);
      if (gradient == nullptr || (function == kNoIndex && node.function != 0)) continue;
      const OperatorName& inner = function == kNoIndex ? own : *operators_.name_of(function);
      const int fits = fitness(own, inner);
      if (fits < best) continue;
      if (fits > best) {
        best = fits;
        by_result.clear();
        calls.clear();
      }
      const Key key{own.has_sizes ? std::vector<Shape>() : inner.sizes, gradient->sizes[0]};
      Told& told = by_result[key];
      const bool better =
          told.gradient == nullptr || (told.gradient->kind == OperatorKind::kAutograd &&
                                       gradient->kind == OperatorKind::kFunction);
      if (better) told.gradient = gradient;
      told.function = function;
      if (gradient->kind == OperatorKind::kFunction) add_saturating(told.runs, joined.calls);
      uint64_t& of_result = calls[key];
      of_result = std::max(of_result, joined.numbers);
    }
    for (const auto& [result, numbers] : calls)
      if (const auto at = by_result.find(result); at != by_result.end())
        add_saturating(at->second.calls, numbers);
  }
  std::vector<Told> all;
  for (auto& [result, told] : by_result) {
    told.runs = std::max(told.runs, told.calls);
    all.push_back(told);
  }
  return all;
}

void CallForms::add_forward(const std::vector<uint32_t>& launching, OperatorCall& call) const {
  const OperatorSettings* settings = nullptr;
  bool one = true;
  for (const uint32_t launch : launching) {
    const auto* forwards = join_.forwards_of(launch);
    if (forwards == nullptr) continue;
    for (const auto& [path, launches] : *forwards) {
      const uint32_t forward = operators_.operator_of(path);
      if (forward == kNoIndex) continue;
      const OperatorName* name = operators_.name_of(forward);
      const OperatorSettings* around = operators_.settings_of(forward);
      if (call.forward == nullptr) settings = around;
      if (call.forward != nullptr && call.forward->function() != name->function()) one = false;
      if (around == nullptr || settings == nullptr || *settings != *around) settings = nullptr;
      call.forward = name;
    }
  }
  if (!one) call.forward = nullptr;
  if (call.settings == nullptr) call.settings = settings;
}

// By the operator's own sizes; where these do not fit its node's, by those of the function inside
// that the node is named for: of an image without a batch dimension aten::convolution has one.
Formula CallForms::formula_of(uint32_t path, const OperatorCall& call, const Told& told) const {
  const OperatorName& name = *operators_.name_of(path);
  OperatorCall own = call;
  own.gradient = told.gradient;
  if (told.gradient != nullptr) own.output = &told.gradient->sizes[0];
  const Formula formula = operator_formula(name, own);
  if (formula.flop || told.function == kNoIndex || told.function == path) return formula;
  const OperatorName& inner = *operators_.name_of(told.function);
  if (!same_kind_of_work(name.name, inner.name)) return formula;
  own.sizes = inner.has_sizes ? &inner.sizes : nullptr;
  own.forward = &name;
  const Formula of_inner = operator_formula(inner, own);
  return of_inner.flop ? of_inner : formula;
}

// torch.vmap calls a product with the sizes of one sample, and inside of it one of all samples: by
// that one's sizes, where there is only one. Nothing without.
std::optional<Formula> CallForms::batched(uint32_t path,
                                          const std::vector<uint32_t>& launching) const {
  std::map<uint32_t, u128> products;  // multiply-adds, by path; 0 of those that call others
  bool any = false;
  for (const uint32_t launch : launching) {
    u128 inner = 0;
    for (uint32_t at = launch; at != operators_.parent_of(path); at = operators_.parent_of(at)) {
      const OperatorName& name = *operators_.name_of(at);
      if (!factors_of(name)) continue;
      const Formula formula = operator_formula(name, {.sizes = &name.sizes});
      if (!formula.flop) continue;
      any = any || formula.flop->multiply_adds < inner;
      if (inner > 0) products[at] = 0;
      if (inner == 0) products.try_emplace(at, inner = formula.flop->multiply_adds);
    }
  }
  if (!any) return std::nullopt;
  std::erase_if(products, [](const auto& product) { return product.second == 0; });
  return products.size() == 1 ? Formula::of(products.begin()->second) : Formula::none(kBatched);
}

bool CallForms::of_products(uint32_t path, const std::vector<uint32_t>& launching) const {
  if (!same_kind_of_work(operators_.name_of(path)->name, "aten::scaled_dot_product_attention"))
    return false;
  return std::ranges::any_of(launching, [&](uint32_t at) {
    for (; at != path && at != kNoIndex; at = operators_.parent_of(at))
      if (factors_of(*operators_.name_of(at))) return true;
    return false;
  });
}

std::vector<CallForm> CallForms::of(uint32_t path, const std::vector<uint32_t>& launching) const {
  const OperatorName& name = *operators_.name_of(path);
  OperatorCall call{.sizes = name.has_sizes ? &name.sizes : nullptr,
                    .settings = operators_.settings_of(path)};
  add_forward(launching, call);
  if (of_products(path, launching)) call.settings = nullptr;
  std::vector<CallForm> forms;
  const Formula of_name = formula_of(path, call, {});
  for (const Told& one : told(path, launching))
    add_form(forms, {formula_of(path, call, one), one.calls, one.runs, !of_name.flop});
  if (forms.empty()) forms.push_back({of_name, 0});
  if (const auto all = batched(path, launching)) forms = {{*all, 0}};
  return forms;
}

}  // namespace

std::vector<CallForm> call_forms(const OperatorMap& operators, const OperatorJoin& join,
                                 uint32_t path, const std::vector<uint32_t>& launching) {
  return CallForms(operators, join).of(path, launching);
}

void add_form(std::vector<CallForm>& forms, const CallForm& form) {
  const auto known = std::find_if(forms.begin(), forms.end(), [&](const CallForm& one) {
    return same(one.formula, form.formula);
  });
  if (known == forms.end()) return forms.push_back(form);
  add_saturating(known->calls, form.calls);
  add_saturating(known->runs, form.runs);
}

std::vector<CallForm> even_forms(u128 total, uint64_t calls) {
  if (calls == 0) return {{Formula::none("it was not called"), 0}};
  const auto more = static_cast<uint64_t>(total % calls);
  const auto form = [](u128 flop, uint64_t times) {
    return CallForm{.formula = Formula::of(OperatorFlop{0, flop, 0}), .calls = times};
  };
  std::vector<CallForm> forms = {form(total / calls, calls - more)};
  if (more > 0) forms.push_back(form(total / calls + 1, more));
  return forms;
}

void deal_calls(std::vector<CallForm>& forms, uint64_t calls) {
  uint64_t all = 0, before = 0;
  uint64_t dealt = 0;
  for (const CallForm& form : forms) add_saturating(all, form.calls);
  for (CallForm& form : forms) {
    add_saturating(before, form.calls);
    const bool last = &form == &forms.back();
    bool overflow = false;
    const u128 end = last || all == 0 ? u128{calls} : mul_div_round(calls, before, all, overflow);
    form.calls = static_cast<uint64_t>(end) - dealt;
    dealt = static_cast<uint64_t>(end);
  }
}

}  // namespace flopinj::reduce
