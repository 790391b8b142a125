#include "model/operators.h"

#include <algorithm>
#include <unordered_map>

#include "analytic/operator_flop.h"
#include "model/model.h"
#include "model/phases.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Shapes kept over all names, about 100 bytes each; names beyond have no sizes.
constexpr size_t kMaxShapes = 1U << 18;

// "AddmmBackward", "scaled_dot_product": letters and digits alone, in lower case.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z')
      result += static_cast<char>(c - 'A' + 'a');
    else if (c != '_')
      result += c;
  }
  return result;
}

}  // namespace

OperatorMap::OperatorMap(const Model& model, const PhaseMap& phases)
    : model_(model),
      phases_(phases),
      name_(model.paths.size(), kNoIndex),
      operator_(model.paths.size(), kNoIndex),
      layer_(model.paths.size(), PathTable::kRoot) {
  std::unordered_map<uint32_t, uint32_t> known;
  size_t shapes = 0;
  for (uint32_t i = PathTable::kLost + 1; i < model.paths.size(); ++i) {
    const auto [entry, fresh] = known.try_emplace(model.paths[i].name, kNoIndex);
    if (fresh) {
      if (auto parsed = parse_operator_name(model.names[model.paths[i].name])) {
        shapes += parsed->sizes.size();
        if (shapes > kMaxShapes)
          *parsed = {parsed->kind, parsed->name, parsed->sequence, false, {}, {}};
        entry->second = static_cast<uint32_t>(names_.size());
        names_.push_back(std::move(*parsed));
      }
    }
    name_[i] = entry->second;
    const OperatorName* name = name_of(i);
    const bool layer = name == nullptr || name->kind == OperatorKind::kModule;
    layer_[i] = layer ? i : layer_[model.paths[i].parent];
    any_ = any_ || !layer;
    if (!layer) find_operator(i);
  }
}

const OperatorName* OperatorMap::name_of(uint32_t path) const {
  return name_[path] == kNoIndex ? nullptr : &names_[name_[path]];
}

// Parents come before their children.
void OperatorMap::find_operator(uint32_t path) {
  operator_[path] = path;
  if (name_of(path)->kind != OperatorKind::kFunction) return;
  const uint32_t parent = model_.paths[path].parent;
  const OperatorName* above = name_of(parent);
  if (above == nullptr || above->kind != OperatorKind::kFunction) return;
  const uint32_t outer = operator_[parent];
  const bool outer_has = has_operator_formula(name_of(outer)->name);
  if (outer_has || !has_operator_formula(name_of(path)->name)) operator_[path] = outer;
}

const ModuleSettings* OperatorMap::settings_of(uint32_t path) const {
  for (; path > PathTable::kLost; path = model_.paths[path].parent)
    if (const OperatorName* name = name_of(path);
        name != nullptr && name->kind == OperatorKind::kModule)
      return &name->settings;
  return nullptr;
}

std::string OperatorMap::layer_name(uint32_t path) const {
  constexpr size_t kLimit = 1024;
  std::vector<uint32_t> levels;  // innermost first
  size_t kept = kNoIndex;        // of them, below the outermost that tells the phase
  for (path = layer_[path]; path > PathTable::kLost; path = model_.paths[path].parent) {
    if (phases_.own_rule(path) != kNoIndex) kept = levels.size();
    levels.push_back(path);
  }
  kept = std::min(kept, levels.size());
  std::string name;
  for (size_t i = kept; i-- > 0 && name.size() <= kLimit;)
    name += (name.empty() ? "" : "/") + model_.names[model_.paths[levels[i]].name];
  return cut(name, kLimit);
}

std::string OperatorMap::autograd_node(uint32_t path) const {
  for (; path > PathTable::kLost; path = model_.paths[path].parent)
    if (const OperatorName* name = name_of(path);
        name != nullptr && name->kind == OperatorKind::kAutograd) {
      std::string node = plain(name->function());
      if (node.ends_with("backward")) node.resize(node.size() - 8);
      return node;
    }
  return {};
}

bool OperatorMap::is_function_of(uint32_t path, const std::string& node) const {
  for (; path > PathTable::kLost; path = model_.paths[path].parent) {
    const OperatorName* name = name_of(path);
    if (name == nullptr || name->kind != OperatorKind::kFunction) return false;
    if (plain(name->function()).find(node) != std::string::npos) return true;
  }
  return false;
}

}  // namespace flopinj::reduce
