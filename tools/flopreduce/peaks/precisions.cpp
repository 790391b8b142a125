#include "peaks/precisions.h"

#include <algorithm>
#include <vector>

#include "support/data.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

struct Line {
  std::string_view name;
  bool product = true;
  PrecisionSet precisions;
};
struct Table {
  std::vector<Line> kernels, types;
  std::string error;
};

std::optional<PrecisionSet> read_set(std::string_view text) {
  PrecisionSet set;
  if (text == "-") return set;
  for (const auto word : parts_of(text, ' ')) {
    const auto* const found = std::ranges::find(kPrecisionNames, word);
    if (found == kPrecisionNames.end()) return std::nullopt;
    set.add(static_cast<size_t>(found - kPrecisionNames.begin()));
  }
  return set;
}

Table read_table(std::string_view text) {
  Table table;
  size_t number = 0;
  for (const auto line : parts_of(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const auto cells = parts_of(line, '\t');
    const auto set = cells.size() == 3 ? read_set(cells[2]) : std::nullopt;
    if (!set || cells[1].empty() || lower(cells[1]) != cells[1]) {
      table.error = "line " + std::to_string(number);
      return table;
    }
    if (cells[0] == "type")
      table.types.push_back({cells[1], true, *set});
    else if (cells[0] == "product" || cells[0] == "other")
      table.kernels.push_back({cells[1], cells[0] == "product", *set});
    else
      table.error = "line " + std::to_string(number);
  }
  return table;
}

const Table& table() {
  static const Table kTable = read_table(data::kPrecisions);
  return kTable;
}

// "a*b" is a, and somewhere behind it b.
bool fits(std::string_view name, std::string_view pattern) {
  size_t at = 0;
  for (const auto part : parts_of(pattern, '*')) {
    at = name.find(part, at);
    if (at == name.npos) return false;
    at += part.size();
  }
  return true;
}

}  // namespace

std::string PrecisionSet::text() const {
  std::string text;
  for (size_t i = 0; i < kPrecisionNames.size(); ++i)
    if (has(i)) text += (text.empty() ? "" : " or ") + std::string(kPrecisionNames[i]);
  return text;
}

KernelPrecisions precisions_of_kernel(std::string_view kernel) {
  const std::string name = lower(demangle(kernel));
  for (const Line& line : table().kernels)
    if (fits(name, line.name)) return {line.product, line.precisions};
  return {};
}

PrecisionSet precisions_of_types(std::string_view types) {
  constexpr std::string_view kNamespace = "c10::";
  PrecisionSet set;
  for (auto type : parts_of(types, ',')) {
    while (type.starts_with(' ')) type.remove_prefix(1);
    if (type.starts_with(kNamespace)) type.remove_prefix(kNamespace.size());
    if (type.empty() || type == "-") continue;
    const std::string name = lower(type);
    const auto found = std::ranges::find(table().types, name, &Line::name);
    if (found == table().types.end()) return {};
    set |= found->precisions;
  }
  return set;
}

std::string wrong_in_precisions(std::string_view text) { return read_table(text).error; }

}  // namespace flopinj::reduce
