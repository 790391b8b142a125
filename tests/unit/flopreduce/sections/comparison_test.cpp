// What a comparison of two recordings answers first. Figures are worked out by hand.
#include "sections/screens/comparison.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "reduce_bytes.h"

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
             "B executes 50.0 % more FLOP than A in 25.0 % less GPU time: 2.0000 times the "
             "FLOP/s."));
  CHECK(says(answer_of(a, run_of(5, 10000)),
             "B executes 50.0 % fewer FLOP than A in 25.0 % more GPU time: 0.4000 times the "
             "FLOP/s."));
  CHECK(says(answer_of(a, a), "B executes the same FLOP as A in the same GPU time"));
  CHECK(says(answer_of(a, run_of(10, -1)), "the same FLOP as A; GPU time cannot be compared."));
}

TEST_CASE("a comparison's first answer is after normalization") {
  const Answer answer = answer_of(run_of(10, 4000), run_of(20, 4000), {"batch", 32, 64});
  CHECK(says(answer, "the same FLOP as A in the same GPU time"));
  REQUIRE(answer.figures.size() >= 2);
  CHECK(answer.figures[0].name == std::string("Executed"));
  CHECK(answer.figures[0].value == "1.0000");
  CHECK(answer.figures[0].note == "A 10.00 kFLOP, B 20.00 kFLOP");
}

TEST_CASE("a side without all FLOP counts is named, and none of its figures is compared") {
  const Report known = run_of(10, 4000), unknown = run_of(10, 4000, false);
  CHECK(says(answer_of(known, unknown), "cannot be compared: B has launches without a FLOP count"));
  CHECK(says(answer_of(unknown, known), "cannot be compared: A has launches without a FLOP count"));
  for (const ShownFigure& figure : answer_of(known, unknown).figures) {
    INFO(figure.name);
    if (figure.name == std::string("Executed")) {
      CHECK(figure.value == "-");
      CHECK(figure.note == "A 10.00 kFLOP, B -");
    }
    if (figure.name == std::string("Coverage")) CHECK(figure.note == "A 100.0 %, B 0 %");
  }
}

namespace {

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
  const auto count = [](const std::optional<u128>& n) { return n ? to_decimal(*n) : "-"; };
  for (const ComparedWork& k : compare(kernels_of(a), kernels_of(b), {}).kernels)
    lines.push_back(k.name.substr(0, 20) + " " + count(k.launches.a) + "/" + count(k.launches.b) +
                    " " + change_word(k.change));
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
