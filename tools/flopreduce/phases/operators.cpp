#include "phases/operators.h"

#include <own_steps.h>

#include <algorithm>
#include <string>

#include "analytic/operator_flop.h"
#include "operator_range.h"
#include "phases/phases.h"
#include "support/text.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {
namespace {

// Shapes kept over all names; names beyond have no sizes.
constexpr size_t kMaxShapes = 1U << 18;
constexpr size_t kShapeBytes = 100;  // about

constexpr std::string_view kAccumulateGrad = "torch::autograd::AccumulateGrad";
constexpr std::string_view kLibraryNode = "torch::autograd::CppNode<";

// Without their namespace and an in-place "_": tools/autograd/derivatives.yaml of PyTorch
// (output_differentiability: [False]), gen_variable_type.py (DONT_REQUIRE_DERIVATIVE).
constexpr std::string_view kWithoutGradient[] = {"eq",
                                                 "ne",
                                                 "lt",
                                                 "le",
                                                 "gt",
                                                 "ge",
                                                 "equal",
                                                 "isnan",
                                                 "isinf",
                                                 "isfinite",
                                                 "isclose",
                                                 "isin",
                                                 "signbit",
                                                 "all",
                                                 "any",
                                                 "logical_and",
                                                 "logical_or",
                                                 "logical_not",
                                                 "logical_xor",
                                                 "bitwise_and",
                                                 "bitwise_or",
                                                 "bitwise_not",
                                                 "bitwise_xor",
                                                 "bitwise_left_shift",
                                                 "bitwise_right_shift",
                                                 "floor_divide",
                                                 "argmax",
                                                 "argmin",
                                                 "argsort",
                                                 "nonzero",
                                                 "count_nonzero",
                                                 "bincount",
                                                 "histc",
                                                 "searchsorted",
                                                 "bucketize",
                                                 "one_hot",
                                                 "unique",
                                                 "_unique2",
                                                 "unique_consecutive",
                                                 "item",
                                                 "_local_scalar_dense",
                                                 "empty",
                                                 "empty_like",
                                                 "empty_strided",
                                                 "new_empty",
                                                 "new_zeros",
                                                 "new_ones",
                                                 "new_full",
                                                 "zeros",
                                                 "zeros_like",
                                                 "ones",
                                                 "ones_like",
                                                 "full",
                                                 "full_like",
                                                 "arange",
                                                 "linspace",
                                                 "eye",
                                                 "tril_indices",
                                                 "triu_indices",
                                                 "rand",
                                                 "rand_like",
                                                 "randn",
                                                 "randn_like",
                                                 "randint",
                                                 "randint_like",
                                                 "randperm",
                                                 "multinomial"};

// Only letters and digits, in lower case: "_log_softmax" and "LogSoftmax" are the same.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != '_') result += lower(c);
  return result;
}

// PyTorch's names: aten::_sparse_addmm, aten::sparse_sampled_addmm, SparseAddmmBackward0. One of a
// matrix in compressed rows calls aten::addmm where a dense one calls nothing.
bool of_sparse(const OperatorName& name, const OperatorName* around) {
  if (name.kind == OperatorKind::kAutograd) return name.function().starts_with("Sparse");
  if (name.kind != OperatorKind::kFunction) return false;
  const bool inside = around != nullptr && around->name == "aten::mm" && name.name == "aten::addmm";
  return inside || name.function().find("sparse_") != std::string_view::npos ||
         name.name.find("sparse::") != std::string_view::npos;
}

void drop_end(std::string& name, std::string_view end) {
  if (name.ends_with(end)) name.resize(name.size() - end.size());
}

// NamedOperator::function.
std::string function_named(std::string_view range, const OperatorName* name) {
  if (name == nullptr) {
    // A Python function without sizes has only its class's name.
    const bool word = std::ranges::all_of(range, [](char c) { return is_alnum(c) || c == '_'; });
    return word ? plain(range) : std::string();
  }
  if (name->kind == OperatorKind::kModule) return {};
  std::string function = plain(name->function());
  if (name->kind == OperatorKind::kFunction) {
    drop_end(function, "forward");
    return function;
  }
  if (function.ends_with("backwards"))  // torch::autograd::CopyBackwards
    drop_end(function, "backwards");
  else if (function.ends_with("backward"))
    drop_end(function, "backward");
  else
    return {};
  return function;
}

}  // namespace

bool is_program_function(const OperatorName& name) {
  return name.kind == OperatorKind::kFunction && name.name.find("::") == std::string_view::npos &&
         name.name != "PythonDispatchMode" && name.name != "PythonSubclass";
}

NamedOperator read_operator(std::string_view name) {
  NamedOperator read{parse_operator_name(name), {}};
  read.function = function_named(name, read.parsed ? &*read.parsed : nullptr);
  return read;
}

const NamedOperator* KnownOperators::find(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return &found->second;
  if (bytes_ + name.size() > kMostBytes) return nullptr;
  auto& [text, known] = *names_.try_emplace(std::string(name)).first;
  known = read_operator(text);
  const size_t shapes = known.parsed ? known.parsed->sizes.size() : 0;
  bytes_ += sizeof(text) + sizeof known + text.size() + shapes * kShapeBytes;
  return &known;
}

void KnownOperators::make_room() {
  if (bytes_ < kMostBytes / 2) return;
  names_.clear();
  bytes_ = 0;
}

OperatorMap::OperatorMap(const TraceTables& tables, const PhaseMap& phases, KnownOperators* known,
                         const GivenFormulas* given)
    : tables_(tables),
      phases_(phases),
      known_operators_(known),
      given_(given),
      known_(tables.names.size()),
      name_(tables.paths.size(), kNoIndex),
      operator_(tables.paths.size(), kNoIndex),
      layer_(tables.paths.size(), PathTable::kRoot),
      node_(tables.paths.size(), kNoIndex),
      function_(tables.paths.size(), 0),
      own_number_(tables.paths.size(), kNoIndex),
      outermost_node_(tables.paths.size(), PathTable::kRoot),
      sparse_(tables.paths.size(), false) {
  find_flop_given();
  for (uint32_t i = PathTable::kLost + 1; i < tables.paths.size(); ++i) {
    const Known& of_name = read_name(tables.paths[i].name);
    name_[i] = of_name.name;
    function_[i] = of_name.function;
    find_node(i);
    find_own_number(i, of_name.own_number);
    const OperatorName* name = name_of(i);
    const uint32_t parent = tables.paths[i].parent;
    sparse_[i] = sparse_[parent] || (name != nullptr && of_sparse(*name, name_of(parent)));
    const bool range = name != nullptr && name->kind == OperatorKind::kRange;
    const bool layer = range || name == nullptr || name->kind == OperatorKind::kModule;
    // A step of the whole process is in no layer, and is none.
    const bool own_step = tables_.names[tables_.paths[i].name] == kOwnStep;
    layer_[i] = layer && !own_step ? i : layer_[parent];
    any_ = any_ || range || !layer;
    // All that runs in a range with a formula of the user's is of it.
    const uint32_t around = operator_[parent];
    if (around != kNoIndex && name_of(around)->kind == OperatorKind::kRange)
      operator_[i] = around;
    else if (range || !layer)
      find_operator(i);
    if (name != nullptr && node_[i] == kNoIndex && is_program_function(*name))
      program_calls_.insert(tables.paths[i].name);
  }
}

// The name with its formula, where the user gives one; else null.
const OperatorName* OperatorMap::read_given(const std::string& text, const OperatorName* parsed) {
  using Of = GivenFormula::Of;
  bool range = text.starts_with(kFormulaRange);
  const GivenFormula* of = nullptr;
  if (given_ != nullptr && !range) {
    if (parsed != nullptr && parsed->kind != OperatorKind::kModule)
      of = given_->find(Of::kOperator, parsed->name);
    if (of == nullptr) {
      of = given_->find(Of::kRange, text);
      range = of != nullptr;
    }
  }
  if (of == nullptr && !range) return nullptr;
  OperatorName& own = own_names_.emplace_back();
  if (!range) own = *parsed;
  if (range) own.kind = OperatorKind::kRange;
  if (range) own.name = text;
  own.given = of;
  return &own;
}

// Of the whole recording: with --skip-steps it is not known what was given in the rest.
void OperatorMap::find_flop_given() {
  for (const TraceState& trace : tables_.traces) {
    if (trace.skipped_steps.any()) continue;
    for (const RangeNumber& number : trace.numbers) {
      if (tables_.names[number.name] != kFormulaNumber) continue;
      GivenFlop& sum = flop_given_[number.path];
      add_saturating(sum.total, u128{number.total});
      add_saturating(sum.calls, number.times);
    }
  }
}

std::optional<OperatorMap::GivenFlop> OperatorMap::flop_given(uint32_t path) const {
  const auto found = flop_given_.find(path);
  return found == flop_given_.end() ? std::nullopt : std::optional(found->second);
}

const OperatorMap::Known& OperatorMap::read_name(uint32_t name) {
  if (known_[name]) return *known_[name];
  Known& of_name = known_[name].emplace();
  const std::string& text = tables_.names[name];
  const NamedOperator* known = known_operators_ != nullptr ? known_operators_->find(text) : nullptr;
  NamedOperator own;
  if (known == nullptr) own = read_operator(text);
  const auto& [parsed, function] = known != nullptr ? *known : own;
  if (parsed && parsed->own_number) {
    // It is the same operator with and without a number of its own.
    std::string plain = text;
    plain.erase(plain.find(kOwnNumber), kOwnNumber.size());
    if (const auto same = tables_.names.find(plain)) of_name = read_name(*same);
    of_name.own_number = true;
    if (of_name.name != kNoIndex) return of_name;
  }
  const OperatorName* given = read_given(text, parsed ? &*parsed : nullptr);
  if (given == nullptr || given->kind != OperatorKind::kRange)
    of_name.function =
        functions_.try_emplace(function, static_cast<uint32_t>(functions_.size())).first->second;
  if (given != nullptr) {
    of_name.name = static_cast<uint32_t>(names_.size());
    names_.push_back(given);
  }
  if (!parsed || given != nullptr) return of_name;
  shapes_ += parsed->sizes.size();
  const bool too_many = shapes_ > kMaxShapes;
  const OperatorName* kept = &*parsed;
  if (known == nullptr || too_many) {
    OperatorName& own_name = own_names_.emplace_back(*parsed);
    if (too_many) {
      own_name.has_sizes = false;
      own_name.sizes = {};
      own_name.settings = {};
    }
    kept = &own_name;
  }
  of_name.name = static_cast<uint32_t>(names_.size());
  names_.push_back(kept);
  return of_name;
}

const OperatorName* OperatorMap::name_of(uint32_t path) const {
  return name_[path] == kNoIndex ? nullptr : names_[name_[path]];
}

bool OperatorMap::is_call(uint32_t path) const {
  const auto name = [&] { return std::string_view(tables_.names[tables_.paths[path].name]); };
  if (!is_operator_range(name())) return false;
  for (path = parent_of(path); path != kNoIndex; path = parent_of(path)) {
    if (name().starts_with(kEvaluateFunction)) return true;
    if (is_operator_range(name())) return false;
  }
  return true;
}

uint32_t OperatorMap::rule_around(uint32_t path) const { return phases_.path_rule(layer_[path]); }

bool OperatorMap::name_decides(uint32_t path) const {
  const uint32_t around = rule_around(path);
  return around != kNoIndex && phases_.path_rule(path) != around;
}

uint32_t OperatorMap::parent_of(uint32_t path) const {
  const uint32_t parent = tables_.paths[path].parent;
  return parent <= PathTable::kLost ? kNoIndex : parent;
}

// Parents come before their children.
void OperatorMap::find_operator(uint32_t path) {
  operator_[path] = path;
  if (name_of(path)->kind != OperatorKind::kFunction && name_of(path)->kind != OperatorKind::kRange)
    return;
  const uint32_t parent = tables_.paths[path].parent;
  const OperatorName* above = name_of(parent);
  if (above == nullptr || above->kind != OperatorKind::kFunction) return;
  const uint32_t outer = operator_[parent];
  const bool outer_has = has_operator_formula(*name_of(outer));
  const bool has = sparse_[path] || has_operator_formula(*name_of(path));
  if (outer_has || sparse_[parent] || !has) operator_[path] = outer;
}

const OperatorSettings* OperatorMap::settings_of(uint32_t path) const {
  for (; path > PathTable::kLost; path = tables_.paths[path].parent)
    if (const OperatorName* name = name_of(path);
        name != nullptr &&
        (name->kind == OperatorKind::kModule || name->settings != OperatorSettings{}))
      return &name->settings;
  return nullptr;
}

std::string OperatorMap::layer_name(uint32_t path) const {
  constexpr size_t kLimit = 1024;
  std::vector<uint32_t> levels;  // innermost first
  size_t kept = kNoIndex;        // of them, below the outermost that tells the phase
  for (path = layer_[path]; path > PathTable::kLost; path = tables_.paths[path].parent) {
    if (phases_.own_rule(path) != kNoIndex) kept = levels.size();
    if (tables_.names[tables_.paths[path].name] != kOwnStep) levels.push_back(path);
  }
  kept = std::min(kept, levels.size());
  std::string name;
  for (size_t i = kept; i-- > 0 && name.size() <= kLimit;)
    name += (name.empty() ? "" : "/") + tables_.names[tables_.paths[levels[i]].name];
  return cut(name, kLimit);
}

bool OperatorMap::has_weights(uint32_t path) const {
  for (; path != kNoIndex && path > PathTable::kLost; path = parent_of(path)) {
    const OperatorName* const name = name_of(path);
    if (name == nullptr) return false;
    const auto gradients = operator_gradients(*name);
    if (gradients && gradients->by_input > 0) return true;
  }
  return false;
}

Multiplies OperatorMap::multiplies(uint32_t path) const {
  if (has_weights(path)) return Multiplies::kWeights;
  const uint32_t at = operator_of(path);
  return at != kNoIndex && is_matrix_work(name_of(at)->name) ? Multiplies::kProducts
                                                             : Multiplies::kNothing;
}

bool OperatorMap::of_library(uint32_t path) const {
  for (; path > PathTable::kLost; path = tables_.paths[path].parent) {
    const OperatorName* const name = name_of(path);
    if (name == nullptr) continue;
    if (name->kind == OperatorKind::kAutograd) return false;
    const size_t colons = name->name.find("::");
    if (name->kind != OperatorKind::kFunction || colons == std::string_view::npos) continue;
    const std::string_view space = name->name.substr(0, colons);
    if (space != "aten" && space != "prim" && space != "prims") return true;
  }
  return false;
}

uint32_t OperatorMap::program_call_of(uint32_t path) const {
  for (; path > PathTable::kLost; path = tables_.paths[path].parent) {
    const OperatorName* const name = name_of(path);
    if (name == nullptr) continue;
    if (name->kind == OperatorKind::kAutograd) return kNoIndex;
    if (is_program_function(*name)) return path;
  }
  return kNoIndex;
}

uint32_t OperatorMap::program_function_of(uint32_t path) const {
  const uint32_t call = program_call_of(path);
  return call == kNoIndex ? 0 : function_[call];
}

bool OperatorMap::calls_as_forward(uint32_t path) const {
  const uint32_t call = program_call_of(path);
  return call != kNoIndex && name_of(call)->has_sizes &&
         program_calls_.contains(tables_.paths[call].name);
}

bool OperatorMap::without_gradient(uint32_t path) const {
  for (; path > PathTable::kLost; path = tables_.paths[path].parent) {
    const OperatorName* const name = name_of(path);
    if (name == nullptr) continue;
    if (!name->name.starts_with("aten::")) return false;
    std::string_view function = name->function();
    if (function.ends_with('_')) function.remove_suffix(1);
    return std::ranges::find(kWithoutGradient, function) != std::end(kWithoutGradient);
  }
  return false;
}

// Parents come before their children.
void OperatorMap::find_own_number(uint32_t path, bool own) {
  const uint32_t parent = tables_.paths[path].parent;
  const AutogradNode* node = node_of(path);
  if (node == nullptr) return;
  outermost_node_[path] =
      outermost_node_[parent] == PathTable::kRoot ? node->range : outermost_node_[parent];
  own_number_[path] = node_of(parent) == node ? own_number_[parent] : kNoIndex;
  if (own && own_number_[path] == kNoIndex) own_number_[path] = path;
}

// Parents come before their children.
void OperatorMap::find_node(uint32_t path) {
  const uint32_t parent = tables_.paths[path].parent;
  const AutogradNode* around = node_of(parent);
  node_[path] = node_[parent];
  const OperatorName* name = name_of(path);
  if (name == nullptr || name->kind != OperatorKind::kAutograd) return;
  AutogradNode node{.function = function_[path],
                    .range = path,
                    .inside = PathTable::kRoot,
                    .of_a_leaf = name->name == kAccumulateGrad,
                    .of_library = name->name.starts_with(kLibraryNode)};
  if (around != nullptr) {
    const bool evaluated = tables_.names[tables_.paths[path].name].starts_with(kEvaluateFunction);
    const OperatorName* above = name_of(parent);
    const bool of_parent =  // the node that evaluate_function's range is of
        !evaluated && above != nullptr && above->kind == OperatorKind::kAutograd &&
        above->name == name->name;
    if (of_parent) return;
    // A node inside of another without being evaluated is the rest of that one's work, as in
    // CopySlices.
    node.range = evaluated ? path : around->range;
    node.inside = evaluated ? around->range : around->inside;
  }
  node_[path] = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(node);
}

uint32_t OperatorMap::function_of(uint32_t path, const AutogradNode& node) const {
  for (; path > PathTable::kLost; path = tables_.paths[path].parent) {
    const OperatorName* name = name_of(path);
    if (name != nullptr && name->kind == OperatorKind::kAutograd) break;
    if (function_[path] == node.function && node.function != 0) return path;
  }
  return kNoIndex;
}

}  // namespace flopinj::reduce
