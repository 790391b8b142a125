// The columns of a row type, each said once: key, heading, kind, worth, meaning, and where a row
// has its cell. Tables for people, CSV, SQL, JSON, its schema and the documents come from the list.
//
//   Columns<KernelReport> kernel_columns() {
//     Columns<KernelReport> c;
//     c.text("kernel", "kernel", &KernelReport::name);
//     c.count(said::kLaunches, &KernelReport::launches);
//     c.for_programs();  // people do not see the rest
//     c.count("signatures", "signatures", &KernelReport::signatures);
//     return c;
//   }
//   const TableSource kKernels("kernels", "kernels by name", kernel_columns, &Report::kernels);
//
// A getter is a member, or takes the row, or the row and its report. Texts and plain counts may be
// given as they are. All else is a Figure, so that its marks cannot be forgotten.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// For Columns::figure, of what is always exact where it is known.
template <typename F>
auto exactly(F get) {
  return [get](const auto& row) { return Figure::exact(std::invoke(get, row)); };
}
// A member of a member.
template <typename Outer, typename Inner>
auto through(Outer outer, Inner inner) {
  return [outer, inner](const auto& row) { return std::invoke(inner, std::invoke(outer, row)); };
}

// An element of a list that each row of another list has.
template <typename Outer, typename Inner>
struct Of {
  const Outer& of;
  const Inner& one;
};
// For TableSource: those of all rows of a list of the report. Both lists are the report's own.
template <typename Outers, typename Inners>
auto each_of(Outers outers, Inners inners) {
  return [outers, inners](const Report& report) {
    const auto& of = std::invoke(outers, report);
    using Outer = std::remove_cvref_t<decltype(*of.begin())>;
    using Inner = std::remove_cvref_t<decltype(*std::invoke(inners, *of.begin()).begin())>;
    std::vector<Of<Outer, Inner>> rows;
    for (const Outer& outer : of)
      for (const Inner& one : std::invoke(inners, outer)) rows.push_back({outer, one});
    return rows;
  };
}
// Getters of a row of them.
template <typename F>
auto of_outer(F get) {
  return [get](const auto& row) { return std::invoke(get, row.of); };
}
template <typename F>
auto of_one(F get) {
  return [get](const auto& row) { return std::invoke(get, row.one); };
}

// The rows of a list that `is` holds for, in their order.
template <typename Row, typename Is>
std::vector<std::reference_wrapper<const Row>> only(const std::vector<Row>& list, Is is) {
  std::vector<std::reference_wrapper<const Row>> rows;
  for (const Row& row : list)
    if (std::invoke(is, row)) rows.push_back(std::cref(row));
  return rows;
}

// The rows of a list, largest first. `by`: a member, or a function.
template <typename Row, typename By>
std::vector<const Row*> largest_first(const std::vector<Row>& list, By by) {
  std::vector<const Row*> rows;
  for (const Row& row : list) rows.push_back(&row);
  std::ranges::stable_sort(rows, std::greater<>(),
                           [&](const Row* row) { return std::invoke(by, *row); });
  return rows;
}

// Where a row has its cell. There are hundreds of getters, each of a type of its own, and each
// captures a few pointers to members. They are held as bytes, and the row's type is not a part of
// the list's: a std::function of each getter costs the compiler twice the time of all sections.
class Get {
 public:
  template <typename Row, typename F>
  static Get of(F get) {
    static_assert(sizeof(F) <= sizeof captured_ && std::is_trivially_copyable_v<F>);
    Get made;
    new (made.captured_) F(get);
    made.call_ = [](const std::byte* captured, const void* row, const Report& report) {
      return (*std::launder(reinterpret_cast<const F*>(captured)))(*static_cast<const Row*>(row),
                                                                   report);
    };
    return made;
  }
  Cell operator()(const void* row, const Report& report) const {
    return call_(captured_, row, report);
  }

 private:
  Get() = default;
  Cell (*call_)(const std::byte*, const void*, const Report&) = nullptr;
  alignas(void*) std::byte captured_[96] = {};
};

// The columns of rows whose type is known where the list is made.
class ColumnList {
 public:
  struct One {
    Column column;
    Get get;
    const char* why_shown = nullptr;  // the only reason that people see of the unknown; null: all
  };
  std::vector<Column> said() const;
  bool has(const Column& column) const;
  void drop_repeated();  // of columns with one key all but the first
  TableRow cells(const void* row, const Report& report, bool for_people) const;
  static bool shown(const Column& column, bool for_people) {
    return for_people ? column.worth != Worth::kProgram : column.kind != Kind::kExactFlop;
  }

 protected:
  void add(Column column, const char* meaning, const Get& get);

  std::vector<One> all_;
  Worth worth_ = Worth::kUsual;
};

template <typename Row>
class Columns : public ColumnList {
 public:
  using RowType = Row;

  template <typename F>
  Columns& text(const char* key, const char* heading, F get, const char* meaning = "") {
    return add({key, heading, Kind::kText}, meaning, [get](const Row& row, const Report& report) {
      return text_cell(value(get, row, report));
    });
  }
  // Columns that several tables have (said.h). Where `c` is for programs, they are too.
  template <typename F>
  Columns& text(const Column& column, F get) {
    return text(column.key, column.heading, std::move(get), column.meaning);
  }
  template <typename F>
  Columns& count(const Column& column, F get) {
    return count(column.key, column.heading, std::move(get), column.meaning);
  }
  template <typename F>
  Columns& flag(const Column& column, F get) {
    return flag(column.key, column.heading, std::move(get), column.meaning);
  }
  template <typename F>
  Columns& figure(const Column& column, F get) {
    return figure(column.key, column.heading, column.kind, std::move(get), column.meaning);
  }
  // A whole number that is always exact.
  template <typename F>
  Columns& count(const char* key, const char* heading, F get, const char* meaning = "") {
    return add({key, heading, Kind::kCount}, meaning, [get](const Row& row, const Report& report) {
      return count_cell(value(get, row, report));
    });
  }
  template <typename F>
  Columns& flag(const char* key, const char* heading, F get, const char* meaning = "") {
    return add({key, heading, Kind::kFlag}, meaning, [get](const Row& row, const Report& report) {
      return count_cell(value(get, row, report));
    });
  }
  template <typename F>
  Columns& figure(const char* key, const char* heading, Kind kind, F get,
                  const char* meaning = "") {
    return add({key, heading, kind}, meaning, [get](const Row& row, const Report& report) {
      const auto& cell = value(get, row, report);
      static_assert(std::same_as<std::remove_cvref_t<decltype(cell)>, Figure> ||
                        std::same_as<std::remove_cvref_t<decltype(cell)>, Cell>,
                    "a number says how it is known: Figure");
      return Cell(cell);
    });
  }
  // A number that is always exact where it is known, and is no plain count: bytes, a limit.
  template <typename F>
  Columns& exact(const char* key, const char* heading, Kind kind, F get, const char* meaning = "") {
    add({key, heading, kind}, meaning, [get](const Row& row, const Report& report) {
      return Cell(Figure::exact(value(get, row, report)));
    });
    all_.back().column.exact = true;
    return *this;
  }
  template <typename F>
  Columns& exact(const Column& column, F get) {
    return exact(column.key, column.heading, column.kind, std::move(get), column.meaning);
  }
  // Of the column that was added last.
  Columns& worth(Worth worth) {
    all_.back().column.worth = worth;
    return *this;
  }
  Columns& names(std::span<const std::string_view> names) {
    all_.back().column.names = names;
    return *this;
  }
  Columns& range() {
    all_.back().column.range = true;
    return *this;
  }
  Columns& main() { return worth(Worth::kMain); }
  Columns& detail() { return worth(Worth::kDetail); }
  // Of the last column: where it is not known people see no reason but this, and else "-".
  Columns& dash(const char* unless = "") {
    all_.back().why_shown = unless;
    return *this;
  }
  // A second look at the last column, to the last digit, for people only.
  Columns& and_exact(const char* key = "flop_exact", const char* heading = "exact") {
    ColumnList::add({key, heading, Kind::kExactFlop}, "", Get(all_.back().get));
    return dash();
  }
  // Columns that are added from here on are not for people.
  Columns& for_programs() {
    worth_ = Worth::kProgram;
    return *this;
  }

 private:
  template <typename F>
  Columns& add(const Column& column, const char* meaning, F get) {
    ColumnList::add(column, meaning, Get::of<Row>(get));
    return *this;
  }
  template <typename F>
  static decltype(auto) value(const F& get, const Row& row, const Report& report) {
    if constexpr (std::is_member_pointer_v<F>)
      return std::invoke(get, row);
    else if constexpr (requires { get(row, report); })
      return get(row, report);
    else
      return get(row);
  }
  template <typename V>
  static Cell text_cell(V&& value) {
    if constexpr (requires { value.has_value(); })
      return value ? text_cell(*std::forward<V>(value)) : Cell::none();
    else
      return Cell(std::string(std::forward<V>(value)));
  }
  template <typename V>
  static Cell count_cell(const V& value) {
    if constexpr (requires { value.has_value(); }) {
      return value ? count_cell(*value) : Cell::none();
    } else {
      static_assert(std::integral<V> || std::same_as<V, u128>, "a count is a whole number");
      return Figure::exact(static_cast<u128>(value));
    }
  }
};

// A table of the report: what it is called, and how its rows are made.
class TableSource {
 public:
  // `list` returns the columns. `rows`: a member of Report, or a function of one, that is or
  // returns a list of rows. With `pass_on` instead (below) rows need not be held.
  template <typename List, typename Rows>
  TableSource(const char* key, const char* about, List list, Rows rows) : key_(key), about_(about) {
    using RowType = typename std::invoke_result_t<List>::RowType;
    list_ = [list] { return list().said(); };
    fill_ = [list, rows](Table& table, const Report& report, bool for_people) {
      table.each = [c = list(), rows, &report, for_people](const auto& visit) {
        for (const RowType& row : std::invoke(rows, report))
          visit(c.cells(&row, report, for_people));
      };
    };
  }
  // `each(report, visit)` calls visit(row) for each of many rows, which are never held.
  template <typename Row>
  static TableSource pass_on(const char* key, const char* about, Columns<Row> (*list)(),
                             void (*each)(const Report&, const std::function<void(const Row&)>&)) {
    TableSource source(key, about);
    source.held_ = false;
    source.list_ = [list] { return list().said(); };
    source.fill_ = [list, each](Table& table, const Report& report, bool for_people) {
      table.each = [c = list(), each, &report, for_people](const auto& visit) {
        each(report, [&](const Row& row) { visit(c.cells(&row, report, for_people)); });
      };
    };
    return source;
  }
  // It is there only with ReduceOptions::facts.
  TableSource& of_facts() {
    facts_ = true;
    return *this;
  }
  // Programs are handed one row after another.
  TableSource& not_held() {
    held_ = false;
    return *this;
  }
  // People see its first `--top` rows.
  TableSource& long_list() {
    long_list_ = true;
    return *this;
  }
  // Of its section.
  TableSource& titled(const char* words) {
    title_ = words;
    return *this;
  }
  // What people see instead of no row.
  TableSource& when_empty(const char* words) {
    when_empty_ = words;
    return *this;
  }

  const char* key() const { return key_; }
  const char* about() const { return about_; }
  bool facts() const { return facts_; }
  bool has_title() const { return *title_ != '\0'; }
  std::vector<Column> columns() const { return list_(); }  // all of them
  // For programs: all columns but second looks.
  Table for_programs(const Report& report) const { return table(report, false, held_); }
  Table for_people(const Report& report) const { return table(report, true, held_); }
  // For programs; no row is held.
  Table passed_on(const Report& report) const { return table(report, false, false); }
  // Empty where there is no row and nothing to be said instead.
  Section section(const Report& report) const;

 private:
  TableSource(const char* key, const char* about) : key_(key), about_(about) {}
  Table table(const Report& report, bool for_people, bool held) const;

  const char* key_;
  const char* about_;
  bool facts_ = false, long_list_ = false, held_ = true;
  const char *title_ = "", *when_empty_ = "";
  std::function<std::vector<Column>()> list_;
  std::function<void(Table&, const Report&, bool)> fill_;
};

}  // namespace flopinj::reduce
