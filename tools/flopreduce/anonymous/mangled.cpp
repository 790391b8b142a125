#include <libiberty/demangle.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "anonymous/names.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kLongestInput = 16384;  // the demangler's stack use grows with its input

// Texts in the name by where they begin.
using Texts = std::map<size_t, size_t>;

// What the demangler found, each part once: substitutions make it a graph, whose paths may be
// endless in number. False where a part is of a kind that is not known here.
bool collect(const demangle_component* tree, const std::string& name, Texts& texts) {
  std::vector<const demangle_component*> next{tree};
  std::unordered_set<const demangle_component*> seen;
  while (!next.empty()) {
    const demangle_component* part = next.back();
    next.pop_back();
    if (part == nullptr || !seen.insert(part).second) continue;
    const auto& u = part->u;
    switch (part->type) {
      case DEMANGLE_COMPONENT_NAME: {
        const auto at = reinterpret_cast<uintptr_t>(u.s_name.s);
        const auto begin = reinterpret_cast<uintptr_t>(name.data());
        if (at >= begin && at < begin + name.size())
          texts[at - begin] = static_cast<size_t>(u.s_name.len);
        break;
      }
      case DEMANGLE_COMPONENT_OPERATOR:
      case DEMANGLE_COMPONENT_BUILTIN_TYPE:
      case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
      case DEMANGLE_COMPONENT_SUB_STD:
      case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
      case DEMANGLE_COMPONENT_FUNCTION_PARAM:
      case DEMANGLE_COMPONENT_UNNAMED_TYPE:
      case DEMANGLE_COMPONENT_NUMBER:
        break;
      case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
        next.push_back(u.s_extended_operator.name);
        break;
      case DEMANGLE_COMPONENT_CTOR:
        next.push_back(u.s_ctor.name);
        break;
      case DEMANGLE_COMPONENT_DTOR:
        next.push_back(u.s_dtor.name);
        break;
      case DEMANGLE_COMPONENT_FIXED_TYPE:
        next.push_back(u.s_fixed.length);
        break;
      case DEMANGLE_COMPONENT_LAMBDA:
      case DEMANGLE_COMPONENT_DEFAULT_ARG:
        next.push_back(u.s_unary_num.sub);
        break;
      case DEMANGLE_COMPONENT_CHARACTER:  // Java's, of resources' names
      case DEMANGLE_COMPONENT_JAVA_RESOURCE:
        return false;
      default:
        next.push_back(u.s_binary.left);
        next.push_back(u.s_binary.right);
    }
  }
  return true;
}

// "_GLOBAL__N__1a2b3c4d_7_file_cu_main_5e6f": the demangler says "(anonymous namespace)" for it.
bool collect_anonymous_namespaces(const std::string& name, Texts& texts) {
  constexpr std::string_view kStart = "_GLOBAL_";
  for (size_t at = name.find(kStart); at != name.npos; at = name.find(kStart, at + 1)) {
    // Digits before its length may be the end of the identifier before.
    const auto next = texts.lower_bound(at);
    const size_t from =
        next == texts.begin() ? 0 : std::prev(next)->first + std::prev(next)->second;
    size_t length = 0, digits = at;
    while (digits > from && is_digit(name[digits - 1])) --digits;
    for (size_t i = digits; i < at && length <= name.size(); ++i)
      length = 10 * length + static_cast<size_t>(name[i] - '0');
    if (length == 0 || length > name.size() - at) return false;
    texts[at] = length;
  }
  return true;
}

// Of a literal: a number, a floating-point number's bytes in hexadecimal digits.
bool is_value(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

std::optional<std::string> replace_identifiers(
    std::string_view mangled, const std::function<std::string(std::string_view)>& replace) {
  if (!mangled.starts_with("_Z") || mangled.size() > kLongestInput ||
      mangled.find('\0') != mangled.npos)
    return std::nullopt;
  const std::string name(mangled);
  void* memory = nullptr;
  const auto* tree = cplus_demangle_v3_components(name.c_str(), DMGL_PARAMS | DMGL_TYPES, &memory);
  const std::unique_ptr<void, void (*)(void*)> owner(memory, std::free);
  Texts texts;
  if (tree == nullptr || !collect(tree, name, texts) || !collect_anonymous_namespaces(name, texts))
    return std::nullopt;
  std::string out;
  size_t done = 0;
  for (const auto& [at, length] : texts) {
    const std::string_view text = mangled.substr(at, length);
    const std::string digits = std::to_string(length);
    const size_t before = at - std::min(at, digits.size());
    // A literal's value may begin after a digit too, but an identifier never begins with one.
    const bool counted = !text.empty() && !is_digit(text[0]) && before >= done &&
                         mangled.substr(before, digits.size()) == digits;
    if (at < done || (!counted && !is_value(text) && !text.starts_with('.'))) return std::nullopt;
    if (!counted && is_value(text)) continue;
    const std::string becomes = replace(text);
    out.append(mangled.substr(done, (counted ? before : at) - done));
    if (counted) out += std::to_string(becomes.size());
    out += becomes;
    done = at + length;
  }
  return out.append(mangled.substr(done));
}

}  // namespace flopinj::reduce
