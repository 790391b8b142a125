#include "sections/parts/columns.h"

#include <set>

#include "sections/parts/rough_times.h"

namespace flopinj::reduce {
namespace {

// Times of few units of a clock, about.
void mark_rough(const std::vector<Column>& columns, uint64_t below_ns, TableRow& row) {
  const auto is_rough = [&](const auto& ns) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(ns)>> ||
                  std::is_same_v<std::remove_cvref_t<decltype(ns)>, u128>)
      return ns > 0 && ns < static_cast<std::remove_cvref_t<decltype(ns)>>(below_ns);
    return false;
  };
  for (size_t i = 0; i < columns.size() && i < row.size(); ++i)
    if (columns[i].kind == Kind::kNanoseconds && row[i].marks == Mark::kNone &&
        std::visit(is_rough, row[i].value))
      row[i].marks = Mark::kEstimate;
}

}  // namespace

std::vector<Column> ColumnList::said() const {
  std::vector<Column> columns;
  for (const One& one : all_) columns.push_back(one.column);
  return columns;
}

bool ColumnList::has(const Column& column) const {
  return std::ranges::any_of(
      all_, [&](const One& one) { return std::string_view(one.column.key) == column.key; });
}

void ColumnList::drop_repeated() {
  std::set<std::string_view> seen;
  std::erase_if(all_, [&](const One& one) { return !seen.insert(one.column.key).second; });
}

TableRow ColumnList::cells(const void* row, const Report& report, bool for_people) const {
  TableRow out;
  out.reserve(all_.size());
  for (const One& one : all_) {
    if (!shown(one.column, for_people)) continue;
    out.push_back(one.get(row, report));
    if (for_people && one.why_shown != nullptr) out.back() = dashed(out.back(), one.why_shown);
  }
  return out;
}

void ColumnList::add(Column column, const char* meaning, const Get& get) {
  column.worth = worth_;
  column.meaning = meaning;
  all_.push_back({column, get, nullptr});
}

Section TableSource::section(const Report& report) const {
  Table all = for_people(report);
  if (all.rows.empty() && *all.when_empty == '\0') return {};
  return {title_, {}, std::move(all), {}};
}

Table TableSource::table(const Report& report, bool for_people, bool held) const {
  Table out{key_, {}};
  for (const Column& column : list_())
    if (ColumnList::shown(column, for_people)) out.columns.push_back(column);
  out.long_list = long_list_;
  out.when_empty = when_empty_;
  fill_(out, report, for_people);
  if (const uint64_t below_ns = for_people ? rough_below_ns(report) : 0; below_ns > 0) {
    for (TableRow& row : out.rows) mark_rough(out.columns, below_ns, row);
    if (out.each)
      out.each = [each = std::move(out.each), columns = out.columns, below_ns](const auto& take) {
        each([&](TableRow row) {
          mark_rough(columns, below_ns, row);
          take(row);
        });
      };
  }
  if (held) {
    out.each([&](const TableRow& row) { out.rows.push_back(row); });
    out.each = {};
  }
  return out;
}

}  // namespace flopinj::reduce
