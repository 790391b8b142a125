#include "gates/figures.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "edit_distance.h"
#include "sections/parts/cells.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kFigures = "figures", kTotal = "total";
// Of these tables each row is a figure: of `lost` the share, which a name without a column means.
constexpr std::string_view kLost = "lost", kShare = "share";
constexpr std::pair<std::string_view, std::string_view> kAlso[] = {
    {"utilization", "hfu_kernel_time"}};

// Words for figures of other tools, and names here.
constexpr std::pair<std::string_view, std::string_view> kLikes[] = {
    {"throughput", "flop_per_s, tokens_per_s"},
    {"tflops", "flop_per_s"},
    {"gflops", "flop_per_s"},
    {"bandwidth", "byte_per_s"},
    {"memory_bandwidth", "byte_per_s"},
    {"duration", "step_time, gpu_time_ns"},
    {"time", "step_time, gpu_time_ns"},
    {"kernel_time", "gpu_time_ns"},
    {"gpu_time", "gpu_time_ns"},
    {"wall_time", "step_time, wall_device_ns"},
    {"power", "energy_j"},
    {"efficiency", "hfu, mfu"}};

// Why a figure of the report is unknown, where the report gives no reason.
constexpr std::pair<std::string_view, std::string_view> kNeeded[] = {
    {"tokens_per_s", "it needs --tokens-per-step, and steps"},
    {"flop_per_token", "it needs --tokens-per-step, and steps"}};

const Table* find_table(std::span<const Table> tables, std::string_view key) {
  const auto found = std::ranges::find(tables, key, [](const Table& t) { return t.key; });
  return found == tables.end() ? nullptr : &*found;
}

// Null where no row is named so, or several are.
const TableRow* find_row(const Table& table, const std::string& name) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size())
    return number < table.rows.size() ? &table.rows[number] : nullptr;
  const TableRow* found = nullptr;
  for (const TableRow& row : table.rows) {
    const auto* text = row.empty() ? nullptr : std::get_if<std::string>(&row[0].value);
    if (text == nullptr || *text != name) continue;
    if (found != nullptr) return nullptr;
    found = &row;
  }
  return found;
}

// "fwd" of "forward".
bool is_short_for(std::string_view text, std::string_view name) {
  size_t at = 0;
  for (const char c : name)
    if (at < text.size() && text[at] == c) ++at;
  constexpr size_t kLeast = 3;
  return text.size() >= kLeast && at == text.size() && text[0] == name[0];
}

// Whether one may be meant by the other, which has "gpu_time_share" by "share".
bool is_near(std::string_view text, std::string_view name) {
  constexpr size_t kLongest = 200;
  if (text.size() > kLongest || name.size() > kLongest || name.empty()) return false;
  for (const std::string_view part : parts_of(name, '_'))
    if (part == text) return true;
  return is_short_for(text, name) ||
         edit_distance(text, name) <= std::max<size_t>(1, text.size() / 3);
}

// As a condition has it.
std::string row_text(const std::string& row) {
  const bool word =
      std::ranges::all_of(row, [](char c) { return is_alnum(c) || c == '_' || c == '-'; });
  return word ? row : row.find('"') == row.npos ? '"' + row + '"' : "'" + row + "'";
}

// Where the table of a figure's name is right: rows and columns of that table, and the figure of
// the whole where there is one; up to three. Empty: none is near.
std::vector<std::string> near_in_table(std::span<const Table> tables, const FigurePath& path) {
  constexpr size_t kShown = 3;
  std::vector<std::string> names;
  if (const Table* all = find_table(tables, kFigures);
      all != nullptr && path.size() > 1 && all->place_of(path[0]))
    names.push_back(path[0]);
  const Table* table = path.size() == 3 ? find_table(tables, path[0]) : nullptr;
  if (table == nullptr) return names;
  if (!table->place_of(path[2])) {
    for (const Column& column : table->columns)
      if (column.kind != Kind::kText && is_near(path[2], column.key))
        names.push_back(path[0] + "." + row_text(path[1]) + "." + column.key);
  } else {
    for (const TableRow& row : table->rows)
      if (const auto* text = row.empty() ? nullptr : std::get_if<std::string>(&row[0].value);
          text != nullptr && is_near(lower(path[1]), lower(*text)))
        names.push_back(path[0] + "." + row_text(*text) + "." + path[2]);
  }
  if (names.size() > kShown) names.resize(kShown);
  return names;
}

std::string text_of(const FigurePath& path) { return printable(cut(joined(path, "."), 300)); }

// The names of all figures, of a table's first row only: it may have any number. In `total`, which
// a comparison has, and in `lost` each row is a figure.
std::vector<std::pair<std::string, const Cell*>> all_figures(std::span<const Table> tables) {
  std::vector<std::pair<std::string, const Cell*>> list;
  for (const Table& table : tables) {
    const bool short_names = table.key == kFigures;
    const bool named = table.key == kTotal || table.key == kLost;
    for (const TableRow& row : table.rows) {
      const std::string of_row = named ? std::get<std::string>(row[0].value) : "0";
      for (size_t c = 0; c < table.columns.size(); ++c) {
        if (table.columns[c].kind == Kind::kText && table.columns[c].names.empty()) continue;
        const std::string key = table.columns[c].key;
        list.emplace_back(short_names ? key : table.key + ("." + of_row + ".") + key, &row[c]);
        for (const auto& [also, column] : kAlso)
          if (short_names && key == column) list.emplace_back(also, &row[c]);
      }
      if (!named) break;
    }
  }
  return list;
}

std::string all_listed(std::span<const Table> tables) {
  const bool of_two = find_table(tables, "comparison") != nullptr;
  return "; " + typed(of_two ? "compare --fail-if list A B" : "report --fail-if list TRACE") +
         " lists all";
}

// None is near that has another letter in three.
std::string nearest(std::span<const Table> tables, const FigurePath& path) {
  constexpr size_t kShown = 3, kLongest = 200;
  if (const auto near = near_in_table(tables, path); !near.empty())
    return "; near: " + joined(near, ", ", printable) + all_listed(tables);
  const std::string wanted = lower(text_of(path));
  for (const auto& [word, names] : kLikes)
    if (wanted == word && find_table(tables, "comparison") == nullptr)
      return "; near: " + std::string(names) + all_listed(tables);
  std::vector<std::string> names;
  for (const auto& figure : all_figures(tables)) names.push_back(figure.first);
  for (const Table& table : tables)
    for (const Column& column : table.columns)
      if (table.rows.empty() && column.kind != Kind::kText)
        names.push_back(std::string(table.key) + ".0." + column.key);
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (name.size() >= kLongest) continue;
    const auto last = [](std::string_view of) { return of.substr(of.rfind('.') + 1); };
    size_t distance = edit_distance(wanted, name);
    for (const std::string_view part : parts_of(name, '.'))  // "mfu" of "total.mfu.ratio"
      distance = std::min(distance, edit_distance(last(wanted), part));
    if (distance <= std::max<size_t>(1, last(wanted).size() / 3)) order.emplace_back(distance, i);
  }
  const size_t n = std::min(kShown, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end());
  std::string text;
  for (size_t i = 0; i < n; ++i)
    text += (i > 0 ? ", " : "; near: ") + printable(names[order[i].second]);
  return text + all_listed(tables);
}

// "it holds flop, launches, ..."
std::string members(const Table& table) {
  constexpr size_t kShown = 6;
  const std::span columns(table.columns);
  return joined(columns.first(std::min(kShown, columns.size())), ", ", &Column::key) +
         (columns.size() > kShown ? ", ..." : "");
}

// Which table, row and column a name means. `row` is empty for a table of one row.
struct Place {
  const Table* table = nullptr;
  std::optional<std::string> row = {};
  std::optional<size_t> column = {};
  std::string wrong = {};  // why there is no such figure
};

Place place_of(std::span<const Table> tables, const FigurePath& path) {
  FigurePath parts = path;
  const auto none = [](std::string why) { return Place{.wrong = std::move(why)}; };
  const auto no_such = [&] {
    return none("no figure '" + text_of(path) + "'" + nearest(tables, path));
  };
  if (parts.size() == 2 && parts[0] == kTotal) parts.erase(parts.begin());
  const bool is_short = parts.size() == 1;
  Place place{.table = find_table(tables, is_short ? kFigures : std::string_view(parts[0]))};
  if (place.table == nullptr || parts.size() > 3) return no_such();
  if (is_short)
    for (const auto& [name, column] : kAlso)
      if (parts[0] == name) parts[0] = column;
  if (parts.size() == 2 && place.table->key == kLost && find_row(*place.table, parts[1]) != nullptr)
    parts.emplace_back(kShare);
  place.column = place.table->place_of(parts.back());
  if (parts.size() == 3) place.row = parts[1];
  if (!place.column) {
    if (const Table* whole = find_table(tables, path[0]); whole != nullptr && path.size() < 3)
      return none(text_of(path) + " is no figure; rows of " + whole->key + " hold " +
                  members(*whole));
    return no_such();
  }
  const Column& column = place.table->columns[*place.column];
  if (column.kind == Kind::kText && column.names.empty())
    return none(text_of(path) + " is no number");
  return place;
}

// In `total`, which a comparison has, the row says which figure A and B are of.
const Unit* unit_of(const Column& column, std::string_view row) {
  const std::string_view key = column.key;
  if (column.kind == Kind::kShare || column.kind == Kind::kCount) return nullptr;
  return unit_of_key(!row.empty() && (key == "a" || key == "b") ? row : key);
}

}  // namespace

std::optional<std::string> wrong_name(std::span<const Table> tables, const Gate::Sides& sides) {
  const Place left = sides.left.empty() ? Place{} : place_of(tables, sides.left);
  const Place right = sides.right.empty() ? Place{} : place_of(tables, sides.right);
  const auto names_of = [](const Place& place) {
    const bool found = place.column && place.wrong.empty();
    return found ? place.table->columns[*place.column].names : std::span<const std::string_view>{};
  };
  const auto wrong_beside = [&](const FigurePath& path, std::span<const std::string_view> names,
                                const FigurePath& other, std::span<const std::string_view> others) {
    const bool fits = place_among(names, other) || names.data() == others.data();
    if (sides.equality && fits) return std::string();
    return names_wanted(text_of(path), names);
  };
  const auto of_left = names_of(left), of_right = names_of(right);
  if (!of_left.empty() || !of_right.empty()) {
    std::string wrong = of_left.empty() ? wrong_beside(sides.right, of_right, sides.left, of_left)
                                        : wrong_beside(sides.left, of_left, sides.right, of_right);
    return wrong.empty() ? std::nullopt : std::optional(std::move(wrong));
  }
  for (const Place& place : {left, right})
    if (!place.wrong.empty()) return place.wrong;
  return std::nullopt;
}

FoundFigure find_figure(std::span<const Table> tables, const FigurePath& path) {
  const auto none = [&](const std::string& why) { return FoundFigure{.wrong = why}; };
  const Place place = place_of(tables, path);
  if (!place.wrong.empty()) return none(place.wrong);
  const Table& table = *place.table;
  const TableRow* row = nullptr;
  if (place.row)
    row = find_row(table, *place.row);
  else if (table.rows.size() == 1)
    row = &table.rows[0];
  if (row == nullptr) {
    if (const Table* whole = find_table(tables, path[0]); whole != nullptr && path.size() < 3)
      return none(text_of(path) + " is no figure; rows of " + whole->key + " hold " +
                  members(*whole));
    return none("no figure '" + text_of(path) + "'" + nearest(tables, path));
  }
  const Column& column = table.columns[*place.column];
  const Cell& cell = (*row)[*place.column];
  const bool named_by_row = table.key == kTotal && place.row;
  FoundFigure found{.share = column.kind == Kind::kShare,
                    .unit = unit_of(column, named_by_row ? *place.row : ""),
                    .names = column.names};
  if (const auto* name = std::get_if<std::string>(&cell.value); name == nullptr)
    found.figure = figure_of(cell);
  else if (const auto which = place_among(column.names, {*name}))
    found.figure = Figure::exact(*which);
  else
    found.wrong = "it is a text";
  if (!found.figure.known() && found.figure.why().empty())
    for (const auto& [name, needs] : kNeeded)
      if (name == column.key) found.figure = Figure::unknown(std::string(needs));
  return found;
}

std::vector<NamedValue> list_figures(std::span<const Table> tables) {
  std::vector<NamedValue> list;
  for (const auto& [name, cell] : all_figures(tables)) {
    const auto* word = std::get_if<std::string>(&cell->value);
    std::string text = word != nullptr ? *word : known_text({figure_of(*cell)});
    if (text.starts_with("= ")) text = text.substr(2);
    list.push_back({printable(name), text.empty() ? "-" : std::move(text)});
  }
  return list;
}

}  // namespace flopinj::reduce
