// What the kernels' machine code says of their counted instructions: FLOP worked out by hand.
#include "catch.h"
#include "reduce_bytes.h"
#include "report/explain.h"
#include "sections/screens/explanation.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
namespace pb = flopinj::trace;

namespace {

// How a recorder that looks at code (or, with minor 2, one that does not) starts a trace.
TraceBuilder looking(uint32_t minor = 3, bool simulated = false, uint64_t session = 1) {
  TraceBuilder t;
  t.header(session, simulated, 1, 100, minor);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass",
          {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"});
  return t;
}

// One kernel, of 10 launches with these counts: FADD, FFMA, HADD2, HFMA2.
TraceBuilder& kernel(TraceBuilder& t, std::vector<TraceBuilder::Code> code, bool read,
                     std::vector<double> counts = {10, 1000, 0, 80}) {
  t.kernel(1, "k", 11, pb::Interned::PARAMETERS_EXACT, read, std::move(code));
  t.samples(1, 1, {counts, counts});
  t.tally({{1, 10, 0, 0}});
  t.ledger(10, 10, 0);
  t.end();
  return t;
}

Report of(std::vector<TraceBuilder::Code> code, bool read = true) {
  TraceBuilder t = looking();
  return reduce_bytes({kernel(t, std::move(code), read).bytes()});
}

std::string all_of(const Report& r) { return to_decimal(r.total.flop); }

}  // namespace

TEST_CASE("half instructions that only load constants are no FLOP") {
  const Report r = of({{pb::Interned::SASS_HFMA, 13, 0, 0}});
  CHECK(all_of(r) == "20100");  // 10 launches of 10 + 1000 x 2
  CHECK(to_decimal(r.flop.by_precision[2]) == "0");
  CHECK(to_decimal(r.total.matrix_flop) == "20000");
  CHECK(to_decimal(r.total.left_out) == "3200");  // 80 x 4
  CHECK(r.total.doubtful == 0);
  CHECK_FALSE(r.total.flop_at_most());
  const auto json = json_of(r);
  CHECK(json["figures"]["flop_left_out"] == 3200);
  CHECK(json["figures"]["flop_doubtful"] == 0);
  const std::string text = text_of(r);
  CHECK(text.find("3.200 kFLOP are left out") != std::string::npos);
  CHECK(text.find("<=") == std::string::npos);
  CHECK(text.find("moves-left-out") != std::string::npos);
}

TEST_CASE("multiply-adds that are products count one operation a lane") {
  const Report r = of({{pb::Interned::SASS_HFMA, 0, 5, 0}});
  CHECK(to_decimal(r.flop.by_precision[2]) == "1600");  // 10 x 80 x 2 lanes
  CHECK(to_decimal(r.total.left_out) == "1600");
  CHECK(to_decimal(r.total.matrix_flop) == "20000");  // products are no matrix work
  CHECK(r.total.doubtful == 0);
}

TEST_CASE("of constants among arithmetic the count is an upper bound") {
  const Report r = of({{pb::Interned::SASS_HFMA, 3, 0, 7}});
  CHECK(all_of(r) == "23300");
  CHECK(to_decimal(r.total.doubtful) == "3200");
  CHECK(r.total.left_out == 0);
  CHECK(r.total.flop_at_most());
  CHECK_FALSE(r.total.flop_exact());
  CHECK(text_of(r).find("<= 23.30 kFLOP") != std::string::npos);
  CHECK(text_of(r).find("may-hold-moves") != std::string::npos);
  // Constants and products: at most two lanes of one operation each, at least nothing.
  const Report products = of({{pb::Interned::SASS_HFMA, 3, 7, 0}});
  CHECK(to_decimal(products.flop.by_precision[2]) == "1600");
  CHECK(to_decimal(products.total.doubtful) == "1600");
  CHECK(to_decimal(products.total.left_out) == "1600");
  // Products and multiply-adds: one operation a lane is certain.
  const Report both = of({{pb::Interned::SASS_HFMA, 0, 3, 7}});
  CHECK(to_decimal(both.flop.by_precision[2]) == "3200");
  CHECK(to_decimal(both.total.doubtful) == "1600");
}

TEST_CASE("what is too little for four digits is said and not marked") {
  const auto few = [](double sums) {
    TraceBuilder t = looking();
    return reduce_bytes(
        {kernel(t, {{pb::Interned::SASS_FADD, 1, 0, 4}}, true, {sums, 1000, 0, 0}).bytes()});
  };
  const Report r = few(1);  // 1 of 2001
  CHECK(to_decimal(r.total.doubtful) == "10");
  CHECK_FALSE(r.total.flop_at_most());
  CHECK(json_of(r)["figures"]["flop_doubtful"] == 10);
  CHECK(text_of(r).find("<=") == std::string::npos);
  CHECK(text_of(r).find("At most 10 FLOP are of instructions that only") != std::string::npos);
  CHECK(few(2).total.flop_at_most());
}

TEST_CASE("code that the recorder did not see may hold moves in its half instructions") {
  const Report r = of({}, false);
  CHECK(all_of(r) == "23300");
  CHECK(to_decimal(r.total.doubtful) == "3200");
  CHECK(r.total.flop_at_most());
  // Of fp32 instructions hardly any are.
  TraceBuilder t = looking();
  CHECK(reduce_bytes({kernel(t, {}, false, {10, 1000, 0, 0}).bytes()}).total.doubtful == 0);
}

TEST_CASE("traces of recorders that do not look, and of simulated devices, read as ever") {
  for (const auto& [minor, simulated] : {std::pair{2U, false}, std::pair{3U, true}}) {
    TraceBuilder t = looking(minor, simulated);
    const Report r = reduce_bytes({kernel(t, {}, false).bytes()});
    CHECK(all_of(r) == "23300");
    CHECK(r.total.doubtful == 0);
    CHECK(r.total.left_out == 0);
    CHECK(json_of(r)["figures"]["flop_doubtful"] == 0);
  }
}

TEST_CASE("who has read a kernel's code speaks for those who have not") {
  TraceBuilder one = looking(3, false, 1), other = looking(3, false, 2);
  const std::string without = kernel(one, {}, false).bytes();
  const std::string with = kernel(other, {{pb::Interned::SASS_HFMA, 2, 0, 0}}, true).bytes();
  for (const auto& traces : {std::vector{without, with}, std::vector{with, without}}) {
    const Report r = reduce_bytes(traces);
    CHECK(all_of(r) == "40200");
    CHECK(r.total.doubtful == 0);
  }
}

TEST_CASE("moves whose number depends on data make no estimate") {
  TraceBuilder t = looking();
  t.kernel(1, "k", 11, pb::Interned::PARAMETERS_EXACT, true, {{pb::Interned::SASS_HFMA, 2, 0, 0}});
  t.samples(1, 1, {{10, 1000, 0, 80}, {10, 1000, 0, 96}});
  t.tally({{1, 10, 0, 0}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(all_of(r) == "20100");
  CHECK(r.total.varying == 0);
  CHECK(to_decimal(r.total.left_out) == "3520");  // 10 x 88 x 4
}

TEST_CASE("explain names the instructions that made the figure") {
  TraceBuilder t = looking();
  const Report r = reduce_bytes({kernel(t, {{pb::Interned::SASS_HFMA, 3, 0, 7}}, true).bytes()});
  const auto said = [&](FigureKind kind, const char* name) {
    std::ostringstream out;
    write_text(out, explanation_sections(r, explain(r, {kind, name})), {});
    return out.str();
  };
  const std::string whole = said(FigureKind::kKernel, "k");
  CHECK(whole.find("<= 23,300") != std::string::npos);
  CHECK(whole.find("At most 3.200 kFLOP are of instructions that only") != std::string::npos);
  CHECK(said(FigureKind::kPrecision, "fp16").find("<= 3,200") != std::string::npos);
  CHECK(said(FigureKind::kPrecision, "fp32").find("<=") == std::string::npos);
  const auto json = json_of(explanation_tables(r, explain(r, {FigureKind::kKernel, "k"})));
  const auto& metrics = json["samples"];
  const auto hfma = std::find_if(metrics.begin(), metrics.end(), [](const auto& m) {
    return m["metric"].template get<std::string>().find("hfma") != std::string::npos;
  });
  REQUIRE(hfma != metrics.end());
  CHECK((*hfma)["weight_least_numerator"] == 0);
  CHECK((*hfma)["instructions_none"] == 3);
  CHECK((*hfma)["instructions_all"] == 7);
}

TEST_CASE("Of FLOP that may be no arithmetic a part is no more certain than all of them") {
  Work work;
  work.launches = 2;
  work.flop = 1000;
  work.matrix_flop = 900;
  work.doubtful = 600;  // which may all be of the part
  work.unscreened = 1;  // there may be tensor work beside
  CHECK(flop_of(work).low() == Figure::Value(u128{400}));
  CHECK(matrix_flop_of(work).low() == Figure::Value(u128{300}));
  CHECK(matrix_flop_of(work).marks() == Mark::kAtLeast);

  work.unscreened = 0;
  CHECK(matrix_flop_of(work).marks() == Mark::kAtMost);
  CHECK(matrix_flop_of(work).low() == Figure::Value(u128{300}));
  work.doubtful = 0;
  CHECK(matrix_flop_of(work).low() == Figure::Value(u128{900}));
  CHECK(matrix_flop_of(work).marks() == Mark::kNone);
}
