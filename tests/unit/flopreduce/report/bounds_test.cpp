// Of launches without a FLOP count it is unknown what they did, and of launches that were not
// screened their tensor work is unknown. So no figure may depend on it: a figure that another
// count of theirs would change is not given, or as a bound, in every form.
#include <functional>
#include <set>

#include "catch.h"
#include "gates/figures.h"
#include "gates/gate.h"
#include "reduce_bytes.h"
#include "sections/parts/cells.h"
#include "sections/screens/comparison.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

using OrderedJson = nlohmann::ordered_json;

// At peak a launch of "counted" takes 1 us on an A100, and 2 us as recorded. The recording takes
// 1 ms. In each of three steps: 2 launches forward, 2 backward, and 18 of "other" in forward.
constexpr double kAdditions = 19.5e6;
constexpr uint32_t kCounted = 1, kOther = 2, kForward = 2, kBackward = 3;
constexpr size_t kStepCount = 3, kOthers = 18;

// What a launch of "other" lacks.
enum class Lack : uint8_t { kCount, kScreening };

// Every kernel has instructions, and needs the tensor group where screening counts any.
void screen(TraceBuilder& t, std::optional<double> other) {
  const std::string hmma = "sm__inst_executed_pipe_tensor_op_hmma.sum";
  t.group(3, "screening", {hmma}, false);
  flopinj::trace::TracePacket p;
  auto& tensor = *p.mutable_metric_group();
  tensor.set_id(4);
  tensor.set_device(1);
  tensor.set_name("tensor_bf16");
  tensor.add_metric("sm__ops_path_tensor_src_bf16_dst_fp32.sum");
  tensor.add_needed_if()->set_metric(hmma);
  t.add(p);
  t.samples(3, kCounted, {{1}});
  t.samples(4, kCounted, {{512}});
  t.samples(1, kOther, {sass(1, 0, 0)});
  if (!other) return;
  t.samples(3, kOther, {{*other}});
  if (*other > 0) t.samples(4, kOther, {{*other}});
}

// `other`: FLOP of a launch of "other", of all or of tensor cores; nothing where that is lacking.
std::string trace_of(std::optional<double> other, bool in_forward = true, Lack lack = Lack::kCount,
                     uint64_t session = 1) {
  TraceBuilder t;
  t.header(session);
  t.device(1, "GA100", "NVIDIA A100-SXM4-80GB", 108);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.group(2, "bytes", {"dram__bytes_read.sum"});
  t.kernel(kCounted, "counted", 11);
  t.kernel(kOther, "other", 12);
  t.samples(1, kCounted, {sass(kAdditions, 0, 0)});
  t.samples(2, kCounted, {{1e6}});
  t.samples(2, kOther, {{1e3}});
  if (lack == Lack::kScreening)
    screen(t, other);
  else if (other)
    t.samples(1, kOther, {sass(*other, 0, 0)});
  t.path(1, 0, "step");
  t.path(kForward, 1, "forward");
  t.path(kBackward, 1, "backward");
  std::vector<TraceBuilder::Launch> launches;
  std::vector<TraceBuilder::Step> steps;
  const auto add = [&](uint32_t signature, uint32_t path, size_t count) {
    for (size_t i = 0; i < count; ++i)
      launches.push_back({.signature = signature,
                          .duration_ns = 2000,
                          .path = path,
                          .step = static_cast<uint32_t>(steps.size() + 1)});
  };
  for (size_t i = 0; i < kStepCount; ++i) {
    add(kCounted, kForward, 2);
    add(kCounted, kBackward, 2);
    add(kOther, in_forward ? kForward : 1, kOthers);
    steps.push_back({static_cast<uint32_t>(i + 1), 1000 + i * 100'000, 90'000});
  }
  t.launches(launches);
  t.steps(steps, 1);
  t.string(200, "tokens");
  flopinj::trace::TracePacket numbers;
  for (const auto& [path, total] : {std::pair{1U, 300U}, std::pair{kForward, 30U}}) {
    auto& given = *numbers.mutable_range_numbers();
    given.add_range_path(path);
    given.add_name(200);
    given.add_times(kStepCount);
    given.add_total(total);
  }
  t.add(numbers);
  t.overhead(0, 1'000'000);
  t.end();
  return t.bytes();
}

Report report_of(std::optional<double> other, bool in_forward = true, Lack lack = Lack::kCount) {
  ReduceOptions options;
  options.utilization.skip_steps = 1;
  options.utilization.parameters = 1e3;
  options.utilization.tokens_per_step = 100;
  return reduce_bytes({trace_of(other, in_forward, lack)}, std::move(options));
}

bool ends_with_any(const std::string& key, std::initializer_list<const char*> ends) {
  return std::ranges::any_of(ends, [&](const char* end) { return key.ends_with(end); });
}

// Reports of what is known, and of the fewest and of the most FLOP that the others may have.
struct Reports {
  explicit Reports(Lack lack, bool in_forward = true)
      : known(report_of({}, in_forward, lack)),
        fewest(report_of(lack == Lack::kCount ? 1 : 0, in_forward, lack)),
        most(report_of(lack == Lack::kCount ? 1e6 : 4e6, in_forward, lack)) {}
  Report known, fewest, most;
};

// What is about the counts themselves: how many launches have one, and by what.
bool about_counts(const std::string& key) {
  static const std::set<std::string> kKeys = {
      "ledger",  "ledger_reasons", "coverage",  "signatures", "notices",        "estimates",
      "samples", "windows",        "measuring", "missing",    "coverage_growth"};
  return kKeys.contains(key) ||
         ends_with_any(key, {"_launches", "unmeasured", "_windows", "_missing"});
}

// Every number of the row `known` is one that no count of the others changes, or is a bound of what
// it is with the fewest and with the most of them.
void check_row(const OrderedJson& known, const OrderedJson& fewest, const OrderedJson& most,
               size_t& bounds) {
  for (const auto& [key, value] : known.items()) {
    INFO(key << ": " << value.dump());
    if (about_counts(key) || key.ends_with("_exact")) continue;
    if (value.is_number() && ends_with_any(key, {"_at_least", "_at_most"})) {
      const std::string figure = key.substr(0, key.rfind("_at"));
      REQUIRE((fewest[figure].is_number() && most[figure].is_number()));
      const double low = fewest[figure], high = most[figure];
      if (key.ends_with("_at_most"))
        CHECK(value.get<double>() >= std::max(low, high));
      else
        CHECK(value.get<double>() <= std::min(low, high));
      ++bounds;
    } else if (fewest.contains(key) && (value.is_number() || value.is_string()) &&
               fewest[key].type() == value.type() && key != "basis" && key != "method") {
      CHECK(fewest[key] == most[key]);  // else it depends on what is not known
    }
  }
}

void check_json(const OrderedJson& known, const OrderedJson& fewest, const OrderedJson& most,
                size_t& bounds) {
  check_row(known["figures"], fewest["figures"], most["figures"], bounds);
  for (const auto& [table, rows] : known.items()) {
    INFO(table);
    if (!rows.is_array() || about_counts(table) || table == "screen") continue;  // see below
    // A phase may have no bin, and what is not measured no format.
    if (table == "flop_over_time" || table.ends_with("_precisions")) continue;
    REQUIRE(rows.size() == fewest[table].size());
    for (size_t i = 0; i < rows.size(); ++i)
      check_row(rows[i], fewest[table][i], most[table][i], bounds);
  }
}

}  // namespace

TEST_CASE("bounds: no number of the JSON form depends on what unmeasured launches did") {
  const Lack lack = GENERATE(Lack::kCount, Lack::kScreening);
  for (const bool in_forward : {true, false}) {
    const Reports reports(lack, in_forward);
    size_t bounds = 0;
    check_json(json_of(report_tables(reports.known)), json_of(report_tables(reports.fewest)),
               json_of(report_tables(reports.most)), bounds);
    CHECK(bounds > 30);
  }
}

TEST_CASE("bounds: no cell of a table depends on what unmeasured launches did, without a mark") {
  const Lack lack = GENERATE(Lack::kCount, Lack::kScreening);
  for (const bool in_forward : {true, false}) {
    const auto [known, fewest, most] = Reports(lack, in_forward);
    const auto tables = [](const Report& report) {
      std::map<std::string, Table> all;
      for (Table& table : report_tables(report)) {
        if (table.key == std::string_view("screen")) continue;  // see below
        table.for_each_row([&](const TableRow& row) { table.rows.push_back(row); });
        all.emplace(table.key, std::move(table));
      }
      return all;
    };
    const auto with = tables(known), one = tables(fewest), other = tables(most);
    size_t marked = 0;
    for (const auto& [key, table] : with) {
      // One of what is not measured is not among the others.
      if (!one.contains(key) || one.at(key).rows.size() != table.rows.size()) continue;
      for (size_t r = 0; r < table.rows.size(); ++r)
        for (size_t c = 0; c < table.columns.size(); ++c) {
          const Column& column = table.columns[c];
          const Cell &cell = table.rows[r][c], &a = one.at(key).rows[r][c],
                     &b = other.at(key).rows[r][c];
          if (cell.empty() || a.value == b.value || about_counts(column.key)) continue;
          INFO(key << "." << column.key << ", row " << r);
          CHECK((has(cell.marks, Mark::kAtLeast) || has(cell.marks, Mark::kAtMost)));
          ++marked;
        }
    }
    CHECK(marked > 20);
  }
}

TEST_CASE("bounds: no figure of the first screen depends on what unmeasured launches did") {
  const Reports reports(GENERATE(Lack::kCount, Lack::kScreening));
  const auto known = screen_figures(reports.known), fewest = screen_figures(reports.fewest),
             most = screen_figures(reports.most);
  std::map<std::string, std::string> one, other;
  for (const ShownFigure& figure : fewest) one[figure.name] = figure.value;
  for (const ShownFigure& figure : most) other[figure.name] = figure.value;
  std::set<std::string> bounds;
  for (const ShownFigure& figure : known) {
    if (std::string(figure.name) == "Coverage" || one[figure.name] == other[figure.name]) continue;
    INFO(figure.name << " " << figure.value);
    CHECK((figure.value == "-" || figure.value.starts_with(">=")));
    bounds.insert(figure.name);
  }
  CHECK(bounds.contains("HFU"));
  CHECK(bounds.contains("HFU, steady"));
  CHECK(bounds.contains("Executed"));
}

TEST_CASE("bounds: the figures, worked out by hand") {
  const auto j = json_of(report_of({}));
  const auto& figures = j["figures"];
  CHECK(figures["hfu"].is_null());
  // Of two steps 8 launches of 1 us, from 101 us on.
  CHECK(figures["hfu_at_least"].get<double>() == Approx(8.0 / 899));
  CHECK(figures["hfu_kernel_time_at_least"].get<double>() == Approx(8.0 / (44 * 2)));
  CHECK_FALSE(figures.contains("hfu_at_most"));
  CHECK(figures["ratio"].is_null());
  // The second and the third step, from 101 us to 291 us, with 4 such launches each.
  CHECK(j["step_summary"][0]["hfu_at_least"].get<double>() == Approx(8.0 / 190));
  CHECK(figures["nearer_roof"].is_null());
  CHECK(figures["bound_by"].is_null());
  const auto complete = json_of(report_of(1));
  CHECK(complete["figures"]["hfu"].get<double>() == Approx(8.0 / 899));
  CHECK_FALSE(complete["figures"].contains("hfu_at_least"));
  CHECK(complete["figures"]["nearer_roof"] == "compute");
}

TEST_CASE("bounds: launches that were not screened say so where they are counted") {
  const Report report = report_of({}, true, Lack::kScreening);
  const auto j = json_of(report);
  const auto& figures = j["figures"];
  CHECK(figures["unscreened_launches"] == (kStepCount - 1) * kOthers);
  CHECK(figures["flop"].is_null());
  // 8 launches of both kinds of work, 36 of one addition.
  CHECK(figures["flop_at_least"] == 8 * 19'500'000 + 8 * 512 + 36);
  CHECK(j["step_summary"][0]["hfu_at_least"].is_number());
  CHECK(j["step_summary"][0]["flop_mean"].is_null());
  const auto lines = screen_figures(report);
  CHECK(std::ranges::any_of(lines, [](const ShownFigure& figure) {
    return figure.note == "of 36 launches only instructions: tensor work was not looked for";
  }));
}

namespace {

// A kernel whose counts of instructions are known: 1,000 multiply-adds in fp32 and 100 packed ones
// in half precision, which may be moves, in a recording that asked for `group` beside them.
Report of_instructions(uint32_t compute, const std::vector<std::string>& group = {}) {
  TraceBuilder t;
  t.header(1, false, 1, 101, 3);
  flopinj::trace::TracePacket packet;
  auto& device = *packet.mutable_device();
  device.set_id(1);
  device.set_name("NVIDIA A100-SXM4-80GB");
  device.set_chip("GA100");
  device.set_compute_major(compute);
  t.add(packet);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  if (!group.empty()) t.group(2, "other", group, false);
  t.kernel(1, "gemm", 11, flopinj::trace::Interned::PARAMETERS_EXACT, false, {});
  t.samples(1, 1, {sass(0, 0, 1000, 0, 100)});
  t.launches({{.signature = 1, .duration_ns = 100}, {.signature = 1, .duration_ns = 100}});
  t.end();
  return reduce_bytes({t.bytes()});
}

}  // namespace

TEST_CASE("bounds: counters that nobody asked for do not make 0 of tensor work") {
  // Of two launches at least the 2 x 1,000 x 2 FLOP of fp32: there are tensor cores, no counter
  // says what they did, and the half-precision instructions may be moves.
  const Report asked_in_part = of_instructions(8);
  CHECK(asked_in_part.total.unscreened == 2);
  const Figure flop = flop_of(asked_in_part.total);
  CHECK(flop.marks() == Mark::kAtLeast);
  CHECK(flop.number() == 4000);
  for (const WorkGroup& kernel : group(asked_in_part, {by::kKernel}))
    CHECK(flop_of(kernel.work).marks() == Mark::kAtLeast);
  const auto figures = json_of(asked_in_part)["figures"];
  CHECK(figures["flop_at_least"] == 4000);
  const auto screen = screen_figures(asked_in_part);
  const auto executed = std::ranges::find_if(
      screen, [](const auto& figure) { return std::string_view(figure.name) == "Executed"; });
  REQUIRE(executed != screen.end());
  CHECK(executed->value == ">= 4.000 kFLOP");

  // Nor do those of one format say what was done in the others, or of one instruction.
  const std::string tf32 = "sm__ops_path_tensor_src_tf32_dst_fp32.sum",
                    bf16 = "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
                    fp16 = "sm__ops_path_tensor_src_fp16_dst_fp32.sum";
  for (const auto& part : {std::vector{tf32},
                           {tf32, bf16},
                           {fp16, bf16},
                           {fp16, bf16, "sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32.sum"}}) {
    const Report report = of_instructions(8, part);
    CHECK(report.total.unscreened == 2);
    CHECK(flop_of(report.total).marks() == Mark::kAtLeast);
  }

  // Without tensor cores, or with counters that look for their work or count all its formats, no
  // more is missing: packed half instructions are 2 x 100 x 4 FLOP at most.
  for (const Report& report :
       {of_instructions(6), of_instructions(8, {"sm__inst_executed_pipe_tensor_op_hmma.sum"}),
        of_instructions(8, {tf32, bf16, fp16})}) {
    CHECK(report.total.unscreened == 0);
    CHECK(flop_of(report.total).marks() == Mark::kAtMost);
    CHECK(flop_of(report.total).number() == 4800);
  }
}

namespace {

constexpr double kSide = 1024, kWallNs = 1e6;
constexpr double kProducts = 2 * kSide * kSide * kSide;  // FLOP of one

// Three products of square matrices and an operator without a formula, without any counter, in 1 ms
// on an H100.
Report of_names(UtilizationOptions options = {},
                const std::string& device = "NVIDIA H100 80GB HBM3") {
  TraceBuilder t;
  t.header(1, false, 1, 101, 3);
  t.device(1, "GH100", device, 132);
  t.thread(1, "main");
  t.stream();
  t.kernel(1, "gemm", 11);
  t.kernel(2, "sort", 12);
  t.path(1, 0, "forward");
  t.path(2, 1, "aten::mm, sizes = [[1024, 1024], [1024, 1024]]");
  t.path(3, 1, "mine::own, sizes = [[1024], []]");
  const TraceBuilder::Launch gemm{.signature = 1, .duration_ns = 20'000, .path = 2};
  t.launches({gemm, gemm, gemm, {.signature = 2, .duration_ns = 40'000, .path = 3}});
  flopinj::trace::TracePacket p;
  p.mutable_self_overhead()->set_wall_ns(static_cast<uint64_t>(kWallNs));
  t.add(p);
  t.end();
  ReduceOptions reduce;
  reduce.utilization = std::move(options);
  return reduce_bytes({t.bytes()}, reduce);
}

}  // namespace

TEST_CASE("bounds: without counters formulas are there, and MFU is at least so much") {
  const Report report = of_names();
  const auto j = json_of(report);
  bool seen = false;
  for (const auto& row : j["operators"]) {
    if (row["operator"] != "aten::mm") continue;
    seen = true;
    INFO(row);
    const auto& flop = row.contains("formula_flop_about") && row["formula_flop"].is_null()
                           ? row["formula_flop_about"]
                           : row["formula_flop"];
    CHECK(flop == 3 * kProducts);
    CHECK(row["executed_formula_ratio"].is_null());
    CHECK(row["cause"] == "no hardware count");
  }
  CHECK(seen);

  // Dense peaks of the H100 SXM's data sheet, FLOP/s: whichever format the products ran in, MFU is
  // what is printed or more.
  REQUIRE(report.utilization.mfu() != nullptr);
  const Figure mfu = report.utilization.mfu()->wall;
  REQUIRE(mfu.known());
  CHECK(has(mfu.marks(), Mark::kAtLeast));
  CHECK_FALSE(has(mfu.marks(), Mark::kAtMost));
  for (const double peak : {66.9e12, 494.7e12, 989.4e12, 1978.9e12})
    CHECK(*mfu.number() <= 1.001 * 3 * kProducts / (peak * kWallNs * 1e-9));
  CHECK(*mfu.number() == Approx(3 * kProducts / (1978.9e12 * kWallNs * 1e-9)).epsilon(0.01));
  // 60 of 100 us have a formula.
  CHECK(report.utilization.mfu()->flop_basis.find(
            "in 60 % of the GPU time of kernels that count for the model") != std::string::npos);
  CHECK_FALSE(report.utilization.hfu()->wall.known());

  // What the user says is taken likewise.
  UtilizationOptions options;
  options.formula_flop = 6 * kProducts;
  const Figure given = of_names(options).utilization.mfu()->wall;
  REQUIRE(given.known());
  CHECK(has(given.marks(), Mark::kAtLeast));
  CHECK(*given.number() == Approx(2 * *mfu.number()));
  // Of a device without known peaks nothing is.
  CHECK_FALSE(of_names({}, "Some GPU").utilization.mfu()->wall.known());
}

TEST_CASE("bounds: of others' recordings nothing is said that they do not hold") {
  const Report report = of_names();
  CHECK_FALSE(report.time.own_ns);
  for (const auto& figure : screen_figures(report))
    if (std::string_view(figure.name) == "Profiler cost") CHECK(figure.value == "-");
  const std::string text = text_of(report);
  CHECK(
      text.starts_with("No FLOP were measured: no counters were read; FLOP are known by formula "
                       "alone."));
  CHECK(text.find("doctor") == std::string::npos);
  size_t seen = 0;
  const auto j = json_of(report);
  for (const auto& row : j["operators"])
    if (row["cause"] == "no hardware count") {
      CHECK(row["evidence"] == "no counters of their device were read");
      ++seen;
    }
  CHECK(seen > 0);
}

TEST_CASE("bounds: a gate decides what a bound can decide, and nothing else") {
  const Report report = report_of({});  // at least 0.89 %
  const std::vector<Table> tables = gate_tables(report);
  const auto verdict = [&](const char* text) {
    Gate gate;
    std::string error;
    REQUIRE(Gate::parse(text, gate, error));
    return gate.evaluate([&](const FigurePath& path) { return find_figure(tables, path); }).verdict;
  };
  CHECK(verdict("hfu < 30%") == Verdict::kNotKnown);
  CHECK(verdict("hfu > 30%") == Verdict::kNotKnown);
  CHECK(verdict("hfu > 0.8%") == Verdict::kFailed);
  CHECK(verdict("hfu < 0.8%") == Verdict::kPassed);
  CHECK(verdict("hfu == 0.8%") == Verdict::kPassed);
  CHECK(verdict("hfu != 0.8%") == Verdict::kFailed);
  CHECK(verdict("hfu == 30%") == Verdict::kNotKnown);
  CHECK(verdict("hfu > 0.8% and 2 > 1") == Verdict::kFailed);
  // 8 launches of 19,500,000 additions, to the last digit.
  CHECK(verdict("flop >= 156000000") == Verdict::kFailed);
  CHECK(verdict("flop < 156000000") == Verdict::kPassed);
  CHECK(verdict("flop > 156000000") == Verdict::kNotKnown);
  CHECK(verdict("flop <= 156000000") == Verdict::kNotKnown);
  CHECK(verdict("precisions.fp32.flop > 156000000") == Verdict::kNotKnown);
  CHECK(verdict("precisions.fp32.flop >= 156000000") == Verdict::kFailed);
  CHECK(verdict("launches == 44") == Verdict::kFailed);
}

TEST_CASE("bounds: a comparison takes no bound for a figure") {
  const auto json = json_of(comparison_tables(compare(report_of(1), report_of({}), {})));
  size_t found = 0;
  for (const auto& row : json["total"]) {
    const std::string key = row["figure"];
    if (key != "hfu" && key != "mfu" && key != "ratio") continue;
    INFO(key);
    ++found;
    CHECK(row["a"].is_number());
    CHECK(row["b"].is_null());
    CHECK(row["ratio"].is_null());
  }
  CHECK(found == 3);
}
