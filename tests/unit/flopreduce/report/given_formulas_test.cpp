// Formulas of the user's own: what launches count by them, worked out by hand.
#include "phases/given_formulas.h"

#include "operator_scene.h"

using namespace flopinj::test;

namespace {

ReduceOptions with_formulas(const std::string& text) {
  ReduceOptions options;
  const auto error = options.formulas.add_file("my.formulas", text);
  INFO(error.value_or(""));
  REQUIRE_FALSE(error);
  return options;
}

// The summary says the same.
Report report_of(Scene& scene, const std::string& text) {
  scene.trace().end();
  const std::string whole = scene.trace().bytes();
  Report report = reduce_bytes({whole}, with_formulas(text));
  const Report again = reduce_bytes({merge_bytes({{"trace0", whole}}).bytes}, with_formulas(text));
  CHECK(timeless_json_of(again) == timeless_json_of(report));
  return report;
}

std::string formula_error(const std::string& text) {
  GivenFormulas formulas;
  const std::string error = formulas.add_file("my.formulas", text).value_or("");
  CHECK_FALSE(formulas.any());
  CHECK(error.find('\n') == error.npos);
  return error;
}

const OperatorReport& the(const Report& report, const std::string& name) {
  return type_of(report, name, "forward");
}

void give(Scene& scene, uint32_t path, uint64_t times, uint64_t total) {
  constexpr uint32_t kFlop = 900;
  scene.trace().string(kFlop, "flop");
  flopinj::trace::TracePacket packet;
  auto& numbers = *packet.mutable_range_numbers();
  numbers.add_range_path(path);
  numbers.add_name(kFlop);
  numbers.add_times(times);
  numbers.add_total(total);
  scene.trace().add(packet);
}

}  // namespace

TEST_CASE("an operator counts by a sum of products of its sizes") {
  Scene scene(true);
  const std::string mlp = "my_ext::mlp, sizes = [[64, 128], [128, 256], []]";
  const uint32_t outside = scene.path({"forward", mlp});
  const uint32_t inside = scene.path({"forward", mlp, "aten::mm, sizes = [[64, 128], [128, 256]]"});
  const uint32_t product = scene.kernel("gemm", 64.0 * 128 * 256), other = scene.kernel("act", 10);
  scene.launch(kMain, {scene.call(product, inside), scene.at(other, outside, UINT64_MAX),
                       scene.call(product, inside), scene.at(other, outside, UINT64_MAX)});
  const Report report = report_of(
      scene, "# mine\n\noperator my_ext::* = 2*size[0][0]*size[0][1]*size[1][-1] + size[0]\n");
  const OperatorReport& mine = the(report, "my_ext::mlp");
  CHECK(mine.calls == 2);
  CHECK(mine.formula_flop == u128{2} * (2 * 64 * 128 * 256 + 64 * 128));
  CHECK(model_flop(report) == u128{2} * (2 * 64 * 128 * 256 + 64 * 128));
  CHECK(mine.given == "my.formulas:3");
  CHECK(report.operators.types.size() == 1);  // the product in it is its own
  CHECK(report.unused_formulas.empty());
}

TEST_CASE("an operator counts as one of PyTorch's, with its operands elsewhere") {
  Scene scene(true);
  const uint32_t path =
      scene.path({"forward", "my_ext::linear, sizes = [[], [32, 128], [256, 128], [256]]"});
  const uint32_t kernel = scene.kernel("gemm", 32.0 * 256 * 128);
  scene.launch(kMain, {scene.call(kernel, path)});
  const Report report = report_of(scene, "operator my_ext::linear = aten::linear(1, 2)\n");
  CHECK(the(report, "my_ext::linear").formula_flop == u128{2} * 32 * 256 * 128);
}

TEST_CASE("a formula that asks for sizes which are not there is none") {
  Scene scene(true);
  const uint32_t path = scene.path({"forward", "my_ext::a, sizes = [[4, 4]]"});
  const uint32_t kernel = scene.kernel("k", 5);
  scene.launch(kMain, {scene.call(kernel, path)});
  for (const char* formula : {"size[1]", "2*size[0][2]", "size[0][-3]", "aten::mm(0, 1)"}) {
    Scene again = scene;
    const Report report = report_of(again, std::string("operator my_ext::a = ") + formula);
    const OperatorReport& mine = the(report, "my_ext::a");
    CHECK_FALSE(mine.formula_flop);
    CHECK(mine.cause == "no formula");
    CHECK(report.unused_formulas.empty());
  }
}

TEST_CASE("the program gives a range its FLOP") {
  Scene scene(true);
  const uint32_t range = scene.path({"forward", "formula::attention"});
  const uint32_t inside =
      scene.path({"forward", "formula::attention", "Heads", "aten::mm, sizes = [[8, 8], [8, 8]]"});
  const uint32_t product = scene.kernel("gemm", 512), own = scene.kernel("mine", 100);
  scene.launch(kMain, {scene.call(own, range), scene.at(product, inside, UINT64_MAX),
                       scene.call(own, range), scene.at(product, inside, UINT64_MAX),
                       scene.call(own, range), scene.at(product, inside, UINT64_MAX)});
  give(scene, range, 3, 1001);
  const Report report = report_of(scene, "");
  const OperatorReport& mine = the(report, "formula::attention");
  CHECK(mine.calls == 3);
  CHECK(mine.calls_counted);
  CHECK(mine.work.launches == 6);
  CHECK(mine.formula_flop == 1001);
  CHECK(mine.given == "the program");
  CHECK(model_flop(report) == 1001);
  CHECK(report.operators.types.size() == 1);
  CHECK(report.numbers.empty());  // it is no number of work such as tokens
}

TEST_CASE("a range to which the program gives nothing has no formula") {
  Scene scene(true);
  const uint32_t kernel = scene.kernel("mine", 100);
  scene.launch(kMain, {scene.call(kernel, scene.path({"forward", "formula::a"}))});
  const Report report = report_of(scene, "");
  CHECK_FALSE(the(report, "formula::a").formula_flop);
}

TEST_CASE("a range by its name counts for each launch of the kernel that does most, about") {
  Scene scene(true);
  const uint32_t path = scene.path({"forward", "flash attention 2"});
  const uint32_t most = scene.kernel("fwd", 1000), least = scene.kernel("combine", 1);
  scene.launch(kMain, {scene.at(most, path, UINT64_MAX), scene.at(least, path, UINT64_MAX),
                       scene.at(most, path, UINT64_MAX)});
  const Report report = report_of(scene, "range flash*2 = 3*500\n");
  const OperatorReport& mine = the(report, "flash attention 2");
  CHECK(mine.formula_flop == 2 * 1500);
  CHECK_FALSE(mine.calls_counted);
  CHECK(has(report.operators.model.marks(), Mark::kEstimate));
}

TEST_CASE("a kernel counts by its launch where no operator has a formula") {
  Scene scene(true);
  const uint32_t product = scene.path({"forward", "aten::mm, sizes = [[8, 8], [8, 8]]"});
  const uint32_t unknown = scene.path({"forward", "my_ext::a, sizes = [[4, 4]]"});
  const uint32_t kernel = scene.kernel("_Z9my_kernelPf", 512);
  scene.launch(kMain, {scene.call(kernel, product), scene.call(kernel, unknown),
                       scene.at(kernel, scene.path({"forward"}), UINT64_MAX)});
  // Grids of the trace have one block, blocks 32 threads.
  const Report report =
      report_of(scene, "kernel my_kernel(float*) = 2*64*grid[0]*block[0] + grid[2]\n");
  const OperatorReport& mine = the(report, "my_kernel(float*)");
  CHECK(mine.work.launches == 2);
  CHECK(mine.formula_flop == 2 * (2 * 64 * 32 + 1));
  CHECK(mine.calls_counted);
  CHECK(the(report, "aten::mm").formula_flop == 2 * 512);
}

TEST_CASE("lines that nothing counts by are named") {
  Scene scene(true);
  const uint32_t kernel = scene.kernel("k", 5);
  scene.launch(kMain, {scene.call(kernel, scene.path({"forward", "my_ext::a"}))});
  const Report report =
      report_of(scene, "operator my_ext::b = 1\noperator my_ext::* = 2\noperator my_ext::a = 3\n");
  CHECK(report.unused_formulas == std::vector<std::string>{"my.formulas:1", "my.formulas:3"});
  CHECK(the(report, "my_ext::a").formula_flop == 2);  // the first line that fits
}

TEST_CASE("a bad line is named with its place") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\nlayer a = 1", "my.formulas:2: 'layer' is none of operator, range, kernel"},
      {"operator a", "my.formulas:1: '=' is missing"},
      {"operator = 1", "the pattern is missing"},
      {"operator a =", "is not the end"},
      {"operator a = 2*", "is not the end"},
      {"operator a = 2 2", "'+' or '*' is missing before '2'"},
      {"operator a = 1.5", "a number is a whole one, and is not followed by '.5'"},
      {"operator a = 1e9", "a number is a whole one, and is not followed by 'e9'"},
      {"operator a = -1", "a whole number or a size[I][J] is not '-1'"},
      {"operator a = sqrt(2)", "a whole number or a size[I][J] is not 'sqrt(2)'"},
      {"operator a = 99999999999999999999", "a number is larger than 2^64"},
      {"operator a = size[0",
       "size[ARGUMENT] or size[ARGUMENT][DIMENSION] is meant before the end"},
      {"operator a = size[-1]", "a whole number from 0 on, as a place is, is not '-1]'"},
      {"operator a = grid[0]", "is not 'grid[0]'"},
      {"operator a = aten::sin_of(0)", "there is no formula of the name 'aten::sin_of(0)'"},
      {"operator a = aten::mm", "'(' and the places of operands are missing before the end"},
      {"operator a = aten::mm(0, 1", "')' is missing before the end"},
      {"range a = size[0]", "a range has whole numbers only, not 'size[0]'"},
      {"range a = aten::mm(0, 1)", "only operators have operands, for 'aten::mm(0, 1)'"},
      {"kernel a = grid[3]", "grids have 0, 1 and 2"},
      {"kernel a = grid", "[DIMENSION] is meant before the end"},
  };
  for (const auto& [text, said] : cases) {
    INFO(text);
    const std::string error = formula_error(text);
    INFO(error);
    CHECK(error.find(said) != error.npos);
  }
}

TEST_CASE("a pattern's '*' stands for any text") {
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string, std::string>>{{"a", "a"},
                                                        {"*", ""},
                                                        {"*", "abc"},
                                                        {"a*", "a"},
                                                        {"a*c", "abbc"},
                                                        {"*b*", "abc"},
                                                        {"a*b*c", "axbxbxc"},
                                                        {"**", "x"},
                                                        {"*aab", "aaaab"}})
    CHECK(fits_pattern(pattern, text));
  for (const auto& [pattern, text] : std::vector<std::pair<std::string, std::string>>{
           {"a", "ab"}, {"", "a"}, {"a*c", "abcd"}, {"*b", "abc"}, {"a*a", "a"}, {"A", "a"}})
    CHECK_FALSE(fits_pattern(pattern, text));
}
