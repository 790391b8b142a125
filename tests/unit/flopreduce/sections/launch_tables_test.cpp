// Tables of launches by any key, against sums of the table `rows`, which no group makes.
#include "sections/launch_tables.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "catch.h"
#include "operator_scene.h"
#include "report/explain.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace launch_tables_test {
namespace {

using enum WorkKey;
using Names = std::vector<std::string>;

// Tables that the program does not have, each declared as it would be.
constexpr LaunchTable kKernelsByLayer{.key = "kernel_layers",
                                      .about = "kernels by layer",
                                      .by = {kKernel, kLayer},
                                      .columns = {launches::flop, launches::share, launches::count,
                                                  launches::gpu_time, launches::details},
                                      .title = "Kernels by layer"};
constexpr LaunchTable kPhasesByChip{
    .key = "phase_chips",
    .about = "phases by chip",
    .by = {kPhase, kChip},
    .columns = {launches::flop, launches::count, launches::gpu_time, launches::rates}};
constexpr LaunchTable kFormatsByLayer{
    .key = "layer_precisions", .about = "formats by layer", .by = {kLayer, kFormat}};
constexpr LaunchTable kKernelsByOutermost{
    .key = "kernel_outermost",
    .about = "kernels by outermost range",
    .by = {kKernel, kOutermostRange},
    .columns = {launches::flop, launches::count, launches::gpu_time}};
constexpr LaunchTable kByThree{.key = "by_three",
                               .about = "rules, signatures and ranges",
                               .by = {kRule, kSignature, kRange},
                               .columns = {launches::flop, launches::count, launches::gpu_time}};
constexpr LaunchTable kByLayer{.key = "by_layer",
                               .about = "layers",
                               .by = {kLayer},
                               .columns = {launches::flop, launches::count, launches::gpu_time}};
constexpr LaunchTable kOperatorPasses{
    .key = "by_operator",
    .about = "operators by pass",
    .by = {kOperator, kPass},
    .columns = {launches::flop, launches::count, launches::gpu_time}};

struct Sum {
  uint64_t rows = 0;
  double launches = 0, flop = 0, ns = 0;
};
using Sums = std::map<Names, Sum>;

double number(const Cell& cell) { return figure_of(cell).number().value_or(0); }
std::string text(const Cell& cell) {
  const auto* known = std::get_if<std::string>(&cell.value);
  return known != nullptr ? *known : "";
}

// The rows of a table with the same names in these columns, added up.
Sums sums_of(
    const Table& table, const Names& columns,
    const std::function<Names(Names)>& named = [](Names n) { return n; }) {
  Sums sums;
  table.for_each_row([&](const TableRow& row) {
    Names names;
    for (const auto& column : columns) names.push_back(text(row[*table.place_of(column)]));
    Sum& sum = sums[named(names)];
    ++sum.rows;
    const auto add = [&](double& to, const char* column) {
      if (const auto place = table.place_of(column)) to += number(row[*place]);
    };
    add(sum.launches, "launches");
    add(sum.flop, "flop");
    add(sum.ns, "gpu_time_ns");
  });
  return sums;
}

// Shares of one kernel are rounded in each row.
void check_same(const Sums& got, const Sums& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (const auto& [names, sum] : wanted) {
    for (const auto& name : names) UNSCOPED_INFO(name);
    REQUIRE(got.contains(names));
    const Sum& its = got.at(names);
    const auto off = static_cast<double>(its.rows + sum.rows);
    CHECK(its.launches == sum.launches);
    CHECK(std::fabs(its.flop - sum.flop) <= off);
    CHECK(std::fabs(its.ns - sum.ns) <= off);
  }
}

std::string outermost(const Report& report, const std::string& range) {
  std::string around;
  for (const RangeReport& r : report.ranges) {
    if (r.depth <= 1) around = r.path;
    if (r.path == range) return around;
  }
  return "";
}

// With a kernel that varies, and a backward node that several layers share.
std::string scene() {
  Scene s;
  const uint32_t gemm = s.kernel("gemm", 256), relu = s.kernel("relu", 0, 5, 64);
  const uint32_t varies = 77;
  s.trace().kernel(varies, "varies", 77);
  s.trace().samples(1, varies, {sass(1, 0, 0), sass(4, 0, 0), sass(7, 0, 0)});
  const uint32_t first =
                     s.path({"step", "forward", "layer:one", "aten::mm, sizes = [[2, 2], [2, 2]]"}),
                 second =
                     s.path({"step", "forward", "layer:two", "aten::mm, sizes = [[2, 2], [2, 2]]"}),
                 back = s.path({kNode + "MmBackward0", "MmBackward0"}),
                 other = s.path({"step", "other"});
  s.launch(kMain, {s.at(gemm, first, 1), s.at(gemm, second, 2), s.at(relu, other, 3),
                   s.at(varies, other, 4), s.at(varies, first, 5), s.at(varies, second, 6)});
  s.launch(kAutograd, {s.at(gemm, back, 1), s.at(gemm, back, 2), s.at(relu, back, 2)});
  s.trace().end();
  return s.trace().bytes();
}
// Of another kind of device, with a kernel of the same signature.
std::string other_chip() {
  TraceBuilder t = started(2, "GB100");
  t.kernel(1, "gemm", 1001);
  t.path(1, 0, "forward");
  t.samples(1, 1, {sass(0, 0, 256)});
  t.launches({{1, 50, 1}, {1, 70}});
  t.end();
  return t.bytes();
}

std::vector<flopinj::test::Named> recordings() {
  std::vector<flopinj::test::Named> all;
  for (const char* folder : {"golden", "data/old"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(FLOPINJ_TEST_TRACES) / folder)) {
      if (entry.path().extension() != ".pb") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all.push_back({entry.path().filename().string(),
                     std::string(std::istreambuf_iterator<char>(file), {})});
    }
  all.push_back({"scene", scene()});
  return all;
}

Report with_facts(const std::string& bytes) {
  ReduceOptions options;
  options.facts = true;
  return reduce_bytes({bytes, other_chip()}, std::move(options));
}
Table made(const LaunchTable& table, const Report& report) {
  return source_of(table).for_programs(report);
}

}  // namespace

TEST_CASE("a table by any keys adds up to the rows") {
  size_t rows_seen = 0, shared = 0;
  for (const flopinj::test::Named& recording : recordings()) {
    INFO(recording.name);
    const Report r = with_facts(recording.bytes);
    Table rows = report_table(r, "rows");
    std::vector<TableRow> held;
    rows.for_each_row([&](const TableRow& row) { held.push_back(row); });
    rows.rows = std::move(held);
    rows.each = {};
    rows_seen += rows.rows.size();
    check_same(sums_of(made(kPhasesByChip, r), {"phase", "chip"}),
               sums_of(rows, {"phase", "chip"}));
    check_same(sums_of(made(kKernelsByOutermost, r), {"kernel", "outermost_range"}),
               sums_of(rows, {"kernel", "range"}, [&](Names names) {
                 return Names{names[0], outermost(r, names[1])};
               }));
    check_same(sums_of(made(kByThree, r), {"stable_hash", "range"}),
               sums_of(rows, {"stable_hash", "range"}));
    // A launch that several layers share has none in `rows`.
    const bool all_whole =
        std::ranges::all_of(r.work.homes, [](const WorkHome& home) { return home.part.whole(); });
    shared += !all_whole;
    if (all_whole)
      check_same(sums_of(made(kKernelsByLayer, r), {"kernel", "layer"}),
                 sums_of(rows, {"kernel", "layer"}));
    check_same(sums_of(made(kKernelsByLayer, r), {"kernel"}), sums_of(rows, {"kernel"}));
    check_same(sums_of(made(kOperatorPasses, r), {}), sums_of(rows, {}));
  }
  CHECK(rows_seen > 50);
  CHECK(shared > 0);
}

TEST_CASE("formats of a layer add up to its FLOP") {
  for (const flopinj::test::Named& recording : recordings()) {
    INFO(recording.name);
    const Report r = with_facts(recording.bytes);
    const Sums layers = sums_of(made(kByLayer, r), {"layer"});
    for (const auto& [names, sum] : sums_of(made(kFormatsByLayer, r), {"layer"})) {
      INFO(names[0]);
      CHECK(std::fabs(sum.flop - layers.at(names).flop) <=
            static_cast<double>(r.work.homes.size()));
    }
  }
}

TEST_CASE("a group that holds all launches of a kernel is exact, a part of them is an estimate") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.path(1, 0, "forward");
  t.path(2, 0, "backward");
  t.samples(1, 1, {sass(1, 0, 0), sass(2, 0, 0), sass(4, 0, 0), sass(4, 0, 0)});
  t.launches({{1, 10, 1}, {1, 10, 1}, {1, 10, 2}, {1, 10, 2}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const auto estimated = [](const std::vector<WorkGroup>& groups) {
    return std::ranges::any_of(groups, [](const WorkGroup& g) { return g.work.varying > 0; });
  };
  CHECK_FALSE(estimated(group(r, {kKernel})));
  CHECK_FALSE(estimated(group(r, {kChip, kSignature})));
  CHECK_FALSE(estimated(group(r, {})));
  CHECK(estimated(group(r, {kPhase})));
  CHECK(estimated(group(r, {kKernel, kRule})));
  // What is asked of a figure is what the report says of it.
  CHECK_FALSE(estimated(group(explain(r, {FigureKind::kKernel, "k"}).part, {kKernel})));
  const Report forward = explain(r, {FigureKind::kPhase, "forward"}).part;
  CHECK(estimated(group(forward, {kKernel})));
  CHECK(forward.total.launches == 2);
}

TEST_CASE("groups of every id have those without launches, and none last") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.path(1, 0, "outer");
  t.path(2, 1, "inner");
  t.launches({{1, 10, 2}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const auto groups = group(r, {kRange}, true);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].work.launches == 0);
  CHECK(groups[1].work.launches == 1);
  CHECK(groups[2].ids[0] == kNoRange);
  CHECK(group(r, {kRange}).size() == 1);
}

TEST_CASE("a declared table is in every list of tables") {
  std::vector<std::string> keys;
  for (const TableSource* table : table_sources()) keys.emplace_back(table->key());
  for (const TableSource* table : launch_tables())
    CHECK(std::ranges::count(keys, std::string(table->key())) == 1);
  const auto of_gates = gate_tables(reduce_bytes({scene()}));
  for (const TableSource* table : launch_tables())
    CHECK(std::ranges::count(of_gates, std::string_view(table->key()), &Table::key) == 1);
  const auto columns = source_of(kFormatsByLayer).columns();
  REQUIRE(columns.size() == 4);
  CHECK(std::string(columns[0].key) == "layer");
  CHECK(std::string(columns[1].key) == "precision");
  CHECK_FALSE(source_of(kKernelsByLayer).section(reduce_bytes({scene()})).empty());
}

}  // namespace launch_tables_test
