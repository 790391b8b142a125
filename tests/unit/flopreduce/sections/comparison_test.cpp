// What a comparison of two recordings answers first. Figures are worked out by hand.
#include "sections/screens/comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "reduce_bytes.h"
#include "support/text.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// A run of `launches` launches of one kernel: 1,000 FLOP and `ns` each. FLOP are not known where
// `measured` is false.
Report run_of(size_t launches, int64_t ns, bool measured = true) {
  TraceBuilder t;
  t.header();
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "product", 11);
  if (measured) t.samples(1, 1, {{1000, 0, 0, 0, 0, 0, 0, 0, 0}});
  t.launches(std::vector<TraceBuilder::Launch>(launches, {1, ns}));
  t.ledger(launches, measured ? launches : 0, measured ? 0 : launches);
  t.end();
  return reduce_bytes({t.bytes()});
}

struct Answer {
  std::string lines;
  std::vector<ShownFigure> figures;
};
Answer answer_of(const Report& a, const Report& b, const Normalization& n = {}) {
  const Section head = comparison_sections(compare(a, b, n), a, b).front();
  Answer answer{{}, head.figures};
  for (const Line& line : head.above) {
    for (const auto& [text, tone] : line.parts) answer.lines += text;
    answer.lines += '\n';
  }
  return answer;
}

bool says(const Answer& answer, const std::string& part) {
  INFO(answer.lines);
  return answer.lines.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a comparison says first how much more work there is, and how much more time it takes") {
  const Report a = run_of(10, 4000);
  CHECK(says(answer_of(a, run_of(15, 2000)),
             "B executes 50.0 % more FLOP than A in 25.0 % less GPU time: 2.000 times the "
             "FLOP/s."));
  CHECK(says(answer_of(a, run_of(5, 10000)),
             "B executes 50.0 % fewer FLOP than A in 25.0 % more GPU time: 0.400 times the "
             "FLOP/s."));
  CHECK(says(answer_of(a, a), "B executes the same FLOP as A in the same GPU time"));
  CHECK(says(answer_of(a, run_of(10, -1)), "the same FLOP as A; GPU time cannot be compared."));
}

TEST_CASE("a comparison's first answer is after normalization") {
  const Answer answer = answer_of(run_of(10, 4000), run_of(20, 4000), {"batch", 32, 64});
  CHECK(says(answer, "the same FLOP as A in the same GPU time"));
  const auto flop =
      std::ranges::find(answer.figures, std::string_view("Executed"), &ShownFigure::name);
  REQUIRE(flop != answer.figures.end());
  CHECK(flop->value == "10.00 kFLOP -> 20.00 kFLOP");
  CHECK(flop->note == "B/A 1.000");
}

TEST_CASE("a side without all FLOP counts is named, and none of its figures is compared") {
  const Report known = run_of(10, 4000), unknown = run_of(10, 4000, false);
  CHECK(says(answer_of(known, unknown), "cannot be compared: B has launches without a FLOP count"));
  CHECK(says(answer_of(unknown, known), "cannot be compared: A has launches without a FLOP count"));
  for (const ShownFigure& figure : answer_of(known, unknown).figures) {
    INFO(figure.name);
    if (figure.name == std::string("Executed")) {
      CHECK(figure.value.starts_with("10.00 kFLOP -> not known"));
      CHECK(figure.note == "B/A -");
    }
    if (figure.name == std::string("Coverage")) CHECK(figure.value.starts_with("100.0 % -> 0 %"));
  }
}

namespace {

using Json = nlohmann::ordered_json;
Json tables_of(const Comparison& comparison) { return json_of(comparison_tables(comparison)); }

struct Named {
  std::string mangled;
  size_t launches = 0;
};
Report kernels_of(const std::vector<Named>& kernels) {
  TraceBuilder t;
  t.header();
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  uint32_t id = 0;
  uint64_t all = 0;
  for (const auto& [mangled, launches] : kernels) {
    ++id;
    t.kernel(id, mangled, 10 + id);
    t.samples(1, id, {{1000, 0, 0, 0, 0, 0, 0, 0, 0}});
    t.launches(std::vector<TraceBuilder::Launch>(launches, {id, 100}));
    all += launches;
  }
  t.ledger(all, all, 0);
  t.end();
  return reduce_bytes({t.bytes()});
}

// "a::k(int) 10/20 changed", sorted.
std::vector<std::string> compared(const std::vector<Named>& a, const std::vector<Named>& b) {
  std::vector<std::string> lines;
  const auto count = [](const Json& n) { return n.is_null() ? "-" : n.dump(); };
  const Json tables = tables_of(compare(kernels_of(a), kernels_of(b), {}));
  for (const Json& k : tables["compared_kernels"])
    lines.push_back(k["name"].get<std::string>().substr(0, 20) + " " + count(k["launches_a"]) +
                    "/" + count(k["launches_b"]) + " " + k["change"].get<std::string>());
  std::ranges::sort(lines);
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a comparison holds every kernel, whatever its name is shown as") {
  // The same shown name: two kernels.
  CHECK(compared({{"_ZN1aL1kEi", 10}, {"_ZN1a1kEi", 1000}},
                 {{"_ZN1aL1kEi", 10}, {"_ZN1a1kEi", 1001}}) ==
        Lines{"a::k(int) 10/10 same", "a::k(int) 1000/1001 changed"});
  // Names that differ behind what is shown of them.
  const std::string longest(3000, 'x');
  CHECK(compared({{longest + "1", 1}, {longest + "2", 2}},
                 {{longest + "2", 2}, {longest + "1", 3}}) ==
        Lines{"xxxxxxxxxxxxxxxxxxxx 1/3 changed", "xxxxxxxxxxxxxxxxxxxx 2/2 same"});
  // An anonymous namespace has another name in each build: then the shown name says which it is,
  // and several of that name are one.
  CHECK(compared({{"_ZN48_GLOBAL__N__11111111_7_file_cu_11111111_111111k1Ei", 10}},
                 {{"_ZN48_GLOBAL__N__22222222_7_file_cu_22222222_222222k1Ei", 10}})
            .size() == 1);
  CHECK(compared({{"_ZN1aL1kEi", 10}, {"_ZN1a1kEi", 1000}}, {{"_Z5otheri", 1}}) ==
        Lines{"a::k(int) 1010/- vanished", "other(int) -/1 appeared"});
}

namespace {

// gemm, 128 FLOP and 10 ns a launch: in layers fc1 and fc2 of forward, and in backward.
Report layers_of(uint64_t fc1, uint64_t fc2, uint64_t backward, uint64_t lost = 0) {
  TraceBuilder t = started(1);
  t.kernel(1, "gemm", 11);
  t.kernel(2, "lost", 12);
  t.path(1, 0, "forward");
  t.path(2, 1, "fc1");
  t.path(3, 1, "fc2");
  t.path(4, 0, "backward");
  t.samples(1, 1, {sass(0, 0, 64)});
  t.tally({{1, fc1, fc1, 10 * fc1, 2},
           {1, fc2, fc2, 10 * fc2, 3},
           {1, backward, backward, 10 * backward, 4}});
  if (lost > 0) t.tally({{2, lost, lost, 10 * lost, 2}});
  t.ledger(fc1 + fc2 + backward + lost, fc1 + fc2 + backward, lost);
  t.end();
  return reduce_bytes({t.bytes()});
}

Json row_of(const Comparison& comparison, const char* table, const char* name) {
  const Json tables = tables_of(comparison);
  for (const Json& row : tables[table])
    if (row["name"] == name) return row;
  FAIL(name);
  return {};
}

std::string text_of(const Comparison& comparison, const Report& a, const Report& b) {
  std::ostringstream out;
  write_text(out, comparison_sections(comparison, a, b), {});
  return out.str();
}

}  // namespace

TEST_CASE("a comparison joins layers and ranges, and shows the ones that changed") {
  const Report a = layers_of(10, 20, 30), b = layers_of(10, 25, 30);
  const Comparison c = compare(a, b, {});
  CHECK(row_of(c, "compared_ranges", "forward/fc1")["change"] == "same");
  const Json fc2 = row_of(c, "compared_ranges", "forward/fc2");
  CHECK(fc2["change"] == "changed");
  CHECK(fc2["flop_a"] == 20 * 128);
  CHECK(fc2["flop_b"] == 25 * 128);
  CHECK(fc2["flop_ratio"] == 1.25);
  CHECK(row_of(c, "compared_layers", "fc1")["change"] == "same");
  CHECK(row_of(c, "compared_layers", "fc2")["forward_flop_ratio"] == 1.25);
  const std::string text = text_of(c, a, b);
  INFO(text);
  CHECK(text.find("Ranges that changed") != std::string::npos);
  CHECK(text.find("forward/fc2") != std::string::npos);
  CHECK(text.find("forward/fc1") == std::string::npos);
  CHECK(text_of(compare(a, a, {}), a, a).find("that changed") == std::string::npos);
  // After normalization the other way round: fc2 has the same for each, fc1 has not.
  const Comparison each = compare(a, layers_of(10, 40, 60), {"batch", 1, 2});
  CHECK(row_of(each, "compared_ranges", "forward/fc2")["change"] == "same");
  CHECK(row_of(each, "compared_ranges", "forward/fc1")["change"] == "changed");
  CHECK(row_of(each, "compared_ranges", "forward/fc1")["flop_ratio"] == 0.5);
}

TEST_CASE("a bound stays a bound in a comparison: of the figure, and of its ratio") {
  const Comparison c = compare(layers_of(10, 20, 30), layers_of(15, 20, 30, 5), {});
  const Json fc1 = row_of(c, "compared_ranges", "forward/fc1");
  CHECK(fc1["flop_a"] == 10 * 128);
  CHECK(fc1["flop_b_at_least"] == 15 * 128);
  CHECK(fc1["flop_ratio_at_least"] == 1.5);
  const Comparison back = compare(layers_of(15, 20, 30, 5), layers_of(10, 20, 30), {});
  CHECK(row_of(back, "compared_ranges", "forward/fc1").contains("flop_ratio_at_most"));
}

TEST_CASE("any table with names is compared as it is") {
  const std::vector<std::string> also{"layer_passes", "phase_precisions", "roofline"};
  const Report a = layers_of(10, 20, 30), b = layers_of(10, 25, 30);
  const Json tables = tables_of(compare(a, b, {}, also));
  // The key of both sides' row is both of its texts; 128 FLOP and 10 ns a launch.
  const Json& passes = tables["compared_layer_passes"];
  REQUIRE(passes.size() == 2);  // backward is in no layer
  size_t found = 0;
  for (const Json& row : passes) {
    if (row["name"] != "fc2") continue;
    ++found;
    CHECK(row["pass"] == "forward");
    CHECK(row["change"] == "changed");
    CHECK(row["launches_a"] == 20);
    CHECK(row["launches_b"] == 25);
    CHECK(row["flop_ratio"] == 1.25);
    CHECK(row["gpu_time_b_ns"] == 250);
    CHECK(row["gpu_time_ratio"] == 1.25);
  }
  CHECK(found == 1);
  CHECK(passes[0]["name"] == "fc2");  // what moved most comes first
  REQUIRE(tables["compared_phase_precisions"].size() == 2);
  for (const Json& row : tables["compared_phase_precisions"]) {
    CHECK(row["precision"] == "fp32");
    CHECK(row["flop_ratio"] == (row["name"] == "forward" ? 35.0 / 30.0 : 1.0));
  }
  // Its rate is no amount: it is not normalised.
  const Json halved =
      tables_of(compare(a, layers_of(20, 40, 60), {"batch", 1, 2}, also))["compared_roofline"];
  REQUIRE(halved.size() == 1);
  CHECK(halved[0]["gpu_time_ratio"] == 1.0);
  CHECK(halved[0]["flop_per_s_ratio"] == 1.0);
  CHECK(halved[0]["change"] == "same");
  // What is always compared is not compared twice, and the tables without names are not offered.
  CHECK(tables_of(compare(a, b, {}, {"kernels"})) == tables_of(compare(a, b, {})));
  const auto keys = comparable_tables();
  for (const char* key : {"layer_passes", "operator_passes", "signatures", "rank_phases", "ledger"})
    CHECK(std::ranges::count(keys, key) == 1);
  for (const char* key : {"figures", "notices", "lost_capacity"})
    CHECK(std::ranges::count(keys, key) == 0);
  // Rows of the same names are one, by what adds up.
  const Report lost = layers_of(10, 20, 30, 5);
  for (const std::string& key : keys) {
    INFO(key);
    const Comparison c = compare(lost, a, {}, {key});
    CHECK(text_of(c, lost, a).size() > 0);
    CHECK(std::ranges::any_of(c.tables, [&](const Table& table) {
      return std::string_view(table.key) == "compared_" + key;
    }));
  }
}
