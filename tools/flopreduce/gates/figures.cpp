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

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kShortNames = {{
    {"ratio", "ratio"},
    {"matrix_ratio", "matrix_ratio"},
    {"flop", "total.flop"},
    {"launches", "total.launches"},
    {"gpu_time_ns", "total.gpu_time_ns"},
    {"hfu", "hfu"},
    {"mfu", "mfu"},
    {"hfu_kernel_time", "hfu_kernel_time"},
    {"utilization", "hfu_kernel_time"},
    {"coverage", "coverage"},
    {"step_time", "step_time"},
    {"tokens_per_s", "steps.tokens_per_s"},
}};

bool is_short(const std::string& path) {
  return std::ranges::any_of(kShortNames, [&](const auto& s) { return s.first == path; });
}

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

// What a path leads to, or nothing, and what holds it.
struct Place {
  const Json* value;
  const Json* parent;
};
Place found(const Json& report, const FigurePath& path) {
  Place at{&report, nullptr};
  for (const auto& part : path) {
    at.parent = at.value;
    if (at.value = member(*at.parent, part); at.value == nullptr) break;
  }
  return at;
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

constexpr std::string_view kExact = "_exact";

// The text of an integer that is beside the number, where the report has it: the number may be
// rounded.
std::string exact_text(const Json& parent, const std::string& key) {
  const Json* exact = parent.is_object() ? member(parent, key + std::string(kExact)) : nullptr;
  return exact != nullptr && exact->is_string() ? exact->get<std::string>() : "";
}

Figure figure_of(const Json& value, const std::string& name) {
  using State = Figure::State;
  if (value.is_null()) return {State::kNotKnown, 0, ""};
  if (value.is_boolean()) return {State::kValue, value.get<bool>() ? 1.0L : 0.0L, ""};
  if (value.is_number_unsigned())
    return {State::kValue, value.get<long double>(), "", value.get<uint64_t>()};
  if (value.is_number()) return {State::kValue, value.get<long double>(), ""};
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
      if (!key.ends_with(kExact)) collect(child, path.empty() ? key : path + "." + key, paths);
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
    if (const Json* figure = found(report, split(path)).value;
        name != path && figure != nullptr && !figure->is_structured())
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
  const auto add = [&](std::string_view name, std::string_view path) {
    const FigurePath parts = split(path);
    const auto [value, parent] = found(report, parts);
    if (value == nullptr) return;
    if (figure_of(*value, std::string(name)).state == Figure::State::kNoFigure) return;
    const std::string exact = exact_text(*parent, parts.back());
    list.push_back({printable(name), value->is_null() ? "-"
                                     : exact.empty()  ? value->dump()
                                                      : exact});
  };
  for (const auto& [name, path] : kShortNames) add(name, path);
  std::vector<std::string> paths;
  collect(report, "", paths);
  for (const std::string& path : paths)
    if (!is_short(path)) add(path, path);
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
  const Json* parent = nullptr;
  for (const auto& part : parts) {
    const Json* next = member(*value, part);
    // Below something that is not known, nothing is.
    if (next == nullptr && value->is_null()) return {Figure::State::kNotKnown, 0, ""};
    if (next == nullptr)
      return {Figure::State::kNoFigure, 0, "no figure '" + name + "'" + nearest(report, name)};
    parent = value;
    value = next;
  }
  Figure figure = figure_of(*value, name);
  const Json* partial = figure.state == Figure::State::kNotKnown && parent->is_object()
                            ? member(*parent, parts.back() + "_partial")
                            : nullptr;
  if (partial != nullptr && !partial->is_null())
    figure.message = "launches are missing from it; " + name + "_partial has the others";
  if (const auto whole = parse_whole(exact_text(*parent, parts.back()))) {
    figure.value = static_cast<long double>(*whole);
    figure.whole = whole;
  }
  return figure;
}

}  // namespace flopinj::reduce
