// Tables of launches by any key, against sums of the table `rows`, which no group makes.
#include "sections/launch_tables.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "catch.h"
#include "operator_scene.h"
#include "report/explain.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace launch_tables_test {
namespace {

using by::kAnyRange, by::kChip, by::kFormat, by::kKernel, by::kLayer, by::kLayerOrRange,
    by::kOperator, by::kOutermostRange, by::kPass, by::kPhase, by::kPhasePart, by::kRange,
    by::kRule, by::kSignature;
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

namespace {

// The first word of a kernel's name; none of names of one word.
constexpr WorkKey kFirstWord{.column = "first_word",
                             .heading = "first word",
                             .text = [](const WorkRow& row, const WorkHome&,
                                        const Report& report) -> std::optional<std::string> {
                               const std::string& name = report.kernels[row.kernel].name;
                               const size_t end = name.find('_');
                               if (end == name.npos) return std::nullopt;
                               return name.substr(0, end);
                             },
                             .holds_whole = true};

}  // namespace

TEST_CASE("a table may bring a key of its own, with others") {
  TraceBuilder t = started();
  const char* const names[] = {"soft_max", "gemm_nn", "gemm_nt", "relu"};
  for (uint32_t i = 0; i < 4; ++i) {
    t.kernel(i + 1, names[i], 11 + i);
    t.samples(1, i + 1, {sass(1 + i, 0, 0)});
  }
  t.path(1, 0, "forward");
  t.launches({{1, 10, 1}, {2, 10, 1}, {3, 10, 1}, {3, 10}, {4, 10, 1}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const LaunchTable table{.key = "words",
                          .about = "first words by phase",
                          .by = {kFirstWord, kPhase},
                          .columns = {launches::flop, launches::count, launches::kernel}};
  const auto check = [](const nlohmann::json& row, const nlohmann::json& word, const char* phase,
                        int flop, int launches, const nlohmann::json& kernel) {
    INFO(row.dump());
    CHECK(row["first_word"] == word);
    CHECK(row["phase"] == phase);
    CHECK(row["flop"] == flop);
    CHECK(row["launches"] == launches);
    CHECK(row["kernel"] == kernel);
  };
  const Table made = source_of(table).for_programs(r);
  const auto rows = json_of(std::span(&made, 1))["words"];
  REQUIRE(rows.size() == 4);
  check(rows[0], "gemm", "forward", 2 + 3, 2, nullptr);
  check(rows[1], "gemm", "other", 3, 1, "gemm_nt");
  check(rows[2], "soft", "forward", 1, 1, "soft_max");
  check(rows[3], nullptr, "forward", 4, 1, "relu");
  // Of a figure's launches, too.
  const Table other = source_of(table).for_programs(explain(r, {FigureKind::kPhase, "other"}).part);
  REQUIRE(other.rows.size() == 1);
  CHECK(text(other.rows[0][0]) == "gemm");
}

TEST_CASE("a launch is in each of the ranges around it") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {sass(5, 0, 0)});
  t.path(1, 0, "outer");
  t.path(2, 1, "middle");
  t.path(3, 2, "inner");
  t.launches({{1, 10, 1}, {1, 10, 3}, {1, 10, 3}, {1, 10}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const auto groups = group(r, {kAnyRange, kKernel});
  REQUIRE(groups.size() == 4);
  for (const auto& [at, launches] :
       {std::pair(0, 3U), std::pair(1, 2U), std::pair(2, 2U), std::pair(3, 1U)}) {
    CHECK(groups[static_cast<size_t>(at)].work.launches == launches);
    CHECK(groups[static_cast<size_t>(at)].work.flop == 5 * launches);
  }
  CHECK(groups[1].name(kAnyRange, 0, r) == "outer/middle");
  CHECK_FALSE(groups[3].name(kAnyRange, 0, r));
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

TEST_CASE("forms know which tables have durations") {
  CHECK(tables_of_durations() == Names{"kernels"});
}

TEST_CASE("any set of columns goes with any keys") {
  constexpr std::array kSets = {
      launches::flop,        launches::share,       launches::operations, launches::count,
      launches::count_share, launches::how_counted, launches::gpu_time,   launches::gpu_time_share,
      launches::each,        launches::rates,       launches::roofs,      launches::kernel,
      launches::chip,        launches::phase,       launches::mangled,    launches::stable_hash,
      launches::durations,   launches::note,        launches::parameters, launches::shape,
      launches::readings,    launches::reason,      launches::interval};
  LaunchTable table{.key = "any", .about = "any", .by = {}};
  *std::ranges::copy(kSets, table.columns.begin()).out = launches::details;
  constexpr std::array<ByKey, 14> kKeys = {
      kAnyRange, kPhasePart,      kKernel, kSignature,    kChip,     kPhase, kRule,
      kRange,    kOutermostRange, kLayer,  kLayerOrRange, kOperator, kPass,  kFormat};
  const Report r = with_facts(scene());
  const auto check = [&](const WorkKeys& keys) {
    table.by = keys;
    const Table made = source_of(table).for_programs(r);
    std::set<std::string> columns;
    for (const Column& column : made.columns) CHECK(columns.insert(column.key).second);
    CHECK(made.rows.size() == group(r, keys).size());
    CHECK_FALSE(made.rows.empty());
    const auto json = json_of(std::span(&made, 1));
    for (const auto& row : json["any"]) CHECK(row.size() >= made.columns.size());
  };
  for (const ByKey one : kKeys) {
    check({one});
    for (const ByKey other : kKeys)
      if (one != other)
        check({one, other, ByKey(kChip) == one || ByKey(kChip) == other ? kRule : kChip});
  }
}

namespace {

Report at_peak(const std::vector<std::string>& traces) {
  ReduceOptions options;
  for (const char* peak : {"fp32=1T", "fp16=1T", "memory=1T"})
    options.utilization.peaks.push_back(parse_peak(peak).value);
  return reduce_bytes(traces, std::move(options));
}
nlohmann::json json_rows(const LaunchTable& table, const Report& report) {
  const Table made = source_of(table).for_programs(report);
  return json_of(std::span(&made, 1))[table.key];
}

}  // namespace

// At 1 TFLOP/s and 1 TB/s 10^6 FLOP or bytes take a microsecond.
TEST_CASE("chips by phase have columns of time, roofs and counts") {
  TraceBuilder t = started();
  t.group(2, "bytes", {"dram__bytes_read.sum"});
  t.kernel(1, "add", 11);
  t.samples(1, 1, {sass(5e6, 0, 0)});
  t.samples(2, 1, {{1e6}});
  t.path(1, 0, "forward");
  t.path(2, 0, "backward");
  t.launches({{1, 10'000, 1}, {1, 10'000, 1}, {1, 8'000, 2}});
  t.end();
  TraceBuilder other = started(2, "GB100");
  other.kernel(1, "varies", 12);
  other.kernel(2, "not measured", 13);
  other.samples(1, 1, {sass(1, 0, 0), sass(3, 0, 0), sass(8, 0, 0)});
  other.path(2, 0, "backward");
  other.path(1, 0, "forward");
  other.launches({{1, 100, 1}, {1, 100, 2}, {1, 100, 2}, {1, 100, 2}, {2, 100, 2}, {2, 100, 2}});
  other.end();
  const Report r = at_peak({t.bytes(), other.bytes()});
  const auto rows =
      json_rows({.key = "chip_phases",
                 .about = "chips by phase",
                 .by = {kChip, kPhase},
                 .columns = {launches::flop, launches::how_counted, launches::count,
                             launches::gpu_time, launches::each, launches::rates, launches::roofs}},
                r);
  REQUIRE(rows.size() == 4);
  const auto row = [&](const char* chip, const char* phase) {
    for (const auto& one : rows)
      if (one["chip"] == chip && one["phase"] == phase) return one;
    FAIL("no row of " << chip << ", " << phase);
    return rows[0];
  };
  const auto forward = row("GH100", "forward"), backward = row("GH100", "backward");
  CHECK(forward["flop"] == 10'000'000);
  CHECK(forward["gpu_time_ns"] == 20'000);
  CHECK(forward["each_ns"] == 10'000);
  CHECK(forward["utilization"].get<double>() == Approx(0.5));
  CHECK(forward["roof_share"].get<double>() == Approx(0.5));
  CHECK(forward["flop_per_byte"].get<double>() == Approx(5));
  CHECK(forward["byte_per_s"].get<double>() == Approx(1e11));
  CHECK(forward["nearer_roof"] == "fp32");
  CHECK(forward["bound_by"] == "latency");
  CHECK(backward["utilization"].get<double>() == Approx(0.625));
  CHECK(backward["bound_by"] == "fp32");
  CHECK(backward["exact_launches"] == 1);
  const auto estimated = row("GB100", "backward");
  CHECK(estimated["launches"] == 5);
  CHECK(estimated["exact_launches"] == 0);
  CHECK(estimated["varying_launches"] == 3);
  CHECK(estimated["unmeasured_launches"] == 2);
}

// The first kernel does both formats in each launch: its time and its bytes are of both.
TEST_CASE("formats by outermost range are of the launches that used them") {
  TraceBuilder t = started();
  t.kernel(1, "both", 11);
  t.kernel(2, "single", 12);
  t.kernel(3, "not measured", 13);
  t.samples(1, 1, {sass(10, 0, 0, 0, 1)});  // 10 of fp32; two packed multiply-adds of fp16
  t.samples(1, 2, {sass(7e6, 0, 0)});
  t.path(1, 0, "a");
  t.path(2, 0, "b");
  t.path(3, 2, "inside");
  t.launches({{1, 100, 1}, {1, 100, 1}, {2, 14'000, 1}, {2, 10'000, 3}, {3, 500, 2}});
  t.end();
  const auto rows =
      json_rows({.key = "range_formats",
                 .about = "formats by outermost range",
                 .by = {kOutermostRange, kFormat},
                 .columns = {launches::flop, launches::share, launches::count, launches::gpu_time,
                             launches::rates, launches::how_counted, launches::roofs}},
                at_peak({t.bytes()}));
  REQUIRE(rows.size() == 3);
  const auto check = [](const nlohmann::json& row, const char* range, const char* format,
                        uint64_t launches, uint64_t ns) {
    INFO(row.dump());
    CHECK(row["outermost_range"] == range);
    CHECK(row["precision"] == format);
    CHECK(row["launches"] == launches);
    CHECK(row["gpu_time_ns"] == ns);
  };
  check(rows[0], "a", "fp32", 3, 14'200);
  CHECK(rows[0]["flop"] == 7'000'020);
  CHECK(rows[0]["utilization"].is_null());
  check(rows[1], "a", "fp16", 2, 200);
  CHECK(rows[1]["flop"] == 8);
  CHECK(rows[1]["flop_per_byte"].is_null());
  CHECK(rows[1]["unmeasured_launches"] == 0);
  // The launch without a count may have used it.
  check(rows[2], "b", "fp32", 2, 10'500);
  CHECK(rows[2]["flop_at_least"] == 7'000'000);
  CHECK(rows[2]["exact_launches"] == 1);
  CHECK(rows[2]["unmeasured_launches"] == 1);
}

TEST_CASE("a format is an estimate only where launches that used it are") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.kernel(2, "k", 12);
  t.samples(1, 1, {sass(1, 0, 0), sass(2, 0, 0), sass(4, 0, 0)});  // fp32
  t.samples(1, 2, {sass(0, 0, 0, 0, 1)});                          // fp16
  t.launches({{1, 10}, {1, 10}, {1, 10}, {1, 10}, {1, 10}, {2, 10}});
  t.end();
  const auto groups = group(reduce_bytes({t.bytes()}), {kKernel, kFormat});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].work.varying == 5);
  CHECK(groups[1].work.varying == 0);
  CHECK(groups[1].work.flop == 4);
}

}  // namespace launch_tables_test
