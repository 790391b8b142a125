#include "sections/screens/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "phases/phases.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// A column of both tables, and the columns that the comparison has of it: KEY_a, KEY_b, KEY_ratio.
struct ComparedFigure {
  const char* of;
  const char* per;  // divided by this column; null: as it is
  const char *key, *heading;
  Worth sides, ratio;

  Kind kind() const {
    const std::string_view name = of;
    return name.ends_with("_ns")    ? Kind::kNanoseconds
           : name.ends_with("flop") ? Kind::kFlop
                                    : Kind::kCount;
  }
};

constexpr Worth kHidden = Worth::kProgram, kUsual = Worth::kUsual, kMain = Worth::kMain,
                kDetail = Worth::kDetail;
// clang-format off
constexpr ComparedFigure kOfLaunches[] = {
    {"launches",    nullptr,    "launches",        "launches", kUsual, kHidden},
    {"flop",        "launches", "flop_per_launch", "FLOP/launch", kUsual, kHidden},
    {"flop",        nullptr,    "flop",            "FLOP", kHidden, kMain},
    {"gpu_time_ns", nullptr,    "gpu_time",        "time", kDetail, kMain},
};
constexpr size_t kFlopOfLaunches = 2, kTimeOfLaunches = 3;
constexpr ComparedFigure kOfLayers[] = {
    {"forward_flop",         nullptr, "forward_flop",      "forward", kUsual, kMain},
    {"backward_flop",        nullptr, "backward_flop",     "backward", kUsual, kMain},
    {"forward_gpu_time_ns",  nullptr, "forward_gpu_time",  "time fwd", kDetail, kUsual},
    {"backward_gpu_time_ns", nullptr, "backward_gpu_time", "time bwd", kDetail, kUsual},
};
constexpr ComparedFigure kOfSteps[] = {
    {"median_ns", nullptr, "median", "median", kUsual, kMain},
    {"mean_ns",   nullptr, "mean",   "mean", kUsual, kMain},
};
// clang-format on

// A column's texts have to outlive it.
const char* kept(std::string text) {
  static std::set<std::string> all;
  return all.insert(std::move(text)).first->c_str();
}
std::array<Column, 3> columns_of(const ComparedFigure& f) {
  const char* unit = f.kind() == Kind::kNanoseconds ? "_ns" : "";
  const auto side = [&](const char* key, const char* heading) {
    return Column{kept(std::string(f.key) + key + unit), kept(f.heading + std::string(heading)),
                  f.kind(), f.sides};
  };
  return {side("_a", " A"), side("_b", " B"),
          Column{kept(f.key + std::string("_ratio")), kept(f.heading + std::string(" B/A")),
                 Kind::kRatio, f.ratio, "B / A, after --normalize"}};
}

// A column that says which row of A and which of B are the same.
struct ComparedName {
  const char* of;
  Column column;
};
struct ComparedTable {
  const char* of;     // the report's table
  const char* title;  // for people
  const char* key;
  std::vector<ComparedName> names;
  std::span<const ComparedFigure> figures;
  // A row that the other side lacks is matched by its first name alone, and several of that name
  // are added up. Kernels: what the compiler makes of an anonymous namespace differs from build to
  // build.
  bool by_first_name = false;
  bool zero_where_absent = false;  // the side without the row has 0 launches and 0 FLOP there
  bool by_difference = true;       // rows are in the order of it
};

const std::vector<ComparedTable>& compared_tables() {
  static const std::vector<ComparedTable> kTables = {
      {"phases",
       "Total and phases",
       "compared_phases",
       {{"phase", {"name", "phase"}}},
       kOfLaunches,
       false,
       true,
       false},
      {"kernels",
       "Kernels",
       "compared_kernels",
       {{"kernel", {"name", "kernel"}},
        {"mangled",
         {"mangled", "mangled", Kind::kText, kHidden,
          "null where it is another on each side, or there are several of that name"}}},
       kOfLaunches,
       true},
      {"layers",
       "Layers that changed",
       "compared_layers",
       {{"layer", {"name", "layer"}}},
       kOfLayers},
      {"operators",
       "Operators that changed",
       "compared_operators",
       {{"operator", {"name", "operator"}}, {"phase", {"phase", "phase"}}},
       kOfLaunches},
      {"ranges",
       "Ranges that changed",
       "compared_ranges",
       {{"range", {"name", "range"}}},
       kOfLaunches},
      {"steps",
       "Steps that changed",
       "compared_steps",
       {{"what", {"name", "of a step"}}},
       kOfSteps,
       false,
       false,
       false},
  };
  return kTables;
}

// Of the whole run, from the reports' tables `figures`.
struct RunFigure {
  const char* key;
  const char* shown;  // on the first lines; null: not there
  Kind kind;
};
constexpr std::array kRunFigures = {
    RunFigure{"launches", nullptr, Kind::kCount},
    RunFigure{"flop", "Executed", Kind::kFlop},
    RunFigure{"step_time", "Per step", Kind::kNanoseconds},  // in seconds
    RunFigure{"hfu", "HFU", Kind::kShare},
    RunFigure{"mfu", "MFU", Kind::kShare},
    RunFigure{"hfu_kernel_time", nullptr, Kind::kShare},
    RunFigure{"gpu_time_ns", "Kernel time", Kind::kNanoseconds},
    RunFigure{"ratio", "Backward/fwd", Kind::kRatio},
    RunFigure{"matrix_ratio", nullptr, Kind::kRatio},
    RunFigure{"coverage", "Coverage", Kind::kShare},
    RunFigure{"tokens_per_s", nullptr, Kind::kRatio},
};

// Larger batches and longer runs have more of it.
bool is_amount(Kind kind) {
  return kind == Kind::kCount || kind == Kind::kFlop || kind == Kind::kNanoseconds;
}

// Not known where both sides are bounds, such that it may be more and may be less.
Figure quotient_of(const Compared& of) {
  const Figure ratio = of.b / of.a;
  const bool open = has(ratio.marks(), Mark::kAtLeast) && has(ratio.marks(), Mark::kAtMost);
  return ratio.known() && !open ? ratio : Figure();
}

Compared compared(Figure a, Figure b, Kind kind, const Normalization& n) {
  Compared out{std::move(a), std::move(b), {}};
  const Figure ratio = quotient_of(out);
  if (const auto number = ratio.number())
    out.ratio = {is_amount(kind) ? *number * n.a / n.b : *number, ratio.marks()};
  return out;
}

// Integers differ in the last digit, normalised ones by more than their division rounds. What is
// not known to be another on a side does not.
bool differ(const Compared& c, Kind kind, const Normalization& n) {
  constexpr double kSame = 1e-9;
  if (!c.a.known() || !c.b.known()) return false;
  if (c.a.bound() || c.b.bound()) return c.a.bound() != c.b.bound();
  if (n.name.empty() || !is_amount(kind)) return c.a.value() != c.b.value();
  const double a = *c.a.number() / n.a, b = *c.b.number() / n.b;
  return std::fabs(a - b) > kSame * std::max(a, b);
}

// A difference in time alone makes no row another: times differ from run to run. Nor does a mean of
// launches, whose launches and sum are compared.
bool row_differs(const std::span<const ComparedFigure>& of, const std::vector<Compared>& figures,
                 const Normalization& n) {
  for (size_t i = 0; i < of.size(); ++i) {
    const Kind kind = of[i].kind();
    const bool counts = kind == Kind::kFlop || (kind == Kind::kCount && n.name.empty());
    if (!counts || of[i].per != nullptr) continue;
    if (figures[i].a.known() != figures[i].b.known() || differ(figures[i], kind, n)) return true;
  }
  return false;
}

// How much normalised time, or FLOP where times agree, a row moved.
double moved(const std::span<const ComparedFigure>& of, const ComparedRow& row,
             const Normalization& n) {
  double sum = 0;
  for (size_t i = 0; i < of.size(); ++i) {
    if (of[i].per != nullptr || of[i].kind() == Kind::kCount) continue;
    const double by = std::fabs(row.figures[i].b.number().value_or(0) / n.b -
                                row.figures[i].a.number().value_or(0) / n.a);
    sum += of[i].kind() == Kind::kNanoseconds ? by : by * 1e-15;
  }
  return sum;
}

// One side's row, or several that are one here. Figures by ComparedTable::figures, not yet divided.
struct Item {
  std::vector<std::string> names;
  std::vector<Figure> figures;
};
using Items = std::map<std::string, Item>;

size_t column_of(const Table& table, std::string_view key) {
  const auto found = std::ranges::find(table.columns, key, [](const Column& c) { return c.key; });
  return static_cast<size_t>(found - table.columns.begin());
}

std::string name_at(const TableRow& row, size_t column) {
  const auto* text = column < row.size() ? std::get_if<std::string>(&row[column].value) : nullptr;
  return text != nullptr ? *text : std::string();
}
Figure figure_at(const TableRow& row, size_t column) {
  return column < row.size() ? figure_of(row[column]) : Figure();
}

std::vector<Item> items_of(const ComparedTable& of, const Table& table) {
  std::vector<size_t> names, figures;
  for (const ComparedName& name : of.names) names.push_back(column_of(table, name.of));
  for (const ComparedFigure& figure : of.figures) figures.push_back(column_of(table, figure.of));
  std::vector<Item> items;
  table.for_each_row([&](const TableRow& row) {
    Item& item = items.emplace_back();
    for (const size_t column : names) item.names.push_back(name_at(row, column));
    for (const size_t column : figures) item.figures.push_back(figure_at(row, column));
  });
  return items;
}

std::string identity(const Item& item) {
  std::string text = "=";
  for (auto name = item.names.rbegin(); name != item.names.rend(); ++name) text += *name + '\0';
  return text;
}

// By identity; those that the other side lacks by their first name, where that will do.
Items by_identity(const ComparedTable& of, const std::vector<Item>& items,
                  const std::vector<Item>& others) {
  std::set<std::string> there;
  for (const Item& item : others) there.insert(identity(item));
  Items out;
  for (const Item& item : items) {
    const bool whole = !of.by_first_name || there.contains(identity(item));
    const auto [entry, fresh] = out.try_emplace(whole ? identity(item) : "~" + item.names[0], item);
    if (fresh) continue;
    Item& sum = entry->second;
    for (size_t i = 0; i < sum.figures.size(); ++i) sum.figures[i] += item.figures[i];
    for (size_t i = 1; i < sum.names.size(); ++i)
      if (sum.names[i] != item.names[i]) sum.names[i].clear();
  }
  return out;
}

ComparedRow join(const ComparedTable& of, const Item* a, const Item* b, const Normalization& n) {
  const Item& shown = a != nullptr ? *a : *b;
  ComparedRow row{shown.names, Change::kSame, {}};
  for (size_t i = 1; i < row.names.size(); ++i)
    if (a != nullptr && b != nullptr && a->names[i] != b->names[i]) row.names[i].clear();
  const auto side = [&](const Item* item, size_t i) {
    if (item == nullptr) return of.zero_where_absent ? Figure::exact(u128{0}) : Figure();
    return item->figures[i];
  };
  const auto figure = [&](const Item* item, size_t i) {
    const char* per = of.figures[i].per;
    if (per == nullptr) return side(item, i);
    const auto divisor = std::ranges::find_if(of.figures, [&](const ComparedFigure& f) {
      return f.per == nullptr && std::string_view(f.of) == per;
    });
    return side(item, i) / side(item, static_cast<size_t>(divisor - of.figures.begin()));
  };
  for (size_t i = 0; i < of.figures.size(); ++i)
    row.figures.push_back(
        compared(figure(a, i), figure(b, i),
                 of.figures[i].per != nullptr ? Kind::kRatio : of.figures[i].kind(), n));
  if (a == nullptr)
    row.change = Change::kAppeared;
  else if (b == nullptr)
    row.change = Change::kVanished;
  else if (row_differs(of.figures, row.figures, n))
    row.change = Change::kChanged;
  return row;
}

std::vector<ComparedRow> joined(const ComparedTable& of, const Report& a, const Report& b,
                                const Normalization& n) {
  const auto left = items_of(of, report_table(a, of.of)),
             right = items_of(of, report_table(b, of.of));
  const Items of_a = by_identity(of, left, right), of_b = by_identity(of, right, left);
  std::vector<ComparedRow> rows;
  for (const auto& [key, item] : of_a) {
    const auto other = of_b.find(key);
    rows.push_back(join(of, &item, other == of_b.end() ? nullptr : &other->second, n));
  }
  for (const auto& [key, item] : of_b)
    if (!of_a.contains(key)) rows.push_back(join(of, nullptr, &item, n));
  if (of.by_difference)
    std::ranges::stable_sort(rows, std::greater<>(),
                             [&](const ComparedRow& row) { return moved(of.figures, row, n); });
  return rows;
}

// Phases of the rules that are not among these.
std::vector<ComparedRow> absent_phases(const Report& a, const Report& b,
                                       const std::vector<ComparedRow>& present) {
  std::set<std::string> names;
  for (const Report* report : {&a, &b})
    for (const RuleReport& rule : report->rules)
      if (rule.phase != kNoPhase) names.insert(rule.phase);
  for (const ComparedRow& phase : present) names.erase(phase.names[0]);
  const ComparedTable& phases = compared_tables().front();
  std::vector<ComparedRow> out;
  for (const auto& name : names) {
    const Item none{{name}, std::vector(phases.figures.size(), Figure::exact(u128{0}))};
    out.push_back(join(phases, &none, &none, {}));
  }
  return out;
}

Table table_of(const ComparedTable& of, const std::vector<ComparedRow>& rows) {
  Table table{of.key, {}};
  for (const ComparedName& name : of.names) table.columns.push_back(name.column);
  table.columns.insert(table.columns.begin() + 1,
                       {"change", "change", Kind::kText, Worth::kMain,
                        "appeared, vanished, same or changed: in FLOP or, without --normalize, in "
                        "launches, never in time only"});
  for (const ComparedFigure& figure : of.figures)
    for (const Column& column : columns_of(figure)) table.columns.push_back(column);
  table.long_list = true;
  for (const ComparedRow& row : rows) {
    TableRow& cells = table.rows.emplace_back();
    for (const std::string& name : row.names) cells.push_back(name.empty() ? Cell() : Cell(name));
    cells.insert(cells.begin() + 1, change_word(row.change));
    for (const auto& [a, b, ratio] : row.figures) cells.insert(cells.end(), {a, b, ratio});
  }
  return table;
}

// The run's figures, one a row: total.flop.ratio.
Table total_table(const Comparison& c) {
  Table table{
      "total",
      {{"figure", "figure"},
       {"a", "A", Kind::kRatio},
       {"b", "B", Kind::kRatio},
       {"ratio", "B/A", Kind::kRatio, Worth::kUsual, "null where a side is not known, or 0"},
       {"normalized_ratio", "normalized", Kind::kRatio, Worth::kUsual,
        "the same after --normalize, where it is of launches, FLOP or times"}}};
  for (size_t i = 0; i < kRunFigures.size(); ++i) {
    const Compared& figure = c.run.figures[i];
    table.rows.push_back(
        {kRunFigures[i].key, figure.a, figure.b, quotient_of(figure), figure.ratio});
  }
  return table;
}

// What the figures of the others are to be read by.
Table comparison_table(const Comparison& c) {
  const Normalization& n = c.normalization;
  const auto if_any = [&](Cell cell) { return n.name.empty() ? Cell::none() : std::move(cell); };
  return {
      "comparison",
      {{"simulated", "simulated", Kind::kFlag, Worth::kUsual,
        "at least one side was recorded on simgpu"},
       {"normalization", "normalization", Kind::kText, Worth::kUsual, "--normalize NAME=A,B"},
       {"normalization_a", "of A", Kind::kRatio, Worth::kUsual, "what A's figures are divided by"},
       {"normalization_b", "of B", Kind::kRatio}},
      {{Figure::exact(u128{c.simulated}), if_any(n.name), if_any(Figure::exact(n.a)),
        if_any(Figure::exact(n.b))}}};
}

uint64_t count_of(const std::vector<ComparedRow>& rows, Change change) {
  return static_cast<uint64_t>(std::ranges::count(rows, change, &ComparedRow::change));
}

Table counts_table(const std::vector<ComparedRow>& kernels) {
  Table table{"kernel_counts", {}, {{}}};
  for (const Change change :
       {Change::kAppeared, Change::kVanished, Change::kChanged, Change::kSame}) {
    table.columns.push_back({change_word(change), change_word(change), Kind::kCount});
    table.rows[0].emplace_back(Figure::exact(count_of(kernels, change)));
  }
  return table;
}

// Without what is for programs only, and without reasons: a dash is enough here.
Table for_people(const Table& all) {
  Table table{all.key, {}, {}, all.long_list};
  for (const Column& column : all.columns)
    if (column.worth != kHidden) table.columns.push_back(column);
  for (const TableRow& row : all.rows) {
    TableRow& cells = table.rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i)
      if (all.columns[i].worth != kHidden) cells.push_back(row[i].empty() ? Cell::none() : row[i]);
  }
  return table;
}

// "1.2 % more", of a ratio that is not 1.
std::string change_text(double ratio, const char* more, const char* less) {
  return percent_text(std::fabs(ratio - 1)) + (ratio > 1 ? more : less);
}

// The answer in one sentence. Ratios are after normalization.
std::string verdict(const Comparison& c) {
  const auto complete = [](const Figure& figure) {
    return figure.known() && !has(figure.marks(), Mark::kAtLeast);
  };
  const Compared& flop = c.total.figures[kFlopOfLaunches];
  const Compared& time = c.total.figures[kTimeOfLaunches];
  if (!complete(flop.a) || !complete(flop.b))
    return std::string("FLOP cannot be compared: ") + (complete(flop.a) ? "B" : "A") +
           " has launches without a FLOP count";
  std::string text = "B executes ";
  const auto more = flop.ratio.number(), longer = time.ratio.number();
  if (!more)
    text += *flop.b.number() == 0 ? "no FLOP, like A" : "FLOP, A none";
  else if (!differ(flop, Kind::kFlop, c.normalization))
    text += "the same FLOP as A";
  else
    text += change_text(*more, " more FLOP than A", " fewer FLOP than A");
  if (!longer || !complete(time.a) || !complete(time.b))
    return text + "; GPU time cannot be compared";
  text += *longer == 1 ? " in the same GPU time"
                       : " in " + change_text(*longer, " more GPU time", " less GPU time");
  if (more) text += ": " + fixed(*more / *longer, 4) + " times the FLOP/s";
  return text;
}

std::string side_text(const RunFigure& of, const Figure& figure) {
  const auto number = figure.number();
  if (!number) return "-";
  const auto text = [&]() -> std::string {
    if (of.kind == Kind::kShare) return percent_text(*number);
    if (of.kind == Kind::kRatio) return fixed(*number, 3);
    if (of.kind == Kind::kFlop) return to_human(std::get<u128>(figure.value()), "FLOP");
    if (const auto* ns = std::get_if<u128>(&figure.value())) return to_human_time(*ns);
    return to_human_time(static_cast<u128>(*number * 1e9 + 0.5));
  };
  return marked_text(figure.marks(), text());
}

// "0.9990", "A 118.8 MFLOP, B 118.7 MFLOP". Without those that neither side has.
std::vector<ShownFigure> comparison_figures(const Comparison& c) {
  std::vector<ShownFigure> figures;
  for (size_t i = 0; i < kRunFigures.size(); ++i) {
    const RunFigure& of = kRunFigures[i];
    const Compared& figure = c.run.figures[i];
    if (of.shown == nullptr || (!figure.a.known() && !figure.b.known())) continue;
    const auto ratio = figure.ratio.number();
    figures.push_back({of.shown, ratio ? marked_text(figure.ratio.marks(), fixed(*ratio, 4)) : "-",
                       "A " + side_text(of, figure.a) + ", B " + side_text(of, figure.b),
                       ratio ? Tone::kTitle : Tone::kDim});
  }
  return figures;
}

// The programs of both sides, and their GPUs: once where both have the same.
void add_sides(std::vector<Line>& lines, const Report& a, const Report& b) {
  const std::vector<Line> of_a = screen_program(a), of_b = screen_program(b);
  const auto gpus = [](const std::vector<Line>& side) {
    return side.size() > 1 ? side[1].parts.front().first : std::string();
  };
  const bool alike = gpus(of_a) == gpus(of_b);
  for (const auto& [name, side] : {std::pair("A  ", &of_a), std::pair("B  ", &of_b)}) {
    if (side->empty()) continue;
    Line line(name);
    for (const auto& [text, tone] : side->front().parts) line.then(text, tone);
    if (!alike) line.then("   " + gpus(*side), Tone::kDim);
    lines.push_back(std::move(line));
  }
  if (alike && !gpus(of_a).empty()) lines.emplace_back("   " + gpus(of_a), Tone::kDim);
}

}  // namespace

bool parse_normalization(const std::string& text, Normalization& out) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const std::string_view values = std::string_view(text).substr(equals + 1);
  const size_t comma = values.find_first_of(",:");
  if (comma == std::string_view::npos) return false;
  const auto a = parse_si(values.substr(0, comma));
  const auto b = parse_si(values.substr(comma + 1));
  if (!a || !b || *a <= 0 || *b <= 0) return false;
  out = {text.substr(0, equals), *a, *b};
  return true;
}

const char* change_word(Change change) {
  constexpr std::array kWords = {"same", "appeared", "vanished", "changed"};
  return kWords[static_cast<size_t>(change)];
}

Comparison compare(const Report& a, const Report& b, const Normalization& n) {
  Comparison out;
  out.normalization = n;
  out.simulated = a.simulated.value_or(false) || b.simulated.value_or(false);
  const Table left = report_table(a, "figures"), right = report_table(b, "figures");
  for (const RunFigure& figure : kRunFigures)
    out.run.figures.push_back(compared(figure_at(left.rows[0], column_of(left, figure.key)),
                                       figure_at(right.rows[0], column_of(right, figure.key)),
                                       figure.kind, n));
  const ComparedTable& phases = compared_tables().front();
  Item total_a = items_of(phases, left).front(), total_b = items_of(phases, right).front();
  total_a.names = total_b.names = {"total"};
  out.total = join(phases, &total_a, &total_b, n);
  for (const ComparedTable& table : compared_tables()) out.tables.push_back(joined(table, a, b, n));
  out.absent_phases = absent_phases(a, b, out.tables.front());
  return out;
}

const std::vector<ComparedRow>& compared_rows(const Comparison& c, std::string_view key) {
  const auto found = std::ranges::find(compared_tables(), key, [](const auto& t) { return t.key; });
  return c.tables[static_cast<size_t>(found - compared_tables().begin())];
}

std::vector<Section> comparison_sections(const Comparison& c, const Report& a, const Report& b) {
  const Normalization& n = c.normalization;
  Section head;
  if (c.simulated)
    head.above.emplace_back("SIMULATED: at least one side was recorded on simgpu.", Tone::kWarn);
  add_sides(head.above, a, b);
  head.above.emplace_back(verdict(c) + ".", Tone::kTitle);
  head.above.emplace_back(n.name.empty() ? "Ratios are B / A."
                                         : "Ratios are B / A after dividing by " + n.name + ": " +
                                               format_si(n.a) + " and " + format_si(n.b) + ".");
  head.above.emplace_back("");
  head.figures = comparison_figures(c);
  std::vector<Section> sections{std::move(head)};
  for (size_t i = 0; i < c.tables.size(); ++i) {
    const ComparedTable& of = compared_tables()[i];
    const bool all = i < 2;  // phases and kernels; of the others the rows that changed
    std::vector<ComparedRow> rows = c.tables[i];
    if (i == 0) rows.insert(rows.begin(), c.total);
    if (!all) std::erase_if(rows, [](const auto& row) { return row.change == Change::kSame; });
    if (!all && rows.empty()) continue;
    Section& section =
        sections.emplace_back(Section{of.title, {}, for_people(table_of(of, rows)), {}});
    if (!of.by_first_name) continue;
    std::string counts;
    for (const Change change :
         {Change::kAppeared, Change::kVanished, Change::kChanged, Change::kSame})
      counts += (counts.empty() ? "  " : ", ") + std::to_string(count_of(rows, change)) + " " +
                change_word(change);
    section.above.emplace_back(std::move(counts));
  }
  return sections;
}

std::vector<Table> comparison_tables(const Comparison& c) {
  std::vector<Table> tables{comparison_table(c), total_table(c),
                            counts_table(compared_rows(c, "compared_kernels"))};
  for (size_t i = 0; i < c.tables.size(); ++i) {
    std::vector<ComparedRow> rows = c.tables[i];
    if (i == 0) {
      rows.insert(rows.begin(), c.total);
      rows.insert(rows.end(), c.absent_phases.begin(), c.absent_phases.end());
    }
    tables.push_back(table_of(compared_tables()[i], rows));
  }
  Report gates;
  gates.gates = c.gates;
  for (const TableSource* source : kGates.sources) tables.push_back(source->for_programs(gates));
  return tables;
}

}  // namespace flopinj::reduce
