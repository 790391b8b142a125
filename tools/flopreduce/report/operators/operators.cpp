#include "report/operators/operators.h"

#include <algorithm>

#include "analytic/attention_kernels.h"
#include "analytic/operator_flop.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kWhichForm =
    "operators alike but for the size of their result: it is unknown which of them these are";

constexpr const char* kNotGiven = "the program gave no number 'flop' to this range";
constexpr const char* kSparse = "sparse operands: no range says how many of them are not zero";

// What the table of operators calls launches outside of all operators.
const OperatorName& outside() {
  static const OperatorName kName = [] {
    OperatorName name;
    name.name = kAttentionOutside;
    return name;
  }();
  return kName;
}

u128 difference(u128 a, u128 b) { return a > b ? a - b : b - a; }

}  // namespace

void OperatorsBuilder::add(const Row& row, const Work& work, bool tensor,
                           const std::string& reason) {
  const std::string& phase = from_.rules.rules()[row.rule].phase;
  report_.has_forward = report_.has_forward || (phase == "forward" && work.launches > 0);
  const uint32_t kernel = tables_.signatures[row.signature].name;
  forward_backward_.add(row.path, phase, kernel, work);
  if (phase == "backward" && operators_.own_number_of(row.path) != kNoIndex)
    add_saturating(report_.differentiated_again, work.launches);
  if (from_.rules.leaves_unclear(row.rule) && (work.flop > 0 || !work.flop_complete()))
    forward_backward_.add_unclear(row.path);
  const uint32_t path = operators_.operator_of(row.path);
  add_unclear(row, work, tensor);
  if (no_training(row.rule)) forward_backward_.add_outside(row.path, work);
  const auto& attention = attention_of(kernel);
  if (attention) attention_.add(*attention, phase, work.matrix_flop);
  const GivenFormula* const given = given_for(path, kernel);
  if (path == kNoIndex && !attention && given == nullptr) {
    const bool product = work.flop_known() || kernel_precisions(kernel).product;
    const ModelFlop model = product ? ModelFlop::without_formula(work, tensor) : ModelFlop();
    models_[phase] += model;
    forward_backward_.add_model(row.path, phase, model, {row.path});
    return;
  }
  if (path != kNoIndex) {
    if (work.matrix_flop > 0 || !work.flop_complete()) products_.insert(row.path);
    add_saturating(launches_[row.path], work.launches);
  }
  Place& place = given != nullptr   ? outside_[{row.path, phase, kernel}]
                 : path == kNoIndex ? outside_[{row.path, phase, kNoIndex}]
                                    : places_[{path, phase}];
  if (given != nullptr) {
    const Signature& shape = tables_.signatures[row.signature];
    place.given = given;
    add_saturating(place.given_flop,
                   times_saturating(given->of_launch(shape.grid, shape.block).flop->arithmetic,
                                    u128{work.launches}));
  }
  place.work.add(work);
  place.tensor = place.tensor || tensor;
  if (work.matrix_flop > 0) {
    const u128 before = std::exchange(place.product, work.matrix_flop / work.launches);
    place.products_alike = place.products_alike && (before == 0 || before == place.product);
  }
  add_saturating(place.calls, row.counts.calls);
  add_saturating(place.graph, row.counts.graph);
  if (place.reason.empty()) place.reason = reason;
  place.kernels[{row.path, kernel}].add({work.launches, work.incomplete(), work.flop,
                                         work.matrix_flop, work.unscreened > 0 ? work.flop : 0,
                                         tensor});
}

// The launches of a rule are in no phase of training, or it is not known in which.
bool OperatorsBuilder::no_training(uint32_t rule) const {
  return rule == from_.rules.default_rule() || from_.rules.leaves_unclear(rule) ||
         from_.rules.rules()[rule].inside == PhaseRules::Inside::kHook;
}

bool OperatorsBuilder::may_be_gradient(const Row& row, const Work& work) const {
  return no_training(row.rule) && forward_backward_.may_be_gradient(row.path, work);
}

// What may have run forward: numbers do not say it, nor do those of launches from graphs, which are
// of their capture.
void OperatorsBuilder::add_unclear(const Row& row, const Work& work, bool tensor) {
  const std::string& phase = from_.rules.rules()[row.rule].phase;
  const bool other = row.rule == from_.rules.default_rule(), optimizer = phase == "optimizer";
  const bool unplaced = row.counts.graph > 0 && (other || optimizer);
  if (!unplaced && !from_.rules.leaves_unclear(row.rule)) return;
  const uint32_t path = operators_.operator_of(row.path);
  const bool multiplies =
      tensor || (path != kNoIndex && is_matrix_work(operators_.name_of(path)->name));
  if (!optimizer || multiplies) unclear_[phase] += ModelFlop::without_formula(work, multiplies);
}

// The paths that its launches are in.
std::vector<uint32_t> OperatorsBuilder::Place::launching() const {
  std::vector<uint32_t> paths;
  for (const auto& [where, kernel] : kernels)
    if (paths.empty() || paths.back() != where.first) paths.push_back(where.first);
  return paths;
}

// Launches that do matrix work.
uint64_t OperatorsBuilder::Place::products() const {
  uint64_t launches = 0;
  for (const auto& [where, sum] : kernels)
    if (sum.matrix_flop > 0) add_saturating(launches, sum.launches);
  return launches;
}

const GivenFormula* OperatorsBuilder::given_for(uint32_t path, uint32_t kernel) {
  if (from_.given == nullptr) return nullptr;
  if (path != kNoIndex && has_operator_formula(*operators_.name_of(path))) return nullptr;
  const auto [entry, fresh] = given_.try_emplace(kernel, nullptr);
  if (fresh) {
    const std::string& name = tables_.names[kernel];
    entry->second = from_.given->find(GivenFormula::Of::kKernel, name);
    if (entry->second == nullptr)
      entry->second = from_.given->find(GivenFormula::Of::kKernel, demangle(name));
  }
  return entry->second;
}

const OperatorName* OperatorsBuilder::name_of_kernel(uint32_t kernel, const GivenFormula* given) {
  OperatorName& name = kernel_names_.emplace_back();
  name.kind = OperatorKind::kRange;
  name.name = kernel_texts_.emplace_back(demangle(tables_.names[kernel]));
  name.given = given;
  return &name;
}

std::vector<CallForm> OperatorsBuilder::forms_of(uint32_t path, const Place& place) const {
  const OperatorName& name = *operators_.name_of(path);
  if (name.kind == OperatorKind::kRange) {
    if (name.given != nullptr) return {{name.given->of_call({}), 0}};
    const auto flop = operators_.flop_given(path);
    return flop ? even_forms(flop->total, flop->calls)
                : std::vector{CallForm{Formula::none(kNotGiven), 0}};
  }
  if (name.given == nullptr && is_sparse(place)) return {{Formula::none(kSparse), 0}};
  return call_forms(operators_, join_, path, place.launching());
}

// Graphs launch what was given at their capture, once.
std::optional<OperatorMap::GivenFlop> OperatorsBuilder::given_here(uint32_t path,
                                                                   const Place& place) const {
  const OperatorName& name = *operators_.name_of(path);
  if (name.kind != OperatorKind::kRange || name.given != nullptr || place.graph > 0)
    return std::nullopt;
  const auto first = places_.lower_bound({path, {}});
  const bool alone = std::next(first) == places_.end() || std::next(first)->first.first != path;
  return alone ? operators_.flop_given(path) : std::nullopt;
}

std::pair<u128, uint64_t> OperatorsBuilder::in_all_phases(uint32_t path) const {
  u128 matrix_flop = 0;
  uint64_t calls = 0;
  for (auto at = places_.lower_bound({path, {}}); at != places_.end() && at->first.first == path;
       ++at) {
    add_saturating(matrix_flop, at->second.work.matrix_flop);
    add_saturating(calls, at->second.calls);
  }
  return {matrix_flop, calls};
}

// Nodes say of which form the calls are that ran forward, and nothing of those in another phase.
bool OperatorsBuilder::ran_forward_beside(uint32_t path, const std::string& phase) const {
  return !is_forward(phase) && phase != "recompute" && phase != "backward" &&
         (places_.contains({path, "forward"}) || places_.contains({path, "loss"}));
}

bool OperatorsBuilder::is_sparse(const Place& place) const {
  return std::ranges::any_of(place.kernels, [&](const auto& kernel) {
    return operators_.sparse(kernel.first.first) ||
           multiplies_sparse(tables_.names[kernel.first.second]);
  });
}

// Of a path with counted calls, in one phase, and whether exactly so many. Numbers count a path's
// calls in all phases: each is taken to launch as much.
std::pair<uint64_t, bool> OperatorsBuilder::calls_here(const Place& place, uint32_t path) const {
  uint64_t here = 0;
  for (const auto& [where, sum] : place.kernels)
    if (where.first == path) add_saturating(here, sum.launches);
  const uint64_t all = std::max(here, launches_.at(path));
  const u128 share = u128{calls_.calls[path]} * here;
  return {std::max<uint64_t>(1, static_cast<uint64_t>(share / all)), share % all == 0};
}

std::pair<uint64_t, bool> OperatorsBuilder::calls_of(uint32_t path, const Place& place) const {
  const bool is_call = operators_.is_call(path);
  if (calls_.recorded && place.graph == 0 && is_call) {
    if (place.calls > 0) return {place.calls, true};
    // They began in another phase, with a cast or a product of their own.
    if (const uint64_t calls = in_all_phases(path).second; calls > 0)
      return {std::min(calls, place.work.launches), false};
  }
  // The kernel that does most, and all launches of the range it is in.
  const auto most = std::max_element(
      place.kernels.begin(), place.kernels.end(), [](const auto& a, const auto& b) {
        return a.second.flop != b.second.flop ? a.second.flop < b.second.flop
                                              : a.second.launches < b.second.launches;
      });
  const KernelSum& kernel = most->second;
  path = most->first.first;
  if (calls_.calls.empty() || calls_.calls[path] == 0) return {kernel.launches, false};
  const auto [here, exact] = calls_here(place, path);
  // One number may stand for several calls inside of another operator.
  if (!is_call && kernel.launches > here) return {kernel.launches, false};
  return {std::min(here, std::max<uint64_t>(1, place.work.launches)), exact};
}

void OperatorsBuilder::add_forms_again(std::map<const Place*, std::vector<CallForm>>& forms) const {
  std::map<const OperatorName*, std::vector<CallForm>> by_name;
  for (const auto& [key, place] : places_)
    if (key.second != "recompute")
      for (const CallForm& form : forms[&place])
        if (form.formula.flop) add_form(by_name[operators_.name_of(key.first)], form);
  for (const auto& [key, place] : places_) {
    auto& own = forms[&place];
    if (key.second != "recompute" || own.size() != 1 || own.front().formula.flop) continue;
    const auto found = by_name.find(operators_.name_of(key.first));
    if (found == by_name.end()) continue;
    own = found->second;
    for (CallForm& form : own) form.calls = form.runs;
  }
}

OperatorFacts OperatorsBuilder::facts_of(uint32_t path, const std::string& phase,
                                         const Place& place, std::vector<CallForm> forms) {
  OperatorFacts facts;
  facts.name = operators_.name_of(path);
  facts.phase = phase;
  facts.fma = from_.formulas.fma();
  facts.work = place.work;
  facts.tensor = place.tensor;
  facts.unmeasured_reason = place.reason;
  facts.attention = formulas_ ? &attention_ : nullptr;
  facts.forms = std::move(forms);
  std::tie(facts.calls, facts.calls_counted) = calls_of(path, place);
  const bool range = facts.name->kind == OperatorKind::kRange;
  if (const auto given = given_here(path, place))
    facts.calls = given->calls, facts.calls_counted = true;
  else if (range)
    facts.calls_counted = false;
  // A call's product may have run in another phase than its casts. Checkpointing leaves its last
  // operator by an exception: the range is there, and no product.
  const auto& first = facts.forms.front().formula;
  if (first.flop && first.flop->multiply_adds > 0 && place.work.flop_complete() &&
      (phase == "recompute" || in_all_phases(path).first > 0))
    facts.calls = std::min(facts.calls, place.products());
  // Calls without backward work may be of any form. So may calls that ran again; where gradients
  // are differentiated, calls that ran once more are not among the runs.
  uint64_t told = 0;
  for (const CallForm& form : facts.forms) add_saturating(told, form.calls);
  const bool several = !range && (facts.forms.size() > 1 ||
                                  (facts.forms.front().by_result && !place.products_alike));
  const bool again = phase == "recompute" && report_.differentiated_again > 0;
  if (several && (told != facts.calls || again || ran_forward_beside(path, phase))) {
    if (calls_.recorded || phase == "recompute") facts.forms = {{Formula::none(kWhichForm), 0}};
    facts.calls_counted = false;
  }
  deal_calls(facts.forms, facts.calls);
  facts.formula = facts.forms.front().formula;
  for (const CallForm& form : facts.forms)
    if (!form.formula.flop) facts.formula = form.formula;
  set_kernels(place, facts);
  return facts;
}

void OperatorsBuilder::set_kernels(const Place& place, OperatorFacts& facts) {
  std::map<uint32_t, KernelSum> kernels;
  for (const auto& [where, sum] : place.kernels) kernels[where.second].add(sum);
  for (const auto& [kernel, sum] : kernels)
    facts.kernels.push_back({sum, tables_.names[kernel], attention_of(kernel)});
  std::stable_sort(facts.kernels.begin(), facts.kernels.end(),
                   [](const auto& a, const auto& b) { return a.flop > b.flop; });
}

const KernelPrecisions& OperatorsBuilder::kernel_precisions(uint32_t name) {
  const auto [entry, fresh] = kernel_precisions_.try_emplace(name);
  if (fresh) entry->second = precisions_of_kernel(tables_.names[name]);
  return entry->second;
}

bool OperatorsBuilder::without_products(const Place& place) {
  return std::ranges::none_of(place.kernels, [&](const auto& kernel) {
    return kernel_precisions(kernel.first.second).product;
  });
}

// Of its products; of an operator without any, of its arithmetic. Types are those of the range that
// launches: an operator around it may have cast its operands, as autocast and libraries do.
PrecisionSet OperatorsBuilder::precisions_of(const Place& place) {
  constexpr std::string_view kPyTorchs = "aten::";
  const bool none = without_products(place);
  PrecisionSet all;
  for (const auto& [where, sum] : place.kernels) {
    const KernelPrecisions& kernel = kernel_precisions(where.second);
    PrecisionSet its = kernel.precisions;
    if (!kernel.product && !none) continue;
    const OperatorName* name = operators_.name_of(where.first);
    if (its.empty() && name != nullptr && name->name.starts_with(kPyTorchs))
      its = precisions_of_types(name->types);
    if (its.empty()) return {};
    all |= its;
  }
  return all;
}

// By function and phase. The cause is that of the place where most differs.
void OperatorsBuilder::add_types() {
  struct Sum {
    OperatorReport report;
    u128 executed = 0;              // where a formula is known too
    std::optional<u128> uncounted;  // by formula, of places with launches without a count
    ModelFlop uncounted_model;
    bool lacking = false;  // of some places no formula is known
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
    if (type.given.find(place.given) == type.given.npos)
      type.given += (type.given.empty() ? "" : ", ") + place.given;
    add_saturating(type.formula_uncounted, place.formula_uncounted);
    type.formula_at_most = type.formula_at_most || place.formula_at_most;
    type.formula_partial = type.formula_partial || place.formula_partial;
    if (place.formula_flop && place.work.flop_complete()) {
      type.formula_flop = type.formula_flop.value_or(0);
      add_saturating(*type.formula_flop, *place.formula_flop);
      type.model += place.model;
      add_saturating(sum.executed, place.work.flop);
    } else {
      type.formula_partial = true;
      sum.lacking = sum.lacking || !place.formula_flop || place.formula_partial;
      if (!place.formula_flop) {
        if (place.model.known()) type.model += place.model;
      } else {
        sum.uncounted = sum.uncounted.value_or(0);
        add_saturating(*sum.uncounted, *place.formula_flop);
        sum.uncounted_model += place.model;
      }
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
    // With nothing to compare it with, the formula is of all places.
    if (!type.formula_flop && sum.uncounted) {
      type.formula_flop = sum.uncounted;
      type.model += sum.uncounted_model;
      type.formula_partial = sum.lacking;
    } else if (type.formula_flop && *type.formula_flop > 0)
      type.ratio = quotient(sum.executed, *type.formula_flop);
    for (const auto& cause : sum.causes) type.cause += (type.cause.empty() ? "" : ", ") + cause;
    report_.types.push_back(std::move(type));
  }
}

void OperatorsBuilder::add_place(uint32_t path, const Place& place, const OperatorFacts& facts) {
  OperatorReport& r = report_.places.emplace_back();
  r.name = facts.name->name;
  r.range = tables_.range_label(path);
  r.layer = forward_backward_.layer_name(path);
  r.path = path;
  r.phase = facts.phase;
  r.calls = facts.calls;
  r.calls_counted = facts.calls_counted;
  r.work = place.work;
  if (facts.name->has_given_formula())
    r.given = facts.name->given != nullptr ? facts.name->given->source : "the program";
  if (facts.formula.flop) {
    r.formula_flop = facts.formula_flop();
    r.formula_uncounted = facts.algorithm().uncounted;
    if (place.work.flop_complete() && *r.formula_flop > 0)
      r.ratio = quotient(place.work.flop, *r.formula_flop);
  }
  r.formula_at_most = formula_is_at_most(facts);
  const Cause cause = cause_of(facts);
  r.cause = cause.cause;
  r.evidence = cause.evidence;
  r.formula_partial = r.formula_flop && r.cause == kComplexNumbers;
  r.model = model_of(facts, cause);
  r.of_model = r.model.known() && report_.counts_for_model(r.phase);
  if (!place.work.flop_complete()) {
    r.precisions = precisions_of(place);
    if (facts.formula.flop) add_by_formula(place, facts, r);
  }
  models_[r.phase] += r.model;
  forward_backward_.add_model(path, r.phase, r.model, place.launching());
  forward_backward_.add_calls(path, facts, multiplies_more(facts, cause));
  if (r.phase == "recompute") report_.recompute.add(place.work);
}

// As the algorithm executes the calls, without gradients that nobody computed.
void OperatorsBuilder::add_by_formula(const Place& place, const OperatorFacts& facts,
                                      OperatorReport& report) {
  const u128 needed = facts.formula_flop();
  const double computed =
      needed == 0 ? 1 : std::min(1.0, *report.model.flop().number() / static_cast<double>(needed));
  const OperatorFlop algorithm = facts.algorithm();
  const double flop = static_cast<double>(algorithm.flop(facts.fma)) * computed;
  const bool by_products =
      (algorithm.multiply_adds > 0 || facts.name->has_given_formula()) && !without_products(place);
  const auto shares = [&](uint32_t kernel) {
    return !by_products || kernel_precisions(kernel).product;
  };
  uint64_t all = 0;
  for (const auto& [where, sum] : place.kernels)
    if (shares(where.second)) add_saturating(all, sum.launches);
  for (const auto& [where, sum] : place.kernels) {
    if (sum.incomplete == 0) continue;
    ByFormula its{.launches = sum.incomplete};
    if (shares(where.second)) {
      const auto part = static_cast<u128>(flop * quotient(sum.incomplete, all) + 0.5);
      its.flop = part - std::min(part, sum.in_part);
      if (has(report.model.marks(), Mark::kAtMost)) its.perhaps = its.flop;
      if (report.precisions.empty())
        its.open = its.flop;
      else
        its.precisions = report.precisions;
    }
    report.work.by_formula.add(its);
    by_formula_[{where.first, report.phase, where.second}].add(its);
  }
}

ByFormula OperatorsBuilder::by_formula(const Row& row, uint64_t incomplete) {
  const std::string& phase = from_.rules.rules()[row.rule].phase;
  const auto found = by_formula_.find({row.path, phase, tables_.signatures[row.signature].name});
  if (found == by_formula_.end() || incomplete == 0) return {};
  ByFormula& left = found->second;
  const Part part{0, std::min(incomplete, left.launches), std::max<uint64_t>(1, left.launches)};
  ByFormula its{.precisions = left.precisions};
  const auto hand_out = [&]<typename Number>(Number& to, Number& from) {
    to = static_cast<Number>(part.of(u128{from}));
    from -= to;
  };
  for_each_pair(ByFormula::sums(its), ByFormula::sums(left), hand_out);
  return its;
}

void OperatorsBuilder::add_model() {
  std::map<std::string, ModelFlop>& by_phase = report_.model_by_phase;
  for (const auto& [phase, model] : models_)
    if (report_.counts_for_model(phase)) by_phase[phase] += model;
  if (report_.has_forward)
    for (const auto& [phase, model] : unclear_) by_phase[phase] += model;
  for (const auto& [phase, model] : by_phase) report_.model += model;
  if (report_.recompute_unclear()) report_.model = report_.model.with_at_most();
  report_.forward_model = models_["forward"];
}

const std::optional<AttentionKernel>& OperatorsBuilder::attention_of(uint32_t kernel) {
  const auto [entry, fresh] = attention_kernels_.try_emplace(kernel);
  if (fresh) entry->second = attention_kernel(tables_.names[kernel]);
  return entry->second;
}

// Attention outside of all operators, as a compiled region has it: by its kernels only.
void OperatorsBuilder::add_outside() {
  for (const auto& [key, place] : outside_) {
    const auto& [path, phase, kernel] = key;
    if (place.given == nullptr && (!formulas_ || place.work.matrix_flop == 0)) {
      const ModelFlop model = ModelFlop::without_formula(place.work, place.tensor);
      models_[phase] += model;
      forward_backward_.add_model(path, phase, model, {path});
      continue;
    }
    OperatorFacts facts;
    facts.name = place.given != nullptr ? name_of_kernel(kernel, place.given) : &outside();
    facts.phase = phase;
    facts.fma = from_.formulas.fma();
    facts.work = place.work;
    facts.tensor = place.tensor;
    facts.unmeasured_reason = place.reason;
    facts.attention = &attention_;
    facts.calls = place.work.launches;
    facts.calls_counted = place.given != nullptr;
    if (place.given != nullptr)
      facts.forms = even_forms(place.given_flop, facts.calls);
    else
      facts.forms = {{Formula::none("it is in no operator's range"), 0}};
    facts.formula = facts.forms.front().formula;
    set_kernels(place, facts);
    add_place(path, place, facts);
  }
}

// Backward operators that are attention's gradients, by their kernels or their names.
std::unordered_set<uint32_t> OperatorsBuilder::gradients_of_attention() {
  using Does = AttentionKernel::Does;
  const auto of_backward = [&](const auto& kernel) {
    const auto& known = attention_of(kernel.first.second);
    return known && known->does != Does::kForward && known->does != Does::kBeside;
  };
  std::unordered_set<uint32_t> paths;
  for (const auto& [key, place] : places_) {
    const std::string_view name = operators_.name_of(key.first)->name;
    if (key.second == "backward" &&
        (is_attention(name) || (!has_operator_formula(*operators_.name_of(key.first)) &&
                                std::ranges::any_of(place.kernels, of_backward))))
      paths.insert(key.first);
  }
  return paths;
}

OperatorsReport OperatorsBuilder::build(const Report& report) {
  forward_backward_.add_up(report);
  GradientFinder gradients(operators_, join_, calls_, products_, gradients_of_attention());
  std::map<const Place*, std::vector<CallForm>> forms;
  for (const auto& [key, place] : places_) forms[&place] = forms_of(key.first, place);
  add_forms_again(forms);
  for (const auto& [place, known] : forms)
    formulas_ = formulas_ || std::ranges::any_of(known, [](const CallForm& form) {
                  return form.formula.flop.has_value();
                });
  for (const auto& [key, place] : outside_) formulas_ = formulas_ || place.given != nullptr;
  for (const auto& [key, place] : places_) {
    OperatorFacts facts = facts_of(key.first, key.second, place, std::move(forms[&place]));
    facts.no_products = !place.work.flop_known() && without_products(place);
    if (key.second == "backward" && !facts.name->has_given_formula())
      facts.gradients = gradients.add(key.first, facts);
    add_place(key.first, place, facts);
  }
  add_outside();
  add_types();
  add_model();
  forward_backward_.finish(gradients, report_);
  const auto worth = [](const OperatorReport& place) {
    return place.work.flop + place.work.by_formula.flop;
  };
  const bool any = std::ranges::any_of(
      report_.places, [&](const OperatorReport& place) { return worth(place) > 0; });
  const auto most_first = [&](const OperatorReport& a, const OperatorReport& b) {
    return any ? worth(a) > worth(b) : a.work.time.ns > b.work.time.ns;
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
