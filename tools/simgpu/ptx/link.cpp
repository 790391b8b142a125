// Several modules as one. A name that a module keeps for itself gets the module's number.
#include <algorithm>
#include <set>

#include "ptx/text.h"

namespace simgpu::ptx {
namespace {

class Numbered {
 public:
  Numbered(Module& module, size_t number) : end_("@" + std::to_string(number)) {
    for (const auto& function : module.functions)
      if (function->linkage == Linkage::kOwn && function->has_body) own_.insert(function->name);
    for (const Variable& variable : module.variables)
      if (variable.linkage == Linkage::kOwn) own_.insert(variable.name);
    if (own_.empty()) return;
    for (Variable& variable : module.variables) rename(variable);
    for (const auto& function : module.functions) {
      rename(function->name);
      for (Variable& variable : function->variables)
        for (Initial& part : variable.initial) rename(part.name);
      for (Instruction& one : function->instructions)
        if (one.words[0] != "bra" && one.words[0] != "brx")
          for (Operand& operand : one.operands) rename(operand);
    }
  }

 private:
  void rename(std::string& name) const {
    if (own_.contains(name)) name += end_;
  }
  void rename(Variable& variable) const {
    rename(variable.name);
    for (Initial& part : variable.initial) rename(part.name);
  }
  void rename(Operand& operand) const {
    if (operand.kind == Operand::Kind::kName) rename(operand.name);
    for (Operand& part : operand.parts) rename(part);
  }

  std::set<std::string> own_;
  std::string end_;
};

// Of two with one name: whether the second takes the first one's place.
template <class T>
bool replaces(const T& one, bool one_is_defined, const T& other, bool other_is_defined) {
  if (!other_is_defined) return false;
  if (!one_is_defined) return true;
  if (one.linkage != Linkage::kWeak && other.linkage != Linkage::kWeak)
    throw TextError(other.line, "'" + one.name + "' is in two of the modules that are linked");
  return one.linkage == Linkage::kWeak && other.linkage != Linkage::kWeak;
}

}  // namespace

Module link(std::vector<Module> modules) {
  Module linked;
  for (size_t i = 0; i < modules.size(); ++i) {
    Module& module = modules[i];
    Numbered(module, i);
    linked.version = std::max(linked.version, module.version);
    if (linked.target.empty()) linked.target = module.target;
    for (Variable& one : module.variables) {
      const auto same = std::ranges::find(linked.variables, one.name, &Variable::name);
      if (same == linked.variables.end())
        linked.variables.push_back(std::move(one));
      else if (replaces(*same, !same->is_extern, one, !one.is_extern))
        *same = std::move(one);
      else
        same->alignment = std::max(same->alignment, one.alignment);
    }
    for (auto& one : module.functions) {
      const auto same = std::ranges::find_if(
          linked.functions, [&](const auto& function) { return function->name == one->name; });
      if (same == linked.functions.end())
        linked.functions.push_back(std::move(one));
      else if (replaces(**same, (*same)->has_body, *one, one->has_body))
        *same = std::move(one);
    }
  }
  return linked;
}

}  // namespace simgpu::ptx
