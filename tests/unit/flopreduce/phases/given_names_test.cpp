// Names of scopes beside the trace: which launches get which, from lines and ranges as XLA has
// them.
#include "phases/given_names.h"

#include <map>

#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

constexpr uint32_t kFusion = 1, kGemm = 2, kFlop = 300;  // 100 FFMA, 100 FADD
const std::string kModule = "XlaModule:#hlo_module=jit_step,program_id=7#";

struct Where {
  std::vector<std::string> ranges;
  uint32_t kernel = kFusion;
};

TraceBuilder trace_of(const std::vector<Where>& all) {
  TraceBuilder t = started();
  t.kernel(kFusion, "loop_fusion_1", 11);
  t.kernel(kGemm, "sm90_gemm", 12);
  for (const uint32_t kernel : {kFusion, kGemm})
    t.samples(1, kernel, {sass(100, 0, 100), sass(100, 0, 100)});
  std::vector<TraceBuilder::Launch> launches;
  uint32_t id = 0;
  for (const Where& in : all) {
    uint32_t path = 0;
    for (const std::string& range : in.ranges) {
      t.path(++id, path, range);
      path = id;
    }
    launches.push_back({.signature = in.kernel, .duration_ns = 10, .path = path});
  }
  t.launches(launches);
  return t;
}

GivenNames names_of(const std::string& text) {
  GivenNames names;
  const auto error = names.add_file("names", text);
  INFO(error.value_or(""));
  REQUIRE_FALSE(error);
  return names;
}

Report report_of(const std::vector<Where>& all, const std::string& text) {
  ReduceOptions options;
  options.names = names_of(text);
  options.facts = true;
  return reduce_bytes({trace_of(all).bytes()}, std::move(options));
}

// FLOP right in each range, by its path.
std::map<std::string, uint64_t> places(const Report& report) {
  std::map<std::string, uint64_t> found;
  for (const WorkGroup& of : group(report, {by::kRange}))
    found[of.ids[0] == kNoRange ? "" : report.ranges[of.ids[0]].path] =
        static_cast<uint64_t>(of.work.flop);
  return found;
}

std::string thunk(const std::string& instruction) { return "Thunk:#hlo_op=" + instruction + "#"; }

std::string error_of(const std::string& text) {
  GivenNames names;
  const std::string error = names.add_file("my.names", text).value_or("");
  CHECK_FALSE(names.any());
  CHECK(error.find('\n') == error.npos);
  return error;
}

}  // namespace

TEST_CASE("scopes take the place of XLA's ranges and keep what is around them") {
  const Report report =
      report_of({{{"step", kModule, thunk("fusion.1")}, kGemm},
                 {{"step", kModule, thunk("dot.3")}, kGemm},
                 {{"step", kModule, "Thunk:#name=jit(step)/add,hlo_op=unknown#"}, kGemm},
                 {{"step", kModule, thunk("while.1"), thunk("dot.3"), "cublas"}, kGemm},
                 {{"step"}, kGemm}},
                "# a comment\n\n"
                "instruction\tjit_step\tfusion.1\tjit(step)\tjvp()\tlayer0\n"
                "instruction\tjit_step\tdot.3\tjit(step)\ttranspose(jvp())\tlayer0\n"
                "instruction\tjit_other\tunknown\tjit(other)\n");
  CHECK(places(report) ==
        std::map<std::string, uint64_t>{
            {"step/jit(step)/jvp()/layer0", kFlop},
            {"step/jit(step)/transpose(jvp())/layer0", kFlop},
            {"step/jit(step)/transpose(jvp())/layer0/cublas", kFlop},
            {"step/" + kModule + "/Thunk:#name=jit(step)/add,hlo_op=unknown#", kFlop},
            {"step", kFlop}});
  std::map<std::string, uint64_t> phases;
  for (const auto& phase : report.phases)
    if (phase.work.launches > 0) phases[phase.name] = phase.work.launches;
  CHECK(phases == std::map<std::string, uint64_t>{{"forward", 1}, {"backward", 2}, {"other", 2}});
  CHECK_FALSE(report.given_names_unused);
  // The tables of single processes say the same.
  std::map<std::string, uint64_t> facts;
  for (const FactReport& fact : report.facts)
    facts[report.ranges[report.paths[fact.path].range].path] += static_cast<uint64_t>(fact.flop);
  CHECK(facts == places(report));
}

TEST_CASE("a kernel's name counts where no range has a named instruction") {
  const std::string lines =
      "instruction\tjit_step\tdot.3\tjit(step)\tinstruction\n"
      "kernel\tjit_step\tloop_fusion_1\tjit(step)\tjvp()\tlayer1\n"
      "kernel\tjit_evaluate\tloop_fusion_1\tjit(evaluate)\n";
  CHECK(places(report_of({{{"step", kModule, thunk("command_buffer")}, kFusion},
                          {{"step", kModule, thunk("dot.3")}, kFusion},
                          {{"step", kModule}, kGemm}},
                         lines)) ==
        std::map<std::string, uint64_t>{{"step/jit(step)/jvp()/layer1", kFlop},
                                        {"step/jit(step)/instruction", kFlop},
                                        {"step/" + kModule, kFlop}});
  // Nothing says which of the two modules it is from, and they have nothing in common.
  CHECK(places(report_of({{{"step"}, kFusion}, {{}, kFusion}}, lines)) ==
        std::map<std::string, uint64_t>{{"step", kFlop}, {"", kFlop}});
  CHECK(places(report_of({{{}, kFusion}}, "kernel\t-\tloop_fusion_1\tattention\tscores\n")) ==
        std::map<std::string, uint64_t>{{"attention/scores", kFlop}});
}

TEST_CASE("lines that disagree keep what they have in common") {
  CHECK(places(report_of({{{kModule, thunk("fusion.1")}, kFusion}},
                         "instruction\tjit_step\tfusion.1\tjit(step)\tjvp()\tlayer0\n"
                         "instruction\tjit_step\tfusion.1\tjit(step)\tjvp()\tlayer1\n")) ==
        std::map<std::string, uint64_t>{{"jit(step)/jvp()", kFlop}});
}

TEST_CASE("names of another program say so") {
  const Report report =
      report_of({{{"step", kModule, thunk("fusion.1")}, kFusion}}, "kernel\t-\tother\tscope\n");
  CHECK(report.given_names_unused);
  CHECK(damage_of(report, Damage::kTableFull) == 0);
}

TEST_CASE("scopes that are too deep are cut and counted") {
  std::vector<std::string> deep(PathTable::kMaxDepth - 1, "range");
  const Report report = report_of({{deep, kFusion}}, "kernel\t-\tloop_fusion_1\ta\tb\tc\n");
  CHECK(report.ranges.back().name == "a");
  CHECK(damage_of(report, Damage::kTableFull) == 1);
}

TEST_CASE("a wrong file is one line that names the place") {
  CHECK(error_of("instruction\tm\ta\tb\nkernels\tm\ta\tb\n").starts_with("my.names:2: 'kernels' "));
  CHECK(error_of("kernel\tm\ta\n").starts_with("my.names:1: a field is missing"));
  CHECK(error_of("kernel\tm\t\ta\n").starts_with("my.names:1: a field is missing"));
  CHECK(error_of("kernel\tm\ta\tb\t\tc\n").starts_with("my.names:1: a field is missing"));
  std::string deep = "kernel\tm\ta";
  for (size_t i = 0; i <= kMaxScopes; ++i) deep += "\tscope";
  CHECK(error_of(deep).starts_with("my.names:1: more than 64 scopes"));
  std::string many;
  for (size_t i = 0; i <= kMaxGivenNames; ++i) many += "kernel\tm\ta\tb\n";
  CHECK(error_of(many).starts_with("my.names:262145: more than 262144 names"));
  CHECK(error_of(std::string(kMaxNamesFileBytes + 1, '\n')).starts_with("my.names: larger than"));
  CHECK(error_of(std::string("\x0a\x80\x01\0\x7f", 5)).starts_with("my.names:2: '"));
}
