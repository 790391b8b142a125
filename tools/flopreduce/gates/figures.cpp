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

// A text of digits is an integer that JSON's numbers cannot hold (sections/parts/fields.cpp).
std::optional<End> end_of(const Json& value) {
  if (value.is_boolean()) return End{value.get<bool>() ? 1.0L : 0.0L, {}};
  if (value.is_number_unsigned()) return End{value.get<long double>(), value.get<uint64_t>()};
  if (value.is_number()) return End{value.get<long double>(), {}};
  constexpr size_t kFewestDigits = 16;  // of 2^53
  if (!value.is_string() || value.get_ref<const std::string&>().size() < kFewestDigits) return {};
  const auto whole = parse_whole(value.get<std::string>());
  if (!whole || to_decimal(*whole) != value.get<std::string>()) return {};
  return End{static_cast<long double>(*whole), whole};
}

GateFigure figure_of(const Json& value, const std::string& name) {
  using State = GateFigure::State;
  if (value.is_null()) return {State::kNotKnown, {}, {}, ""};
  if (const auto end = end_of(value)) return GateFigure::of(*end);
  if (value.is_structured())
    return {State::kNoFigure, {}, {}, name + " is no figure; it holds " + members(value)};
  return {State::kNoFigure, {}, {}, name + " is no number"};
}

// The number of that key, to its last digit where it has a text.
std::optional<End> end_of(const Json& parent, const std::string& key) {
  const Json* value = member(parent, key);
  auto end = value == nullptr ? std::nullopt : end_of(*value);
  if (end)
    if (const auto whole = parse_whole(exact_text(parent, key)))
      end = End{static_cast<long double>(*whole), whole};
  return end;
}

// One of precision.NAME or integer_op.NAME, where launches are unmeasured.
bool of_partial_list(const Json& report, const FigurePath& path) {
  if (path.size() < 2) return false;
  const std::string& list = path[path.size() - 2];
  if (list != "precision" && list != "integer_op") return false;
  const FigurePath around(path.begin(), path.end() - 2);
  const Json* holder = around.empty() ? &report : found(report, around).value;
  const Json* unmeasured = holder == nullptr ? nullptr
                           : around.empty()  ? found(report, {"total", "unmeasured_launches"}).value
                                             : member(*holder, "unmeasured_launches");
  return unmeasured != nullptr && *unmeasured != 0;
}

// What is known of a figure that is null, from the keys beside it.
void add_bounds(const Json& parent, const std::string& key, const std::string& name,
                GateFigure& figure) {
  figure.low = end_of(parent, key + "_at_least");
  figure.high = end_of(parent, key + "_at_most");
  const std::string partial = key + "_partial";
  const auto of_some = end_of(parent, partial);
  if (!of_some) return;
  figure.message = "launches are missing from it; " + name + "_partial has the others";
  // A sum, and no quotient of two: at least so much, without what may be no arithmetic.
  if (!of_some->whole) return;
  const auto doubtful = end_of(parent, "flop_doubtful");
  const u128 off = doubtful && doubtful->whole ? std::min(*doubtful->whole, *of_some->whole) : 0;
  const u128 least = *of_some->whole - off;
  figure.low = End{static_cast<long double>(least), least};
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
  } else if (!path.empty() && figure_of(value, path).state != GateFigure::State::kNoFigure) {
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
    if (figure_of(*value, std::string(name)).state == GateFigure::State::kNoFigure) return;
    std::string text = exact_text(*parent, parts.back());
    if (value->is_null()) {
      text = known_text(find_figure(report, parts));
      if (text.empty()) text = "-";
    } else if (text.empty()) {
      text = value->is_string() ? value->get<std::string>() : value->dump();
    }
    list.push_back({printable(name), std::move(text)});
  };
  for (const auto& [name, path] : kShortNames) add(name, path);
  std::vector<std::string> paths;
  collect(report, "", paths);
  for (const std::string& path : paths)
    if (!is_short(path)) add(path, path);
  return list;
}

GateFigure find_figure(const Json& report, const FigurePath& path) {
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
    if (next == nullptr && value->is_null()) return {GateFigure::State::kNotKnown, {}, {}, ""};
    if (next == nullptr)
      return {
          GateFigure::State::kNoFigure, {}, {}, "no figure '" + name + "'" + nearest(report, name)};
    parent = value;
    value = next;
  }
  GateFigure figure = figure_of(*value, name);
  if (figure.state == GateFigure::State::kNotKnown) {
    add_bounds(*parent, parts.back(), name, figure);
  } else if (figure.state == GateFigure::State::kValue) {
    figure = GateFigure::of(*end_of(*parent, parts.back()));
    if (of_partial_list(report, parts)) {
      figure.state = GateFigure::State::kNotKnown;
      figure.high.reset();
      figure.message = "launches are missing from it";
    }
  }
  return figure;
}

}  // namespace flopinj::reduce
