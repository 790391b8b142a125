#include <collector/ranges/range_name.h>

#include <random>
#include <string>

#include "catch.h"

using namespace flopinj;

namespace {

void check(const std::string& name, const std::string& key, uint64_t sequence_plus_1) {
  INFO(name);
  const RangeName parsed = parse_range_name(name);
  CHECK(parsed.key == key);
  CHECK(parsed.sequence_plus_1 == sequence_plus_1);
}

// Whether every UTF-8 sequence in `text` is whole (text made of whole sequences, then cut).
bool whole_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (i + n > text.size()) return false;
    i += n;
  }
  return true;
}

}  // namespace

TEST_CASE("range names: PyTorch's fields that change with every call are cut out") {
  check("aten::conv2d, seq = 3, op_id = 7, sizes = [[64, 3, 224, 224], [], [64]]",
        "aten::conv2d, sizes = [[64, 3, 224, 224], [], [64]]", 4);
  check("aten::conv2d, op_id = 7, seq = 3, sizes = [[64, 3]]", "aten::conv2d, sizes = [[64, 3]]",
        4);
  check("aten::conv2d, sizes = [[64, 3]], op_id = 7, seq = 3", "aten::conv2d, sizes = [[64, 3]]",
        4);
  check("aten::mm, seq = 0, op_id = 12", "aten::mm", 1);
  check("aten::mm, op_id = 12", "aten::mm", 0);
  check("aten::mm, seq = -1, op_id = 12", "aten::mm", 0);
  check("aten::mm, seq = 9, op_id = 8, sizes = [[2, 2]], input_op_ids = [(5,0), (6, 1)]",
        "aten::mm, sizes = [[2, 2]]", 10);
  // As PyTorch 2 has them: the engine's range has no number, the node's has.
  check("autograd::engine::evaluate_function: MmBackward0, op_id = 147",
        "autograd::engine::evaluate_function: MmBackward0", 0);
  check("MmBackward0, seq = 41, op_id = 148, sizes = [[2, 4]], input_op_ids = [(146,0)]",
        "MmBackward0, sizes = [[2, 4]]", 42);
  check("f(a, b), seq = 5", "f(a, b)", 6);
}

TEST_CASE("range names: which range is the node of autograd's engine") {
  const std::string engine = "autograd::engine::evaluate_function: ";
  CHECK(evaluates_node(engine + "MmBackward0"));
  CHECK_FALSE(evaluates_node("autograd::engine::evaluate"));
  CHECK_FALSE(evaluates_node("MmBackward0"));
  CHECK(is_node_of("MmBackward0", engine + "MmBackward0"));
  CHECK(is_node_of("MmBackward0, sizes = [[2, 4]]", engine + "MmBackward0"));
  CHECK_FALSE(is_node_of("MmBackward01", engine + "MmBackward0"));
  CHECK_FALSE(is_node_of("aten::mul", engine + "MmBackward0"));
  CHECK_FALSE(is_node_of("Mm", engine + "MmBackward0"));
}

TEST_CASE("range names: other names stay as they are") {
  for (const char* name :
       {"", "forward", "step 17", "a, b, c", "seq = 3", "x, seq = ", "x, seq = 3a", "x, seq = 3 ",
        "x, sequence = 3", "x,seq = 3", "x, op_id = many", "[unclosed, seq = 3", "x, ", ", "})
    check(name, name, 0);
  check("x, seq = 99999999999999999999", "x, seq = 99999999999999999999", 0);
  check("x, seq = 9223372036854775807", "x", uint64_t{1} << 63);
  check("x], seq = 3", "x]", 4);
}

TEST_CASE("range names: long ones are kept, and what is beyond all bounds is not read") {
  // A fused optimizer's sizes, and the numbers of its inputs behind them.
  std::string sizes = "[", ids = "[";
  while (sizes.size() < 30'000) sizes += "[1024, 1024], ", ids += "(123456,0), ";
  sizes += "[]]", ids += "]";
  check("op, seq = 3, sizes = " + sizes + ", input_op_ids = " + ids, "op, sizes = " + sizes, 4);
  check("op, sizes = " + sizes + ", seq = 3", "op, sizes = " + sizes, 4);
  CHECK(sizes.size() + ids.size() > kMaxNameBytes);

  const std::string ascii(kMaxScannedBytes + 1'000, 'a');
  CHECK(parse_range_name(ascii).key == ascii.substr(0, kMaxScannedBytes));
  // Never inside a character.
  for (const char* character : {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x94\xa5"})
    for (size_t shift = 0; shift < 4; ++shift) {
      std::string name(shift, 'x');
      while (name.size() < kMaxScannedBytes + 10) name += character;
      const std::string key = parse_range_name(name).key;
      CHECK(key.size() <= kMaxScannedBytes);
      CHECK(key.size() > kMaxScannedBytes - 4);
      CHECK(whole_utf8(key));
      CHECK(whole_utf8(cut_utf8(name, kMaxNameBytes)));
    }
  // What is not UTF-8 is cut somewhere.
  CHECK(cut_utf8(std::string(2'000, '\x80'), 1'000).size() == 1'000);
}

TEST_CASE("range names: parsing twice changes nothing more") {
  std::mt19937 random(7);
  const char* const pieces[] = {
      "aten::mm", ", ", "seq = ",       "op_id = ",        "3", "-1", "[", "]", "(", ")", ",", " ",
      " = ",      "x",  "\xe2\x82\xac", "sizes = [[1, 2]]"};
  std::string key;  // of the name before
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (size_t n = random() % 12; n > 0; --n) name += pieces[random() % std::size(pieces)];
    const uint64_t sequence_plus_1 = parse_range_name(name, key);
    const RangeName once = parse_range_name(name);
    if (key != once.key || sequence_plus_1 != once.sequence_plus_1)
      FAIL("the key before is still in it: " << name);
    if (once.key.size() > name.size()) FAIL("longer than before: " << name);
    if (once.sequence_plus_1 == 0 && once.key != name && name.find("op_id = ") == name.npos &&
        name.find("seq = -1") == name.npos)
      FAIL("changed without reason: " << name);
  }
}

TEST_CASE("generalise: numbers become patterns") {
  CHECK(generalise("step 17") == "step #");
  CHECK(generalise("layer3.conv12") == "layer#.conv#");
  CHECK(generalise("ptr 0x7f00AbC end") == "ptr 0x# end");
  CHECK(generalise("0X1") == "0x#");
  CHECK(generalise("0x") == "#x");
  CHECK(generalise("0xyz") == "#xyz");
  CHECK(generalise("10x12") == "#x#");
  CHECK(generalise("none") == "none");
  CHECK(generalise("") == "");
  CHECK(generalise("1") == "#");
}

TEST_CASE("generalise: twice changes nothing more, and nothing gets longer") {
  std::mt19937 random(3);
  const char alphabet[] = "0019xXabF# -";
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (size_t n = random() % 10; n > 0; --n) name += alphabet[random() % (sizeof alphabet - 1)];
    const std::string once = generalise(name);
    if (generalise(once) != once) FAIL(name << " -> " << once << " -> " << generalise(once));
    if (once.size() > name.size() && name.find("0x") == name.npos && name.find("0X") == name.npos)
      FAIL("longer: " << name);
    for (size_t k = 0; k < once.size(); ++k)
      if (once[k] >= '1' && once[k] <= '9' && once.find("0x") == once.npos)
        FAIL("a digit is left: " << name << " -> " << once);
  }
}
