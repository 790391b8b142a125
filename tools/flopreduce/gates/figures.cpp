#include "gates/figures.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "edit_distance.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kShortNames = {{
    {"ratio", "backward_forward_ratio"},
    {"matrix_ratio", "backward_forward_matrix_ratio"},
    {"flop", "total.flop"},
    {"launches", "total.launches"},
    {"gpu_time_ns", "total.gpu_time_ns"},
    {"hfu", "utilization.hfu.utilization"},
    {"mfu", "utilization.mfu.utilization"},
    {"hfu_kernel_time", "utilization.run.gpu_time.utilization"},
    {"utilization", "utilization.run.gpu_time.utilization"},
    {"coverage", "coverage"},
}};

FigurePath split(std::string_view path) {
  FigurePath parts;
  while (true) {
    const size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

std::string joined(const FigurePath& path) {
  std::string text;
  for (const auto& part : path) text += (text.empty() ? "" : ".") + part;
  return printable(cut(text, 300));
}

const Json* element(const Json& list, const std::string& part) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error == std::errc() && end == part.data() + part.size())
    return index < list.size() ? &list[index] : nullptr;
  const Json* found = nullptr;
  for (const Json& item : list)
    for (const char* key : {"name", "path", "rule", "layer", "operator"})
      if (item.is_object() && item.contains(key) && item[key] == part) {
        if (found != nullptr && found != &item) return nullptr;  // several have that name
        found = &item;
      }
  return found;
}

const Json* member(const Json& value, const std::string& part) {
  if (value.is_array()) return element(value, part);
  if (!value.is_object()) return nullptr;
  const auto found = value.find(part);
  return found == value.end() ? nullptr : &*found;
}

// What a path leads to, or nothing.
const Json* found(const Json& report, const FigurePath& path) {
  const Json* value = &report;
  for (const auto& part : path)
    if (value = member(*value, part); value == nullptr) break;
  return value;
}

std::string members(const Json& value) {
  constexpr size_t kShown = 6;
  std::string text;
  size_t n = 0;
  for (const auto& [key, child] : value.items()) {
    if (++n > kShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + printable(cut(key, 64));
  }
  return text;
}

std::optional<long double> decimal(const std::string& text) {
  long double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

Figure figure_of(const Json& value, const std::string& name) {
  using State = Figure::State;
  if (value.is_null()) return {State::kNotKnown, 0, ""};
  if (value.is_boolean()) return {State::kValue, value.get<bool>() ? 1.0L : 0.0L, ""};
  if (value.is_number_unsigned())
    return {State::kValue, value.get<long double>(), "", value.get<uint64_t>()};
  if (value.is_number()) return {State::kValue, value.get<long double>(), ""};
  if (value.is_string())
    if (const auto number = decimal(value.get_ref<const std::string&>()))
      return {State::kValue, *number, "", parse_whole(value.get_ref<const std::string&>())};
  if (value.is_structured())
    return {State::kNoFigure, 0, name + " is no figure; it holds " + members(value)};
  return {State::kNoFigure, 0, name + " is no number"};
}

// Paths to figures, lists by their first element. Bounded: a report may have any number of names.
void collect(const Json& value, const std::string& path, std::vector<std::string>& paths) {
  constexpr size_t kMost = 4096;
  if (paths.size() >= kMost) return;
  if (value.is_object()) {
    for (const auto& [key, child] : value.items())
      collect(child, path.empty() ? key : path + "." + key, paths);
  } else if (value.is_array()) {
    if (!value.empty()) collect(value[0], path + ".0", paths);
  } else if (!path.empty() && figure_of(value, path).state != Figure::State::kNoFigure) {
    paths.push_back(path);
  }
}

std::string nearest(const Json& report, const std::string& wanted) {
  std::vector<std::string> paths;
  collect(report, "", paths);
  for (const auto& [name, path] : kShortNames)
    if (const Json* figure = found(report, split(path));
        figure != nullptr && !figure->is_structured())
      paths.emplace_back(name);
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].size() >= 200) continue;
    const std::string_view last = std::string_view(paths[i]).substr(paths[i].rfind('.') + 1);
    order.emplace_back(std::min(edit_distance(wanted, paths[i]), edit_distance(wanted, last)), i);
  }
  constexpr size_t kShown = 3;
  const size_t n = std::min(kShown, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end());
  std::string text;
  for (size_t i = 0; i < n; ++i)
    text += (i > 0 ? ", " : "; near: ") + printable(paths[order[i].second]);
  return text;
}

}  // namespace

std::vector<NamedValue> list_figures(const Json& report) {
  std::vector<NamedValue> list;
  const auto add = [&](std::string name, const Json& value) {
    if (figure_of(value, name).state == Figure::State::kNoFigure) return;
    const std::string text = value.is_null()     ? "-"
                             : value.is_string() ? value.get<std::string>()
                                                 : value.dump();
    list.push_back({printable(name), printable(text)});
  };
  for (const auto& [name, path] : kShortNames)
    if (const Json* value = found(report, split(path))) add(std::string(name), *value);
  std::vector<std::string> paths;
  collect(report, "", paths);
  for (const std::string& path : paths)
    if (const Json* value = found(report, split(path))) add(path, *value);
  return list;
}

Figure find_figure(const Json& report, const FigurePath& path) {
  const std::string name = joined(path);
  FigurePath parts = path;
  const Json* direct = member(report, path[0]);
  if (path.size() == 1 && (direct == nullptr || direct->is_structured()))
    for (const auto& [short_name, whole] : kShortNames)
      if (path[0] == short_name) parts = split(whole);
  const Json* value = &report;
  for (const auto& part : parts) {
    const Json* next = member(*value, part);
    // Below something that is not known, nothing is.
    if (next == nullptr && value->is_null()) return {Figure::State::kNotKnown, 0, ""};
    if (next == nullptr)
      return {Figure::State::kNoFigure, 0, "no figure '" + name + "'" + nearest(report, name)};
    value = next;
  }
  return figure_of(*value, name);
}

}  // namespace flopinj::reduce
