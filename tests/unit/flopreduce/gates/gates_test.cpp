// The grammar of gates, what they decide, and how figures are found in a report.
#include <string>
#include <vector>

#include "catch.h"
#include "gates/figures.h"
#include "support/si_number.h"

using namespace flopinj::reduce;

namespace {

Table table_of(const char* key, std::vector<Column> columns, std::vector<TableRow> rows) {
  return {key, std::move(columns), std::move(rows)};
}
Column number(const char* key, Kind kind = Kind::kCount) { return {key, key, kind}; }
Column text(const char* key) { return {key, key}; }

const std::vector<Table>& report_tables() {
  static const std::vector<Table> kTables = {
      table_of(
          "figures",
          {number("flop", Kind::kFlop), number("launches"),
           number("gpu_time_ns", Kind::kNanoseconds), number("ratio", Kind::kRatio),
           number("hfu_kernel_time", Kind::kShare), number("partial", Kind::kFlag), text("name")},
          {{Figure::exact((u128{1} << 64) + 1), Figure::exact(700), Cell::none(),
            Figure::exact(1.69), Figure::exact(0.25), Figure::exact(0), "text"}}),
      table_of("phases", {text("phase"), number("flop", Kind::kFlop)},
               {{"forward", Figure::exact(10)}, {"backward", Cell::none("not measured")}}),
      table_of("kernels", {text("kernel"), number("launches")},
               {{"a.b(float*)", Figure::exact(3)}, {"it's", Figure::exact(4)}}),
      table_of("layers", {text("layer"), number("ratio", Kind::kRatio)},
               {{"fc/1", Figure::exact(2.0)}}),
      table_of(
          "operators", {text("operator"), text("phase"), number("calls")},
          {{"aten::mm", "forward", Figure::exact(6)}, {"aten::mm", "backward", Figure::exact(7)}}),
      table_of("lost",
               {text("line"), number("ns", Kind::kNanoseconds), number("share", Kind::kShare)},
               {{"idle", Figure::exact(50), Figure::exact(0.25)},
                {"recompute", Cell::none("no peak known"), Cell::none("no peak known")}}),
      table_of(
          "timed",
          {number("step_time", Kind::kRatio), number("dram_bytes", Kind::kBytes),
           number("flop_per_s", Kind::kRate)},
          {{Figure::exact(0.002424), Figure::exact(u128{5'000'000'000}), Figure::exact(1.5e12)}}),
      table_of("step_summary", {number("count")}, {{Figure::exact(20)}})};
  return kTables;
}

GateResult decide(const std::string& text) {
  Gate gate;
  std::string error;
  INFO(text);
  const bool parsed = Gate::parse(text, gate, error);
  INFO(error);
  REQUIRE(parsed);
  return gate.evaluate([](const FigurePath& path) { return find_figure(report_tables(), path); });
}
bool fails(const std::string& text) {
  const auto result = decide(text);
  INFO(result.message);
  REQUIRE((result.verdict == Verdict::kFailed || result.verdict == Verdict::kPassed));
  return result.verdict == Verdict::kFailed;
}
std::string parse_error(const std::string& text) {
  Gate gate;
  std::string error;
  REQUIRE_FALSE(Gate::parse(text, gate, error));
  return error;
}

}  // namespace

TEST_CASE("comparisons") {
  CHECK(fails("1 < 2"));
  CHECK_FALSE(fails("2 < 2"));
  CHECK(fails("2 <= 2"));
  CHECK(fails("3 > 2"));
  CHECK_FALSE(fails("2 > 2"));
  CHECK(fails("2 >= 2"));
  CHECK(fails("2 == 2.0"));
  CHECK(fails("2 != 3"));
  CHECK(fails("-1 < 0"));
  CHECK(fails("1.5k == 1500"));
  CHECK(fails("2e3 == 2k"));
  CHECK(fails("ratio > 1.5"));
  CHECK_FALSE(fails("ratio > 2.1"));
  CHECK(fails("0.7k==launches"));
}

TEST_CASE("and binds tighter than or; parentheses bind tightest") {
  // All sixteen assignments against C++'s own rules.
  for (int bits = 0; bits < 16; ++bits) {
    const bool a = (bits & 1) != 0;
    const bool b = (bits & 2) != 0;
    const bool c = (bits & 4) != 0;
    const bool d = (bits & 8) != 0;
    const auto t = [](bool x) { return std::string(x ? "1==1" : "1==2"); };
    CHECK(fails(t(a) + " or " + t(b) + " and " + t(c) + " or " + t(d)) == (a || (b && c) || d));
    CHECK(fails("(" + t(a) + "||" + t(b) + ")&&(" + t(c) + "||" + t(d) + ")") ==
          ((a || b) && (c || d)));
    CHECK(fails("((" + t(a) + ") and ((" + t(b) + " or " + t(c) + "))) or " + t(d)) ==
          ((a && (b || c)) || d));
  }
}

TEST_CASE("a result has the figures that its condition names, and why one has no value") {
  const auto figures = decide("flop < 3 or ratio < 2 or 1 > phases.backward.flop").figures;
  REQUIRE(figures.size() == 3);  // numbers are none
  CHECK(figures[0].name == "flop");
  CHECK(figures[0].whole == (u128{1} << 64) + 1);
  CHECK(figures[0].value == 0x1p64);
  CHECK(figures[0].reason.empty());
  CHECK_FALSE(figures[1].whole.has_value());
  CHECK(figures[1].value == 1.69);
  CHECK_FALSE(figures[2].whole.has_value());
  CHECK_FALSE(figures[2].value.has_value());
  CHECK(figures[2].reason == "not measured");
  CHECK(decide("gpu_time_ns > 1").figures[0].reason == "null in the report");
  CHECK(decide("phases.nowhere.flop > 1").figures[0].reason.starts_with("no figure 'phases.nowh"));
  // Of a bound the end that is known, before why the other is not.
  using Figures = std::vector<TableRow>;
  for (const auto& [mark, reason] :
       {std::pair{Mark::kAtLeast, ">= 5; launches are missing from it"},
        std::pair{Mark::kAtMost, "<= 5"}}) {
    const std::vector<Table> bound = {
        table_of("figures", {number("flop", Kind::kFlop)}, Figures{{Figure(u128{5}, mark)}})};
    Gate gate;
    std::string error;
    REQUIRE(Gate::parse("flop > 1", gate, error));
    const auto named =
        gate.evaluate([&](const FigurePath& path) { return find_figure(bound, path); }).figures;
    REQUIRE(named.size() == 1);
    CHECK_FALSE(named[0].value.has_value());
    CHECK(named[0].reason == reason);
  }
}

TEST_CASE("figures are found by path, index and name") {
  CHECK(fails("total.launches == 700"));
  CHECK(fails("kernels.1.launches == 4"));
  CHECK(fails("kernels.\"a.b(float*)\".launches == 3"));
  CHECK(fails("kernels.\"it's\".launches == 4"));
  CHECK(fails("layers.'fc/1'.ratio == 2"));
  CHECK(fails("operators.1.calls == 7"));
  CHECK(fails("step_summary.count == 20"));  // it has one row
  CHECK(fails("launches == 700"));
  CHECK(fails("'partial' == 0"));
  CHECK(fails("utilization < 30e-2"));
  CHECK(fails("phases.forward.flop == 10"));
  // 2^64 + 1 and 2^64 differ, as they do not in a double: neither is exactly a double's neighbour.
  CHECK(fails("total.flop > 18446744073709549568"));
}

TEST_CASE("integers are compared to their last digit, whatever they are written as") {
  CHECK(fails("total.flop == 18446744073709551617"));  // 2^64 + 1
  CHECK(fails("total.flop > 18446744073709551616"));
  CHECK_FALSE(fails("total.flop < 18446744073709551617"));
  CHECK_FALSE(fails("total.flop != 18446744073709551617"));
  CHECK(fails("9007199254740993 > 9007199254740992"));  // 2^53 + 1, no double
  CHECK_FALSE(fails("9007199254740993 == 9007199254740992"));
  CHECK(fails("9007199.254740993G == 9007199254740993"));
  CHECK(fails("9007199254740.993e3 == 9007199254740993"));
  CHECK(fails("340282366920938463463374607431768211455 > 340282366920938463463374607431768211454"));
  CHECK(decide("total.flop > 1").message == "total.flop = 18446744073709551617");
  // Beyond 128 bits, below 0 and with a fraction: as floating-point numbers.
  CHECK(fails("1e40 > 340282366920938463463374607431768211455"));
  CHECK(fails("-1 < total.flop"));
  CHECK(fails("0.5 < 1 and 1.5 > 1"));
}

TEST_CASE("whole numbers: digits, point, exponent and prefix") {
  CHECK(parse_whole("0") == u128{0});
  CHECK(parse_whole("1.5T") == u128{1'500'000'000'000});
  CHECK(parse_whole("1e+3") == u128{1000});
  CHECK(parse_whole("2500e-2") == u128{25});
  CHECK(parse_whole("5E") == u128{5'000'000'000'000'000'000});
  CHECK(to_decimal(parse_whole("1e38").value()) == "1" + std::string(38, '0'));
  for (const char* no : {"", "1.5", "1e-1", "1e39", "-1", "x", "1x", "1e300",
                         "340282366920938463463374607431768211456"})
    CHECK_FALSE(parse_whole(no));
}

TEST_CASE("what is not known never passes, unless the rest decides") {
  CHECK(decide("total.gpu_time_ns > 1").verdict == Verdict::kNotKnown);
  CHECK(decide("total.gpu_time_ns <= 1").verdict == Verdict::kNotKnown);
  CHECK(decide("gpu_time_ns > 1 or ratio > 2").verdict == Verdict::kNotKnown);
  CHECK(decide("gpu_time_ns > 1 or ratio > 1").verdict == Verdict::kFailed);
  CHECK(decide("gpu_time_ns > 1 and ratio > 1").verdict == Verdict::kNotKnown);
  CHECK(decide("gpu_time_ns > 1 and ratio > 2").verdict == Verdict::kPassed);
  CHECK(decide("phases.backward.flop > 1").verdict == Verdict::kNotKnown);
  CHECK(decide("total.gpu_time_ns > 1").message == "total.gpu_time_ns is not known");
  CHECK(decide("ratio > 1").message == "ratio = 1.69");
}

TEST_CASE("a bound decides what it can") {
  const std::vector<Table> report = {
      table_of("figures",
               {number("a", Kind::kShare), number("b", Kind::kShare), number("c", Kind::kShare),
                number("big")},
               {{Figure(0.2, Mark::kAtLeast), Figure(0.5, Mark::kAtMost), Cell::none(),
                 Figure::exact((u128{1} << 53) + 1)}})};
  const auto verdict = [&](const std::string& text) {
    Gate gate;
    std::string error;
    INFO(text);
    REQUIRE(Gate::parse(text, gate, error));
    const auto result =
        gate.evaluate([&](const FigurePath& path) { return find_figure(report, path); });
    return result.verdict == Verdict::kFailed   ? "true"
           : result.verdict == Verdict::kPassed ? "false"
                                                : "open";
  };
  // With every value that the bounds allow, from a list: true, false, or both.
  const std::vector<double> values = {0.1, 0.2, 0.3, 0.5, 0.6};
  const auto allowed = [](char figure, double value) {
    return figure == 'a' ? value >= 0.2 : figure == 'b' ? value <= 0.5 : true;
  };
  const auto holds = [](double x, const std::string& sign, double y) {
    return sign == "<"    ? x < y
           : sign == "<=" ? x <= y
           : sign == ">"  ? x > y
           : sign == ">=" ? x >= y
           : sign == "==" ? x == y
                          : x != y;
  };
  for (const char figure : {'a', 'b', 'c'})
    for (const std::string sign : {"<", "<=", ">", ">=", "==", "!="})
      for (const double limit : {0.15, 0.2, 0.3, 0.5, 0.55}) {
        bool any = false, all = true;
        for (const double value : values)
          if (allowed(figure, value)) {
            any = any || holds(value, sign, limit);
            all = all && holds(value, sign, limit);
          }
        // Between the values of the list there are more.
        if (sign == "==" && !any && allowed(figure, limit)) any = true;
        if (sign == "!=" && all && allowed(figure, limit)) all = false;
        const std::string text = std::string(1, figure) + " " + sign + " " + std::to_string(limit);
        INFO(text);
        CHECK(verdict(text) == std::string(all ? "true" : any ? "open" : "false"));
      }
  CHECK(verdict("a > b") == std::string("open"));
  CHECK(verdict("big == 9007199254740993") == std::string("true"));
  CHECK(verdict("big == 9007199254740992") == std::string("false"));
}

TEST_CASE("a figure that is one of several names is compared with them") {
  static constexpr std::string_view kNames[] = {"inside", "outside", "undecided"};
  Column verdict = text("verdict"), other = text("other"), none = text("none");
  verdict.names = other.names = none.names = kNames;
  const std::vector<Table> report = {
      table_of("figures", {verdict, other, none, number("ratio", Kind::kRatio)},
               {{"outside", "inside", Cell::none(), Figure::exact(2.0)}})};
  const auto decided = [&](const std::string& condition) {
    Gate gate;
    std::string error;
    REQUIRE(Gate::parse(condition, gate, error));
    // Before anything is read it is known whether the condition can be meant.
    std::string wrong;
    for (const Gate::Sides& sides : gate.comparisons())
      if (const auto why = wrong_name(report, sides)) wrong = *why;
    const GateResult result =
        gate.evaluate([&](const FigurePath& path) { return find_figure(report, path); });
    INFO(condition);
    CHECK(wrong.empty() == (result.verdict != Verdict::kInvalid));
    if (!wrong.empty()) CHECK(result.message == wrong);
    return result;
  };
  const auto holds = [&](const std::string& condition) {
    const Verdict verdict_is = decided(condition).verdict;
    REQUIRE((verdict_is == Verdict::kFailed || verdict_is == Verdict::kPassed));
    return verdict_is == Verdict::kFailed;
  };
  CHECK(holds("verdict == outside"));
  CHECK_FALSE(holds("verdict == inside"));
  CHECK(holds("verdict != 'inside'"));
  CHECK_FALSE(holds("outside != verdict"));
  CHECK(holds("verdict != other"));
  CHECK(holds("ratio > 1 and verdict == outside"));
  CHECK(decided("none == inside").verdict == Verdict::kNotKnown);
  CHECK(decided("none != inside").verdict == Verdict::kNotKnown);
  const GateResult found = decided("verdict == outside");
  CHECK(found.message == "verdict = outside");
  REQUIRE(found.figures.size() == 1);
  CHECK(found.figures[0].word == "outside");
  CHECK_FALSE(found.figures[0].value.has_value());
  for (const char* condition : {"verdict == 1", "verdict < outside", "verdict == no_such",
                                "ratio == verdict", "verdict == ratio"})
    CHECK(decided(condition).message ==
          "verdict is a name: write verdict == or != one of inside, outside, undecided");
  const auto list = list_figures(report);
  REQUIRE_FALSE(list.empty());
  CHECK(list[0].name == "verdict");
  CHECK(list[0].value == "outside");
}

TEST_CASE("unknown names are told with the nearest ones") {
  const auto wrong = decide("rato > 1");
  CHECK(wrong.verdict == Verdict::kInvalid);
  CHECK(wrong.message.find("near: ratio") != std::string::npos);
  // A short name that leads nowhere here is not offered.
  const std::vector<Table> other = {
      table_of("figures", {number("launches")}, {{Figure::exact(1)}})};
  CHECK(find_figure(other, {"utilizatio"}).wrong.find("utilization") == std::string::npos);
  CHECK(decide("utilizatio > 1").message.find("near: utilization") != std::string::npos);
  CHECK(decide("rati > 1").message.find("ratio") != std::string::npos);
  CHECK(decide("1 == 1 or no_such > 1").verdict == Verdict::kInvalid);
  CHECK(decide("phases > 1").message == "phases is no figure; rows of phases hold phase, flop");
  CHECK(decide("name > 1").message == "name is no number");
  CHECK(decide("kernels.2.launches > 1").verdict == Verdict::kInvalid);
  // Several have that name: which is meant is not guessed.
  CHECK(decide("operators.'aten::mm'.calls > 1").verdict == Verdict::kInvalid);
}

TEST_CASE("a share is not compared with a number that is meant in per cent") {
  for (const char* text : {"hfu_kernel_time < 95", "95 > hfu_kernel_time", "lost.idle > 20",
                           "launches > 1 and hfu_kernel_time < 95"}) {
    const auto wrong = decide(text);
    CHECK(wrong.verdict == Verdict::kInvalid);
    CHECK(wrong.message.find(" is a share, and 1 of it is 100 %: write ") != std::string::npos);
  }
  CHECK(fails("hfu_kernel_time < 95%"));
  CHECK(fails("hfu_kernel_time < 0.95"));
  CHECK_FALSE(fails("hfu_kernel_time > 1.5"));
  CHECK_FALSE(fails("hfu_kernel_time > 300%"));
  CHECK(fails("launches > 95"));
}

TEST_CASE("a number may have the unit of its figure") {
  // 50 ns of idle time; 16 bytes a second and so on would be no time.
  CHECK(fails("lost.idle.ns >= 50ns"));
  CHECK(fails("lost.idle.ns == 0.05 us"));
  CHECK_FALSE(fails("lost.idle.ns > 3ms"));
  CHECK_FALSE(fails("lost.idle.ns > 1min or 2 h < lost.idle.ns"));
  CHECK(fails("timed.step_time > 2ms and timed.step_time < 3 ms"));
  CHECK(fails("timed.step_time == 2424us"));
  CHECK(fails("timed.step_time < 0.003"));
  CHECK(fails("timed.dram_bytes == 5GB and timed.dram_bytes == 5e9"));
  CHECK(fails("timed.flop_per_s >= 1.5TFLOPS"));
  CHECK(fails("timed.flop_per_s >= 1.5 TFLOP/s"));
  CHECK(fails("flop > 18EFLOP"));
  CHECK_FALSE(fails("flop > 3ZFLOP"));
  CHECK(fails("0.02 ZFLOP > flop and flop < 1YFLOP"));
  CHECK(unit_of_key("gpu_time_a_ns")->of == std::string("time"));
  CHECK(unit_of_key("gpu_time_a") == nullptr);
  CHECK(unit_of_key("flop_b")->of == std::string("FLOP"));
  CHECK(unit_of_key("tokens_per_s") == nullptr);
  CHECK(unit_of_key("regions") == nullptr);
  CHECK(fails("hfu_kernel_time < 30 percent"));
  const auto wrong = [](const char* text, const std::string& words) {
    INFO(text);
    const auto result = decide(text);
    CHECK(result.verdict == Verdict::kInvalid);
    CHECK(result.message == words);
  };
  wrong("timed.step_time > 3GB",
        "timed.step_time is in s: a number beside it has no unit, or is in ns, us, ms, s, min, h");
  wrong("flop > 1.5TB", "flop is in FLOP: a number beside it has no unit, or is in FLOP");
  wrong("launches > 3ms", "launches has no unit: write the number alone");
  wrong("hfu_kernel_time < 3ms", "hfu_kernel_time is a share: write it in %");
  wrong("1 < 2ms", "a number with a unit goes beside a figure: 2ms");
  for (const char* text : {"flop > 3 kms", "flop > 1.5kTFLOP", "flop > 3xyz", "flop > 3 xyz"})
    CHECK(parse_error(text).find("the unit of its figure: 30%, 1.5TFLOP, 3ms, 5GB") !=
          std::string::npos);
  CHECK(parse_error("hfu_kernel_time < 0,5").find("has a point for its fraction") !=
        std::string::npos);
}

TEST_CASE("errors say what was expected, and where") {
  CHECK(parse_error("ratio > > 2") ==
        "expected a figure's name or a number, as in 'mfu < 30%'\n    ratio > > 2\n            ^");
  CHECK(parse_error("") == "expected a figure's name or a number, as in 'mfu < 30%'\n    \n    ^");
  CHECK(parse_error("ratio").find("expected a comparison") == 0);
  CHECK(parse_error("(a > 1").find("expected ')'") == 0);
  CHECK(parse_error("a > 1 b").find("expected 'and', 'or' or the end") == 0);
  CHECK(parse_error("a > 1x").find("expected a number") == 0);
  CHECK(parse_error("a > \"x").find("not closed") != std::string::npos);
  CHECK(parse_error("a. > 1").find("expected a figure's name") == 0);
  CHECK(parse_error("a > 1 order > 2").find("expected 'and', 'or'") == 0);
  CHECK(parse_error("a > 1 \x1b[31m").find('\x1b') == std::string::npos);
}

TEST_CASE("length and nesting are bounded") {
  CHECK(parse_error(std::string(1000, '(') + "1>0").find("parentheses are nested too deep") == 0);
  CHECK(parse_error(std::string(5000, ' ')).find("a gate is at most 4096") == 0);
  CHECK(fails(std::string(100, '(') + "1>0" + std::string(100, ')')));
  std::string longest = "1>0";
  while (longest.size() < 4080) longest += " and 1>0";
  CHECK(fails(longest));
}

TEST_CASE("gates: a line of the lost peak is its share") {
  CHECK(fails("lost.idle > 20%"));
  CHECK_FALSE(fails("lost.idle > 30%"));
  CHECK(fails("lost.idle.ns > 40"));
  const GateResult unknown = decide("lost.recompute > 20%");
  CHECK(unknown.verdict == Verdict::kNotKnown);
  CHECK(unknown.message.find("no peak known") != std::string::npos);
  CHECK(decide("lost.rcompute > 20%").verdict == Verdict::kInvalid);
}
