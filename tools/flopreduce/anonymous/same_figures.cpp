#include "anonymous/same_figures.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace flopinj::reduce {
namespace {

using Json = nlohmann::ordered_json;
using Figures = std::map<std::string, std::vector<std::string>>;  // by key without list indices

constexpr std::array<std::string_view, 11> kNoFigures = {
    "command_line", "partial", "notices", "stable_hash", "session", "uuid",
    "code_hash",    "damage",  "errors",  "process",     "trace"};

bool is_number(const Json& value) {
  if (value.is_number() || value.is_boolean() || value.is_null()) return true;
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return !text.empty() && text.find_first_not_of("0123456789.-") == std::string::npos;
}

void collect(const std::string& key, const Json& value, Figures& figures) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items())
      if (std::find(kNoFigures.begin(), kNoFigures.end(), name) == kNoFigures.end())
        collect(key.empty() ? name : key + "." + name, member, figures);
  } else if (value.is_array()) {
    for (const Json& element : value) collect(key, element, figures);
  } else if (is_number(value)) {
    figures[key].push_back(value.dump());
  } else {
    figures[key].emplace_back("a text");
  }
}

Figures figures_of(const Json& report) {
  Figures figures;
  collect("", report, figures);
  for (auto& [key, values] : figures) std::sort(values.begin(), values.end());
  return figures;
}

}  // namespace

std::optional<std::string> first_difference(const Json& a, const Json& b) {
  const Figures left = figures_of(a), right = figures_of(b);
  for (const auto* side : {&left, &right})
    for (const auto& [key, values] : *side) {
      const auto l = left.find(key), r = right.find(key);
      if (l == left.end() || r == right.end() || l->second != r->second) return key;
    }
  return std::nullopt;
}

}  // namespace flopinj::reduce
