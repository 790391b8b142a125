#include "sections/screens/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/screens/slower.h"
#include "sections/sections.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

// Texts of tables and columns have to outlive them.
const char* kept(std::string text) {
  static std::set<std::string> all;
  return all.insert(std::move(text)).first->c_str();
}

// A figure of both sides.
struct Compared {
  Figure a, b;
  Figure ratio;  // b / a, after normalization where it is of counts, FLOP and times
};

// A column of both tables, and the columns that the comparison has of it: KEY_a, KEY_b, KEY_ratio.
struct ComparedColumn {
  const char* of;
  const char* per;  // divided by this column; null: as it is
  const char *key, *heading;
  Worth sides, ratio;
  bool difference = false;  // KEY_difference too: B - A
};

constexpr Worth kHidden = Worth::kProgram, kUsual = Worth::kUsual, kMain = Worth::kMain,
                kDetail = Worth::kDetail;
// clang-format off
constexpr ComparedColumn kOfLaunches[] = {
    {"gpu_time_ns", nullptr,    "gpu_time",        "time", kUsual, kMain},
    {"flop",        nullptr,    "flop",            "FLOP", kHidden, kMain},
    {"launches",    nullptr,    "launches",        "launches", kDetail, kHidden},
    {"flop",        "launches", "flop_per_launch", "FLOP/launch", kDetail, kHidden},
};
constexpr ComparedColumn kOfFormats[] = {
    {"flop", nullptr, "flop", "FLOP", kUsual, kMain},
};
constexpr ComparedColumn kOfLayers[] = {
    {"forward_flop",         nullptr, "forward_flop",      "forward", kUsual, kMain},
    {"backward_flop",        nullptr, "backward_flop",     "backward", kUsual, kMain},
    {"forward_gpu_time_ns",  nullptr, "forward_gpu_time",  "time fwd", kDetail, kUsual},
    {"backward_gpu_time_ns", nullptr, "backward_gpu_time", "time bwd", kDetail, kUsual},
};
constexpr ComparedColumn kOfLost[] = {
    {"ns",      nullptr, "time", "time", kHidden, kHidden},
    {"step_ns", nullptr, "step", "step", kMain, kHidden, true},
};
constexpr ComparedColumn kOfSteps[] = {
    {"median_ns", nullptr, "median", "median", kUsual, kMain},
    {"mean_ns",   nullptr, "mean",   "mean", kUsual, kMain},
};

// How two tables are joined: which rows are the same, and what of them is compared.
struct ComparedTable {
  const char* of;     // the report's table
  const char* title;  // for people
  // Of its figures; none: all that are behind its names.
  std::span<const ComparedColumn> columns = {};
  // The columns that say which row of A and which of B are the same; none: its first texts.
  std::array<const char*, 2> names = {};
  bool changed_only = false;   // people see no row that is the same
  bool by_difference = false;  // rows are in the order of it
  // A row that the other side lacks is matched by its first name alone, and several of that name
  // are added up. Kernels: what the compiler makes of an anonymous namespace differs from build to
  // build.
  bool by_first_name = false;
  enum Extra : uint8_t {
    kPlain,
    kAfterTotal,  // its first row is the whole of both sides
    kCounted,     // `kernel_counts` says how many rows changed
  } extra = kPlain;
  // What people see of it instead of its rows.
  Section (*said)(const LostReport& a, const LostReport& b) = nullptr;

  const char* key() const { return kept("compared_" + std::string(of)); }
};
constexpr ComparedTable kTables[] = {
    {.of = "phases", .title = "Total and phases", .columns = kOfLaunches,
     .extra = ComparedTable::kAfterTotal},
    {.of = "kernels", .title = "Kernels", .columns = kOfLaunches, .names = {"kernel", "mangled"},
     .by_difference = true, .by_first_name = true, .extra = ComparedTable::kCounted},
    {.of = "precisions", .title = "Number formats that changed", .columns = kOfFormats,
     .changed_only = true, .by_difference = true},
    {.of = "layers", .title = "Layers that changed", .columns = kOfLayers,
     .changed_only = true, .by_difference = true},
    {.of = "operators", .title = "Operators that changed", .columns = kOfLaunches,
     .changed_only = true, .by_difference = true},
    {.of = "ranges", .title = "Ranges that changed", .columns = kOfLaunches,
     .changed_only = true, .by_difference = true},
    {.of = "stacks", .title = "Kernels in ranges that changed", .columns = kOfLaunches,
     .changed_only = true, .by_difference = true},
    {.of = "steps", .title = "Steps that changed", .columns = kOfSteps, .changed_only = true},
    {.of = "lost", .title = "Where the time of a step went", .columns = kOfLost,
     .said = slower::section},
};
// clang-format on

// Those, and tables without a declaration.
std::vector<ComparedTable> tables_with(const std::vector<std::string>& also) {
  std::vector<ComparedTable> all(std::begin(kTables), std::end(kTables));
  for (const TableSource* source : table_sources()) {
    const bool declared = std::ranges::any_of(all, [&](const ComparedTable& table) {
      return std::string_view(table.of) == source->key();
    });
    if (declared || std::ranges::find(also, source->key()) == also.end()) continue;
    std::string title = source->about();
    title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
    all.push_back({.of = source->key(), .title = kept(std::move(title)), .by_difference = true});
  }
  return all;
}

// Of the whole run, from the reports' tables `figures`.
struct RunFigure {
  const char* key;
  const char* shown;  // on the first lines, which kShownFigures has the order of
  Kind kind;
};
constexpr std::array kRunFigures = {
    RunFigure{"launches", nullptr, Kind::kCount},
    RunFigure{"flop", "Executed", Kind::kFlop},
    RunFigure{"flop_or_formula", nullptr, Kind::kFlop},
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
  return kind == Kind::kCount || kind == Kind::kFlop || kind == Kind::kOperations ||
         kind == Kind::kNanoseconds || kind == Kind::kBytes;
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

// What is compared of a table, declared or not.
struct Compare {
  std::vector<const char*> names;
  std::vector<ComparedColumn> columns;
  std::vector<Kind> kinds;  // of the table's columns

  Compare(const ComparedTable& of, const Table& table)
      : columns(of.columns.begin(), of.columns.end()) {
    size_t behind = 0;
    for (const char* name : of.names)
      if (name != nullptr) names.push_back(name);
    for (; behind < table.columns.size(); ++behind) {
      const Column& column = table.columns[behind];
      const bool number = column.kind == Kind::kCount || column.kind == Kind::kFlag;
      if (column.kind != Kind::kText && !(names.empty() && number)) break;
      if (of.names[0] == nullptr && column.kind == Kind::kText) names.push_back(column.key);
    }
    if (columns.empty())
      for (; behind < table.columns.size(); ++behind) add(table.columns[behind]);
    for (const ComparedColumn& column : columns)
      kinds.push_back(table.columns[*table.place_of(column.of)].kind);
  }
  // Of times, sums do, and what a launch takes does not.
  bool adds_up(size_t column) const {
    const std::string_view key = columns[column].of;
    return is_amount(kinds[column]) &&
           (kinds[column] != Kind::kNanoseconds || key == "ns" || key.ends_with("gpu_time_ns"));
  }

 private:
  void add(const Column& column) {
    if (column.kind == Kind::kText || column.kind == Kind::kFlag) return;
    std::string key = column.key;
    if (column.kind == Kind::kNanoseconds && key.ends_with("_ns")) key.resize(key.size() - 3);
    columns.push_back({column.key, nullptr, kept(std::move(key)), column.heading,
                       column.worth == Worth::kMain ? kUsual : column.worth, column.worth});
  }
};

// One side's row, or several that are one here. Figures by Compare::columns, not yet divided.
struct Side {
  std::vector<std::string> names;
  std::vector<Figure> figures;

  std::string identity() const {
    std::string text = "=";
    for (auto name = names.rbegin(); name != names.rend(); ++name) text += *name + '\0';
    return text;
  }
};

// The rows of the report's table, or of another one with the same columns and one name.
std::vector<Side> sides_of(const Compare& of, const Table& table) {
  const auto cell = [&](const TableRow& row, const char* key) {
    const auto place = table.place_of(key);
    return place ? row[*place] : Cell();
  };
  std::vector<Side> sides;
  table.for_each_row([&](const TableRow& row) {
    Side& side = sides.emplace_back();
    for (const char* name : of.names) {
      const Cell text = cell(row, name);
      const auto* known = std::get_if<std::string>(&text.value);
      side.names.push_back(known != nullptr ? *known : "");
    }
    for (const ComparedColumn& column : of.columns)
      side.figures.push_back(figure_of(cell(row, column.of)));
  });
  return sides;
}

// By identity; those that the other side lacks by their first name, where that will do. Rows of the
// same names are one: amounts are added up, and of shares and rates nothing is known then.
std::map<std::string, Side> by_identity(const Compare& of, bool by_first_name,
                                        const std::vector<Side>& sides,
                                        const std::vector<Side>& others) {
  std::set<std::string> there;
  for (const Side& side : others) there.insert(side.identity());
  std::map<std::string, Side> out;
  for (const Side& side : sides) {
    const bool whole = !by_first_name || there.contains(side.identity());
    const auto [entry, fresh] =
        out.try_emplace(whole ? side.identity() : "~" + side.names[0], side);
    if (fresh) continue;
    Side& sum = entry->second;
    for (size_t i = 0; i < sum.figures.size(); ++i)
      if (of.adds_up(i))
        sum.figures[i] += side.figures[i];
      else
        sum.figures[i] = Figure();
    for (size_t i = 1; i < sum.names.size(); ++i)
      if (sum.names[i] != side.names[i]) sum.names[i].clear();
  }
  return out;
}

constexpr Column kChange{"change", "change", Kind::kText, kMain,
                         "appeared, vanished, same or changed: in FLOP or, without --normalize, in "
                         "launches, never in time only"};

// Two tables of the reports as one.
class Join {
 public:
  Join(const ComparedTable& of, const Table& a, const Table& b, const Normalization& n)
      : of_(of), shape_(of, a), n_(n), table_{of.key(), {}} {
    add_columns(a);
    const std::vector<Side> left = sides_of(shape_, a), right = sides_of(shape_, b);
    const auto of_a = by_identity(shape_, of.by_first_name, left, right),
               of_b = by_identity(shape_, of.by_first_name, right, left);
    for (const auto& [key, side] : of_a) {
      const auto other = of_b.find(key);
      add(&side, other == of_b.end() ? nullptr : &other->second);
    }
    for (const auto& [key, side] : of_b)
      if (!of_a.contains(key)) add(nullptr, &side);
    if (of.by_difference)
      std::ranges::stable_sort(rows_, std::greater<>(), &std::pair<double, TableRow>::first);
  }
  // The whole of both sides, as the first row.
  void add_total(const Table& a, const Table& b) {
    Side left = sides_of(shape_, a).front(), right = sides_of(shape_, b).front();
    left.names[0] = right.names[0] = "total";
    add(&left, &right);
    std::rotate(rows_.begin(), rows_.end() - 1, rows_.end());
  }
  Table table() && {
    table_.long_list = true;
    for (auto& [moved, row] : rows_) table_.rows.push_back(std::move(row));
    return std::move(table_);
  }

 private:
  void add_columns(const Table& source) {
    for (const char* name : shape_.names)
      table_.columns.push_back(source.columns[*source.place_of(name)]);
    Column& first = table_.columns[0];
    first = {"name", first.heading};
    if (of_.by_first_name) {
      table_.columns[1].worth = kHidden;
      table_.columns[1].meaning =
          "null where it is another on each side, or there are several of that name";
    }
    table_.columns.insert(table_.columns.begin() + 1, kChange);
    for (size_t i = 0; i < shape_.columns.size(); ++i) {
      const ComparedColumn& c = shape_.columns[i];
      const Kind kind = shape_.kinds[i];
      kinds_.push_back(c.per != nullptr ? Kind::kRatio : kind);
      const char* unit = kind == Kind::kNanoseconds ? "_ns" : "";
      const auto add = [&](const char* suffix, const char* heading) {
        table_.columns.push_back({kept(std::string(c.key) + suffix + unit),
                                  kept(c.heading + std::string(heading)), kind, c.sides});
      };
      add("_a", " A");
      add("_b", " B");
      if (c.difference)
        table_.columns.push_back({kept(c.key + std::string("_difference") + unit),
                                  kept(c.heading + std::string(" B - A")), kind, c.sides,
                                  "B - A, without --normalize"});
      table_.columns.push_back({kept(c.key + std::string("_ratio")),
                                kept(c.heading + std::string(" B/A")), Kind::kRatio, c.ratio,
                                "B / A, after --normalize"});
    }
  }

  Figure figure(const Side* side, size_t i) const {
    if (side == nullptr) return {};
    const char* per = shape_.columns[i].per;
    if (per == nullptr) return side->figures[i];
    const auto divisor = std::ranges::find_if(shape_.columns, [&](const ComparedColumn& c) {
      return c.per == nullptr && std::string_view(c.of) == per;
    });
    return side->figures[i] / side->figures[static_cast<size_t>(divisor - shape_.columns.begin())];
  }

  // A difference in time alone makes no row another: times differ from run to run. Nor does a mean
  // of launches, whose launches and sum are compared.
  bool makes_another(const Compared& c, Kind kind) const {
    const bool counts = kind == Kind::kFlop || (kind == Kind::kCount && n_.name.empty());
    return counts && (c.a.known() != c.b.known() || differ(c, kind, n_));
  }
  // Normalised time, or FLOP where times agree.
  double moved(const Compared& c, Kind kind) const {
    const double by = std::fabs(c.b.number().value_or(0) / n_.b - c.a.number().value_or(0) / n_.a);
    return kind == Kind::kNanoseconds ? by : kind == Kind::kFlop ? by * 1e-15 : 0;
  }

  void add(const Side* a, const Side* b) {
    const Side& shown = a != nullptr ? *a : *b;
    bool changed = false;
    auto& [distance, row] = rows_.emplace_back();
    for (size_t i = 0; i < shown.names.size(); ++i) {
      const bool same = i == 0 || a == nullptr || b == nullptr || a->names[i] == b->names[i];
      row.push_back(same && !shown.names[i].empty() ? Cell(shown.names[i]) : Cell());
    }
    for (size_t i = 0; i < shape_.columns.size(); ++i) {
      const Compared c = compared(figure(a, i), figure(b, i), kinds_[i], n_);
      changed = changed || makes_another(c, kinds_[i]);
      distance += moved(c, kinds_[i]);
      row.insert(row.end(), {c.a, c.b});
      if (shape_.columns[i].difference) row.emplace_back(c.b - c.a);
      row.emplace_back(c.ratio);
    }
    row.insert(row.begin() + 1, none(a) == none(b) ? (changed ? "changed" : "same")
                                : none(a)          ? "appeared"
                                                   : "vanished");
  }
  bool none(const Side* side) const {
    if (side == nullptr) return true;
    const auto launches =
        std::ranges::find(shape_.columns, std::string_view("launches"), &ComparedColumn::key);
    return launches != shape_.columns.end() &&
           side->figures[static_cast<size_t>(launches - shape_.columns.begin())].number() == 0.0;
  }

  const ComparedTable& of_;
  const Compare shape_;
  const Normalization& n_;
  Table table_;
  std::vector<Kind> kinds_;                        // by Compare::columns
  std::vector<std::pair<double, TableRow>> rows_;  // and how much each moved
};

const std::string& change_of(const TableRow& row) { return std::get<std::string>(row[1].value); }

Table counts_table(const Table& kernels) {
  Table table{"kernel_counts", {}, {{}}};
  for (const char* change : {"appeared", "vanished", "changed", "same"}) {
    table.columns.push_back({change, change, Kind::kCount});
    table.rows[0].emplace_back(
        Figure::exact(u128(std::ranges::count(kernels.rows, change, change_of))));
  }
  return table;
}

// "  1 appeared, 0 vanished, 3 changed, 5 same"
Line counts_line(const Table& counts) {
  std::string text;
  for (size_t i = 0; i < counts.columns.size(); ++i)
    text += (i == 0 ? "  " : ", ") + to_decimal(std::get<u128>(counts.rows[0][i].value)) + " " +
            counts.columns[i].key;
  return text;
}

// The run's figures, one a row: total.flop.ratio.
Table total_table(const Table& a, const Table& b, const Normalization& n) {
  Table table{
      "total",
      {{"figure", "figure"},
       {"a", "A", Kind::kRatio},
       {"b", "B", Kind::kRatio},
       {"ratio", "B/A", Kind::kRatio, Worth::kUsual, "null where a side is not known, or 0"},
       {"normalized_ratio", "normalized", Kind::kRatio, Worth::kUsual,
        "the same after --normalize, where it is of launches, FLOP or times"}}};
  for (const RunFigure& of : kRunFigures) {
    const size_t place = *a.place_of(of.key);
    const Compared c =
        compared(figure_of(a.rows[0][place]), figure_of(b.rows[0][place]), of.kind, n);
    table.rows.push_back({of.key, c.a, c.b, quotient_of(c), c.ratio});
  }
  return table;
}

// What the figures of the others are to be read by.
Table comparison_table(const Comparison& c, const Report& a, const Report& b) {
  constexpr const char* kOfVerdict = "whether backward / forward is as expected: figures.verdict";
  const auto verdict_cell = [](const Report& side) {
    const auto name = ratio_verdict(side.ratio);
    return name ? Cell(*name) : Cell::none();
  };
  const Normalization& n = c.normalization;
  const auto if_any = [&](Cell cell) { return n.name.empty() ? Cell::none() : std::move(cell); };
  return {
      "comparison",
      {{"simulated", "simulated", Kind::kFlag, Worth::kUsual,
        "at least one side was recorded on simgpu"},
       {"simulated_clock", "simulated clock", Kind::kFlag, Worth::kUsual,
        "the times of at least one side are of the simulated GPU's clock"},
       {"ptx_counts", "PTX counts", Kind::kFlag, Worth::kUsual,
        "FLOP of at least one side are of PTX's instructions"},
       {.key = "verdict_a", .heading = "verdict A", .meaning = kOfVerdict, .names = kVerdictNames},
       {.key = "verdict_b", .heading = "verdict B", .meaning = kOfVerdict, .names = kVerdictNames},
       {"normalization", "normalization", Kind::kText, Worth::kUsual, "--normalize NAME=A,B"},
       {"normalization_a", "of A", Kind::kRatio, Worth::kUsual, "what A's figures are divided by"},
       {"normalization_b", "of B", Kind::kRatio}},
      {{Figure::exact(u128{c.simulated}), Figure::exact(u128{c.simulated_clock}),
        Figure::exact(u128{c.ptx_counts}), verdict_cell(a), verdict_cell(b), if_any(n.name),
        if_any(Figure::exact(n.a)), if_any(Figure::exact(n.b))}}};
}

const Table& table_of(const Comparison& c, std::string_view key) {
  return *std::ranges::find(c.tables, key, &Table::key);
}

// In the order of the first lines: time first.
constexpr std::string_view kShownFigures[] = {"step_time", "hfu",   "mfu",     "gpu_time_ns",
                                              "flop",      "ratio", "coverage"};

// A run's figure of both sides.
Compared run_figure(const Comparison& c, std::string_view key) {
  const auto row = std::ranges::find(kRunFigures, key, &RunFigure::key) - kRunFigures.begin();
  const TableRow& cells = table_of(c, "total").rows[static_cast<size_t>(row)];
  return {figure_of(cells[1]), figure_of(cells[2]), figure_of(cells[4])};
}

// Without what is for programs only, and without reasons: a dash is enough here.
Table for_people(const Table& all) {
  Table table{all.key, {}, {}, all.long_list};
  for (const Column& column : all.columns)
    if (column.worth != kHidden) table.columns.push_back(column);
  for (const TableRow& row : all.rows) {
    TableRow& cells = table.rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i)
      if (all.columns[i].worth != kHidden) cells.push_back(dashed(row[i]));
  }
  return table;
}

// "1.2 % more", of a ratio that is not 1.
std::string change_text(double ratio, const char* more, const char* less) {
  return percent_text(std::fabs(ratio - 1)) + (ratio > 1 ? more : less);
}

// How much more work there is, in one sentence. Ratios are after normalization.
std::string verdict(const Comparison& c) {
  const auto complete = [](const Figure& figure) {
    return figure.known() && !has(figure.marks(), Mark::kAtLeast);
  };
  const Compared flop = run_figure(c, "flop"), time = run_figure(c, "gpu_time_ns");
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
  if (more) text += ": " + ratio_text(*more / *longer) + " times the FLOP/s";
  return text;
}

std::string side_text(const RunFigure& of, const Figure& figure) {
  const auto number = figure.number();
  if (!number) return "not known";
  const auto text = [&]() -> std::string {
    if (of.kind == Kind::kShare) return percent_text(*number);
    if (of.kind == Kind::kRatio) return ratio_text(*number);
    if (of.kind == Kind::kFlop) return to_human(std::get<u128>(figure.value()), "FLOP");
    if (const auto* ns = std::get_if<u128>(&figure.value())) return to_human_time(*ns);
    return to_human_time(static_cast<u128>(*number * 1e9 + 0.5));
  };
  return marked_text(figure.marks(), text());
}

// " (inside)", of the ratio that it is of; empty without a verdict.
std::string verdict_text(const Comparison& c, const RunFigure& of, const char* side) {
  if (std::string_view(of.key) != "ratio") return "";
  const Table& table = table_of(c, "comparison");
  const auto* name = std::get_if<std::string>(&table.rows[0][*table.place_of(side)].value);
  return name == nullptr ? "" : " (" + *name + ")";
}

// "118.8 MFLOP -> 118.7 MFLOP", "B/A 0.9990". Without those that neither side has. Values are as
// wide as the widest, so that ratios are in a column.
std::vector<ShownFigure> comparison_figures(const Comparison& c) {
  std::vector<ShownFigure> figures;
  size_t widest = 0;
  for (const std::string_view key : kShownFigures) {
    const RunFigure& of = *std::ranges::find(kRunFigures, key, &RunFigure::key);
    const Compared figure = run_figure(c, key);
    if (!figure.a.known() && !figure.b.known()) continue;
    const auto ratio = figure.ratio.number();
    figures.push_back(
        {of.shown,
         side_text(of, figure.a) + verdict_text(c, of, "verdict_a") + " -> " +
             side_text(of, figure.b) + verdict_text(c, of, "verdict_b"),
         "B/A " + (ratio ? marked_text(figure.ratio.marks(), ratio_text(*ratio)) : "-"),
         ratio ? Tone::kTitle : Tone::kDim});
    widest = std::max(widest, figures.back().value.size());
  }
  for (ShownFigure& figure : figures) figure.value.resize(widest, ' ');
  return figures;
}

// The programs of both sides, and their GPUs: once where both have the same.
void add_sides(std::vector<Line>& lines, const Report& a, const Report& b) {
  const ScreenProgram of_a = screen_program(a), of_b = screen_program(b);
  const bool alike = of_a.gpus == of_b.gpus;
  for (const auto& [name, side] : {std::pair("A  ", &of_a), std::pair("B  ", &of_b)}) {
    Line line(name);
    line.then(side->command, Tone::kTitle).then("   " + side->where);
    if (!alike) line.then("   " + side->gpus, Tone::kDim);
    lines.push_back(std::move(line));
  }
  if (alike && !of_a.gpus.empty()) lines.emplace_back("   " + of_a.gpus, Tone::kDim);
}

// By the recordings' own ids, which copies of a file and summaries of it have too.
bool same_recordings(const Report& a, const Report& b) {
  const auto ids = [](const Report& report) {
    std::set<uint64_t> all;
    for (const TraceReport& trace : report.traces) all.insert(trace.header.session_id());
    return all;
  };
  const std::set<uint64_t> of_a = ids(a);
  return !of_a.empty() && !of_a.contains(0) && of_a == ids(b);
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

std::vector<std::string> comparable_tables() {
  std::vector<std::string> keys;
  for (const TableSource* source : table_sources()) {
    const Compare shape({.of = source->key(), .title = ""}, {source->key(), source->columns()});
    if (!shape.names.empty() && !shape.columns.empty()) keys.emplace_back(source->key());
  }
  return keys;
}

Comparison compare(const Report& a, const Report& b, const Normalization& n,
                   const std::vector<std::string>& also) {
  Comparison out{.normalization = n,
                 .also = also,
                 .simulated = a.simulated.value_or(false) || b.simulated.value_or(false),
                 .simulated_clock = a.simulated_clock || b.simulated_clock,
                 .ptx_counts = a.ptx_counts || b.ptx_counts};
  const Table left = report_table(a, "figures"), right = report_table(b, "figures");
  out.tables = {comparison_table(out, a, b), total_table(left, right, n)};
  std::vector<Table> joined;
  for (const ComparedTable& of : tables_with(also)) {
    const auto table = [&](const Report& r) {
      return of.extra == ComparedTable::kAfterTotal ? all_phases(r) : report_table(r, of.of);
    };
    Join join(of, table(a), table(b), n);
    if (of.extra == ComparedTable::kAfterTotal) join.add_total(left, right);
    joined.push_back(std::move(join).table());
    if (of.extra == ComparedTable::kCounted) out.tables.push_back(counts_table(joined.back()));
  }
  std::ranges::move(joined, std::back_inserter(out.tables));
  return out;
}

std::vector<Section> comparison_sections(const Comparison& c, const Report& a, const Report& b) {
  const Normalization& n = c.normalization;
  Section head;
  if (c.simulated)
    head.above.emplace_back("SIMULATED: at least one side, by simgpu" +
                                said::simulation_words(c.simulated_clock, c.ptx_counts) + ".",
                            Tone::kWarn);
  if (same_recordings(a, b))
    head.above.emplace_back("A and B are the same recording.", Tone::kWarn);
  add_sides(head.above, a, b);
  if (const std::string why = slower::words(a.lost, b.lost, n); !why.empty())
    head.above.emplace_back(why + ".", Tone::kTitle);
  head.above.emplace_back(verdict(c) + ".", Tone::kTitle);
  head.above.emplace_back(n.name.empty() ? "Ratios are B / A."
                                         : "Ratios are B / A after dividing by " + n.name + ": " +
                                               format_si(n.a) + " and " + format_si(n.b) + ".");
  head.above.emplace_back("");
  head.figures = comparison_figures(c);
  std::vector<Section> sections{std::move(head)};
  for (const ComparedTable& of : tables_with(c.also)) {
    if (of.said != nullptr) {
      Section said = of.said(a.lost, b.lost);
      said.title = of.title;
      if (said.table) sections.push_back(std::move(said));
      continue;
    }
    Table table = for_people(table_of(c, of.key()));
    std::erase_if(table.rows, [&](const TableRow& row) {
      const auto none = [&](const char* launches) {
        const auto place = table.place_of(launches);
        return place && figure_of(row[*place]).number() == 0.0;
      };
      return of.changed_only ? change_of(row) == "same"
                             : none("launches_a") && none("launches_b");  // a phase of the rules
    });
    if (of.changed_only && table.rows.empty()) continue;
    sections.push_back({of.title, {}, std::move(table), {}});
    if (of.extra == ComparedTable::kCounted)
      sections.back().above.push_back(counts_line(table_of(c, "kernel_counts")));
  }
  return sections;
}

std::vector<Table> comparison_tables(const Comparison& c) {
  std::vector<Table> tables = c.tables;
  Report gates;
  gates.gates = c.gates;
  for (Table& table : subject_tables(kGates, gates)) tables.push_back(std::move(table));
  return tables;
}

}  // namespace flopinj::reduce
