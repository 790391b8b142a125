#include "writers/cell_text.h"

#include <cmath>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

u128 whole(double value) {
  constexpr double kMost = 3e38;
  return value > 0 ? static_cast<u128>(std::fmin(value, kMost) + 0.5) : 0;
}

std::string human_number(u128 value, Kind kind) {
  if (const char* unit = words_of(kind).human; unit != nullptr) return to_human(value, unit);
  if (kind == Kind::kNanoseconds) return to_human_time(value);
  if (kind == Kind::kFlag) return value != 0 ? "yes" : "no";
  return to_grouped(value);
}

std::string human_number(double value, Kind kind) {
  if (kind == Kind::kRatio || kind == Kind::kText) return ratio_text(value);
  if (kind == Kind::kShare) return percent_text(value);
  return (value <= -0.5 ? "-" : "") + human_number(whole(std::fabs(value)), kind);
}

}  // namespace

const KindWords& words_of(Kind kind) {
  static constexpr KindWords kWords[] = {
      {"text", nullptr, nullptr},      {"count", nullptr, nullptr},
      {"flop", "FLOP", "FLOP"},        {"exact", nullptr, nullptr},
      {"op", "operations", "OP"},      {"ns", "ns", nullptr},
      {"bytes", "bytes", "B"},         {"rate", "FLOP/s", "FLOP/s"},
      {"bandwidth", "bytes/s", "B/s"}, {"ratio", nullptr, nullptr},
      {"share", "part of 1", nullptr}, {"flag", nullptr, nullptr}};  // by Kind
  return kWords[static_cast<size_t>(kind)];
}

std::vector<std::pair<std::string, Kind>> flat_columns(const Table& table) {
  std::vector<std::pair<std::string, Kind>> columns;
  for (const Column& column : table.columns) {
    if (column.kind == Kind::kExactFlop) continue;
    columns.emplace_back(column.key, column.kind);
    if (can_be_marked(column)) columns.emplace_back(std::string(column.key) + "_mark", Kind::kText);
    if (column.range) columns.emplace_back(std::string(column.key) + "_at_most", column.kind);
  }
  return columns;
}

Mark exact_marks(const Table& table, const TableRow& row, size_t c) {
  const bool second = c + 1 < row.size() && table.columns[c + 1].kind == Kind::kExactFlop;
  return second ? row[c].marks | row[c + 1].marks : row[c].marks;
}

std::string human(const Cell& cell, Kind kind) {
  if (cell.empty()) return cell.absent;
  if (const auto* text = std::get_if<std::string>(&cell.value)) return printable(*text);
  const auto* real = std::get_if<double>(&cell.value);
  if (cell.most && real != nullptr && kind == Kind::kShare)
    return range_text(cell.marks, *real, *cell.most);
  std::string marks = marks_text(cell.marks);
  if (!marks.empty()) marks += ' ';
  if (const auto* number = std::get_if<u128>(&cell.value))
    return marks + human_number(*number, kind);
  return marks + human_number(std::get<double>(cell.value), kind);
}

std::string exact(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text;
  if (const auto* number = std::get_if<u128>(&cell.value)) return to_decimal(*number);
  if (const auto* number = std::get_if<double>(&cell.value)) return printed("%.17g", *number);
  return {};
}

}  // namespace flopinj::reduce
