#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "anonymous/anonymize.h"
#include "writers/cell_text.h"

namespace flopinj::reduce {
namespace {

using Figures = std::map<std::string, std::vector<std::string>>;  // by table and column

// Tables and columns.
constexpr std::array<std::string_view, 11> kNoFigures = {
    "command_line", "partial", "notices", "stable_hash", "session", "uuid",
    "code_hash",    "damage",  "errors",  "process",     "trace"};

bool has_figures(std::string_view key) { return std::ranges::count(kNoFigures, key) == 0; }

Figures figures_of(std::span<const Table> tables) {
  Figures figures;
  for (const Table& table : tables) {
    if (!has_figures(table.key)) continue;
    table.for_each_row([&](const TableRow& row) {
      for (size_t c = 0; c < row.size(); ++c) {
        if (!has_figures(table.columns[c].key)) continue;
        const bool text = std::holds_alternative<std::string>(row[c].value);
        figures[std::string(table.key) + "." + table.columns[c].key].push_back(
            text ? "a text" : marks_text(row[c].marks) + exact(row[c]));
      }
    });
  }
  for (auto& [key, values] : figures) std::ranges::sort(values);
  return figures;
}

}  // namespace

std::optional<std::string> first_difference(std::span<const Table> a, std::span<const Table> b) {
  const Figures left = figures_of(a), right = figures_of(b);
  const auto [l, r] = std::ranges::mismatch(left, right);
  if (l == left.end() && r == right.end()) return std::nullopt;
  return l == left.end() || (r != right.end() && r->first < l->first) ? r->first : l->first;
}

}  // namespace flopinj::reduce
