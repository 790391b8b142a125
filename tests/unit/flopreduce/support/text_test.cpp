// Numbers and names as they are shown.
#include "support/text.h"

#include "catch.h"
#include "crc32c.h"
#include "sections/parts/cells.h"
#include "sections/parts/short_name.h"
#include "support/numbered_lines.h"
#include "support/trace_builder.h"
#include "support/wide.h"
#include "writers/fit.h"

using namespace flopinj::reduce;

TEST_CASE("decimal and grouped numbers of 128 bits") {
  CHECK(to_decimal(0) == "0");
  CHECK(to_decimal(kU128Max) == "340282366920938463463374607431768211455");
  CHECK(to_grouped(0) == "0");
  CHECK(to_grouped(999) == "999");
  CHECK(to_grouped(1000) == "1,000");
  CHECK(to_grouped(1234567) == "1,234,567");
}

TEST_CASE("human units keep four digits") {
  CHECK(to_human(0, "FLOP") == "0 FLOP");
  CHECK(to_human(999, "FLOP") == "999 FLOP");
  CHECK(to_human(1000, "FLOP") == "1.000 kFLOP");
  CHECK(to_human(999'999, "FLOP") == "1.000 MFLOP");
  CHECK(to_human(12'345'678'901, "FLOP") == "12.35 GFLOP");
  CHECK(to_human_time(999) == "999 ns");
  CHECK(to_human_time(1'500'000) == "1.500 ms");
  CHECK(to_human_time(999'999'999) == "1.000 s");
}

TEST_CASE("a product that passes 128 bits on the way is exact") {
  bool overflow = false;
  const u128 big = static_cast<u128>(1) << 120;
  CHECK(mul_div_round(big, 1ULL << 40, 1ULL << 50, overflow) == big >> 10);
  CHECK(mul_div_round(7, 3, 2, overflow) == 11);  // 10.5
  CHECK(mul_div_round(10, 1, 3, overflow) == 3);
  CHECK(mul_div_round(UINT64_MAX, UINT64_MAX, UINT64_MAX, overflow) == UINT64_MAX);
  CHECK_FALSE(overflow);
  CHECK(mul_div_round(kU128Max, 2, 1, overflow) == kU128Max);
  CHECK(overflow);
}

TEST_CASE("printable() leaves text alone and disarms the rest") {
  CHECK(printable("grüß 文字 a-b") == "grüß 文字 a-b");
  CHECK(printable("\x1b[31m") == "\\x1B[31m");
  CHECK(printable("\xc2\x9b") == "\\u{9B}");
  CHECK(printable("\x7f\n") == "\\x7F\\x0A");
  CHECK(printable("\xff\xc3") == "\\xFF\\xC3");
  CHECK(printable("\xe2\x80\xae") == "\\u{202E}");
  CHECK(printable("\xed\xa0\x80") == "\\xED\\xA0\\x80");    // a surrogate
  CHECK(printable("\xc0\xaf") == "\\xC0\\xAF");             // overlong
  CHECK(printable("\xf4\x90\x80\x80").find("\\xF4") == 0);  // beyond Unicode
}

TEST_CASE("demangling is bounded") {
  CHECK(demangle("_Z4axpyfPKfPfi") == "axpy(float, float const*, float*, int)");
  CHECK(demangle("plain_name") == "plain_name");
  CHECK(demangle("_Znonsense!") == "_Znonsense!");
  CHECK(demangle("") == "");
  // Each level names the one before twice: 2^40 bytes if it were written out.
  std::string bomb = "_Z1fI1aE";
  bomb = "_Z1fN1a1bE";
  std::string type = "1xIiiE";
  for (int i = 0; i < 36; ++i)
    type = "1xI" + type + "S" + std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]) + "_E";
  CHECK(demangle("_Z1f" + type, 1000).size() <= 1000);
  CHECK(demangle(std::string("_Z") + std::string(100'000, 'P') + "i").size() <= 2048);
}

TEST_CASE("names are shortened in the middle, by code points") {
  CHECK(shorten("short", 10) == "short");
  CHECK(display_width(shorten(std::string(100, 'x'), 20)) == 20);
  std::string umlauts;
  for (int i = 0; i < 50; ++i) umlauts += "ü";
  CHECK(display_width(shorten(umlauts, 20)) == 20);
  CHECK(printable(shorten(umlauts, 20)) == shorten(umlauts, 20));
  CHECK(cut("äää", 5) == "ä...");
}

TEST_CASE("the table-driven check sum equals the one by definition") {
  CHECK(flopinj::crc32c("123456789", 9) == 0xE3069283U);
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(flopinj::crc32c(bytes.data(), bytes.size()) == flopinj::test::plain_crc32c(bytes));
    bytes.push_back(static_cast<char>(i * 37));
  }
}

namespace {

std::vector<std::string> wrapped(const std::string& text, size_t width, size_t hanging = 2) {
  std::vector<std::string> lines;
  for (const auto& [begin, end] : wrap(text, width, hanging))
    lines.push_back(std::string(lines.empty() ? 0 : hanging, ' ') +
                    text.substr(begin, end - begin));
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("prose is broken between words, and a long word where it must be") {
  CHECK(wrapped("one two three", 20) == Lines{"one two three"});
  CHECK(wrapped("one two three", 7) == Lines{"one two", "  three"});
  CHECK(wrapped("  one two", 6) ==
        Lines{"  one", "  two"});  // spaces in front are no place to break
  CHECK(wrapped("abcdefghijklmno", 6) == Lines{"abcdef", "  ghij", "  klmn", "  o"});
  CHECK(wrapped("", 6) == Lines{""});
  CHECK(wrapped("ééé üüü", 4) == Lines{"ééé", "  üü", "  ü"});  // by code points
  CHECK(wrapped("ab", 0).size() == 2);
}

TEST_CASE("a number stays with its unit where it can") {
  CHECK(wrapped("takes about 12.5 ms", 16) == Lines{"takes about", "  12.5 ms"});
  CHECK(wrapped("total >= 5 FLOP", 9) == Lines{"total", "  >= 5", "  FLOP"});
  CHECK(wrapped("ranks 1, 2, 3", 9) == Lines{"ranks 1,", "  2, 3"});
  CHECK(wrapped("1 2 3 4 5", 5) == Lines{"1 2 3", "  4 5"});
}

TEST_CASE("what a table has no room for goes by its worth") {
  const std::vector<Column> columns = {{"name", "name"},
                                       {"main", "main", Kind::kFlop, Worth::kMain},
                                       {"full", "full", Kind::kExactFlop},
                                       {"a", "a", Kind::kCount},
                                       {"b", "b", Kind::kCount},
                                       {"detail", "detail", Kind::kShare, Worth::kDetail},
                                       {"why", "why", Kind::kText, Worth::kMain}};
  const std::vector<size_t> content = {30, 10, 10, 6, 6, 8, 12};
  using Widths = std::vector<size_t>;
  // With the gaps, 96 columns.
  CHECK(fit_columns(columns, content, 96) == content);
  CHECK(fit_columns(columns, content, 92) == Widths{26, 10, 10, 6, 6, 8, 12});
  CHECK(fit_columns(columns, content, 89) == Widths{30, 10, 0, 6, 6, 8, 12});
  CHECK(fit_columns(columns, content, 70) == Widths{26, 10, 0, 6, 6, 0, 12});
  CHECK(fit_columns(columns, content, 60) == Widths{30, 10, 0, 0, 0, 0, 12});
  CHECK(fit_columns(columns, content, 30) == Widths{8, 10, 0, 0, 0, 0, 8});
  CHECK(fit_columns(columns, content, 1) == Widths{8, 10, 0, 0, 0, 0, 8});  // no number is cut
  // Where no terminal shows them: the others take 66 columns.
  const std::vector<size_t> long_name = {80, 10, 10, 6, 6, 8, 12};
  CHECK(fit_name(content, 60) == content);
  CHECK(fit_name(long_name, 60) == Widths{44, 10, 10, 6, 6, 8, 12});
  CHECK(fit_name(long_name, 120) == Widths{54, 10, 10, 6, 6, 8, 12});
}

TEST_CASE("names of kernels without what says nothing, where they still differ") {
  CHECK(short_kernel_name("void relu(float*)") == "relu");
  CHECK(short_kernel_name("sgd(float*)::{lambda(int)#1}::operator()(int) const") ==
        "sgd(float*)::{lambda(int)#1}::operator()(int) const");
  CHECK(short_kernel_name("void (anonymous namespace)::add<float, (int)4>(float*, int)") ==
        "add<float, (int)4>");
  CHECK(short_kernel_name("void cutlass::Kernel2<cutlass_80_tensorop_s1688_128x64>("
                          "cutlass_80_tensorop_s1688_128x64::Params)") ==
        "cutlass_80_tensorop_s1688_128x64");
  CHECK(short_kernel_name("cutlass::Kernel2<A>::operator()(B<C>)") ==
        "cutlass::Kernel2<A>::operator()");
  CHECK(short_kernel_name("(weird)") == "(weird)");
  CHECK(short_kernel_name(")(") == ")(");
  CHECK(short_kernel_name("void ") == "");
  CHECK(short_kernel_names({"f(int)", "f(float)", "void g(int)"}) ==
        std::vector<std::string>{"f(int)", "f(float)", "g"});
}

TEST_CASE("texts are cut where they do not differ") {
  const std::vector<std::string> long_names = {
      "step/forward/layer:conv2/aten::conv2d, sizes = [[64, 16, 28, 28], [16], [], [], [], []]",
      "step/forward/layer:conv2/aten::conv2d, sizes = [[64, 32, 28, 28], [16], [], [], [], []]",
      "short"};
  const auto cut = shorten_apart(long_names, 40);
  CHECK(cut[0] != cut[1]);
  CHECK(cut[0].find("16, 28") != std::string::npos);
  CHECK(cut[1].find("32, 28") != std::string::npos);
  CHECK(cut[2] == "short");
  for (const auto& text : cut) CHECK(display_width(text) <= 40);
  CHECK(shorten_apart({"same", "same"}, 40) == std::vector<std::string>{"same", "same"});
  const auto wide = shorten_apart({std::string(50, 'a') + "\u00e4\u00f6" + std::string(50, 'b'),
                                   std::string(50, 'a') + "\u00f6\u00e4" + std::string(50, 'b')},
                                  30);
  CHECK(wide[0] != wide[1]);
  for (const auto& text : wide) CHECK(display_width(text) <= 30);
}

TEST_CASE("numbers without a unit have the digits that amounts have") {
  CHECK(ratio_text(0) == "0");
  CHECK(ratio_text(1.9855) == "1.986");
  CHECK(ratio_text(34.4254) == "34.43");
  CHECK(ratio_text(0.4667) == "0.467");
  CHECK(ratio_text(0.04667) == "0.0467");
  CHECK(ratio_text(0.000000001) == "0.000000");
  CHECK(ratio_text(1755) == "1,755");
  CHECK(ratio_text(-2359296.4) == "-2,359,296");
}

TEST_CASE("shares have two significant digits, and are never all or nothing for what is not") {
  CHECK(percent_text(0) == "0 %");
  CHECK(percent_text(1) == "100.0 %");
  CHECK(percent_text(0.9999) == ">99.9 %");
  CHECK(percent_text(0.371) == "37.1 %");
  CHECK(percent_text(0.056) == "5.6 %");
  CHECK(percent_text(0.0017) == "0.17 %");
  CHECK(percent_text(0.002) == "0.20 %");
  CHECK(percent_text(0.000015) == "0.0015 %");
  CHECK(percent_text(1e-9) == "<0.001 %");
}

TEST_CASE("an error in a file of lines says its place and how a line has to be") {
  std::vector<std::string> seen;
  const auto read = [&](std::string_view text, size_t most) {
    seen.clear();
    return for_each_line("a\tb", text, most, "a line is a word",
                         [&](std::string_view line, const std::string& place) -> std::string {
                           seen.push_back(place + "=" + std::string(line));
                           return line == "bad" ? "'bad' is none" : "";
                         });
  };
  CHECK(read("", 0) == std::nullopt);
  CHECK(seen.empty());
  CHECK(read("one\n\nlast", 9) == std::nullopt);
  CHECK(seen == std::vector<std::string>{"a\\x09b:1=one", "a\\x09b:2=", "a\\x09b:3=last"});
  CHECK(read("one\nbad\nthree\n", 99) == "a\\x09b:2: 'bad' is none (a line is a word)");
  CHECK(seen.size() == 2);
  CHECK(read("0123456789", 9) == "a\\x09b: larger than 9 bytes");
  CHECK(seen.empty());
}
