// Expected layouts are those of C++ structures with the same members; expected hashes come from the
// xxhash package for Python, given the sections' bytes.
#include <collector/identity/cubin.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "support/effort.h"

using namespace flopinj;

namespace {

using Bytes = std::vector<unsigned char>;
using Kernels = std::map<std::string, CubinFunction>;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}
Bytes test_cubin(const std::string& name) {
  return read_file(std::filesystem::path(FLOPINJ_TEST_CUBINS) / (name + ".cubin"));
}

Kernels kernels_of(const Bytes& image) {
  Kernels kernels;
  REQUIRE(read_cubin(image, [&](const CubinFunction& f) {
    CubinFunction& kept = kernels[std::string(f.name)] = f;
    kept.name = {};  // it dies with the image
  }));
  return kernels;
}

#define SLOT(structure, member) \
  ParameterSlot { offsetof(structure, member), sizeof(structure::member) }

struct Mixed {
  int a;
  double b;
  float* p;
  char c[13];
};
struct ByValue {
  Mixed mixed;
  char c;
  short s;
  long long l;
  float f;
};
struct Pointers {
  float *to, *from;
  int n;
};
struct Many {
  int a;
  long long b;
  char c;
  short d;
  double e;
  float* f;
  int g;
  char h, i, j;
  int k;
};
struct Large {
  int table[1100];
  float* to;
  char c;
  int k;
};

void check_parameters(const Kernels& kernels) {
  for (const char* name : {"none", "pointers", "_Z8by_value5Mixedcsxf", "many"}) {
    INFO(name);
    REQUIRE(kernels.count(name) == 1);
    CHECK(kernels.at(name).parameters_known);
    CHECK_FALSE(kernels.at(name).launches_kernels);
  }
  CHECK(kernels.at("none").parameters.empty());
  CHECK(kernels.at("pointers").parameters ==
        ParameterLayout{SLOT(Pointers, to), SLOT(Pointers, from), SLOT(Pointers, n)});
  CHECK(kernels.at("_Z8by_value5Mixedcsxf").parameters ==
        ParameterLayout{SLOT(ByValue, mixed), SLOT(ByValue, c), SLOT(ByValue, s), SLOT(ByValue, l),
                        SLOT(ByValue, f)});
  CHECK(kernels.at("many").parameters ==
        ParameterLayout{SLOT(Many, a), SLOT(Many, b), SLOT(Many, c), SLOT(Many, d), SLOT(Many, e),
                        SLOT(Many, f), SLOT(Many, g), SLOT(Many, h), SLOT(Many, i), SLOT(Many, j),
                        SLOT(Many, k)});
}

void check_large(const Kernels& kernels) {
  CHECK(kernels.at("large").parameters_known);
  CHECK(kernels.at("large").parameters ==
        ParameterLayout{SLOT(Large, table), SLOT(Large, to), SLOT(Large, c), SLOT(Large, k)});
}

// Where the section's header lies, by its name.
size_t section_header(const Bytes& image, std::string_view name) {
  uint64_t table = 0;
  uint16_t count = 0, names = 0;
  std::memcpy(&table, image.data() + 40, 8);
  std::memcpy(&count, image.data() + 60, 2);
  std::memcpy(&names, image.data() + 62, 2);
  const auto field = [&](size_t at, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, image.data() + at, size);
    return value;
  };
  const size_t texts = field(table + names * 64U + 24, 8);
  for (uint16_t i = 0; i < count; ++i) {
    const size_t header = table + i * 64U;
    const auto* const text = reinterpret_cast<const char*>(image.data()) + texts + field(header, 4);
    if (name == text) return header;
  }
  FAIL("no section " << name);
  return 0;
}
template <class T>
T& at(Bytes& image, size_t offset) {
  return *reinterpret_cast<T*>(image.data() + offset);
}
size_t contents_of(Bytes& image, std::string_view name) {
  return at<uint64_t>(image, section_header(image, name) + 24);
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), n);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

}  // namespace

TEST_CASE("parameters lie where a cubin says, on every architecture") {
  for (const char* arch : {"sm75", "sm90", "sm120"}) {
    INFO(arch);
    check_parameters(kernels_of(test_cubin(std::string("parameters_") + arch)));
  }
  check_large(kernels_of(test_cubin("large_sm90")));
}

// What ptxas says of them (nvcc --resource-usage).
TEST_CASE("registers and shared memory are those that the compiler tells, on every architecture") {
  for (const char* arch : {"sm75", "sm90", "sm100"}) {
    INFO(arch);
    const Kernels kernels = kernels_of(test_cubin(std::string("shared_") + arch));
    const std::map<std::string, std::pair<uint32_t, uint32_t>> expected{
        {"none", {8, 0}}, {"fixed", {10, 1'200}}, {"dynamic", {10, 0}}};
    REQUIRE(kernels.size() == expected.size());
    for (const auto& [name, kernel] : kernels)
      CHECK(std::pair{kernel.registers_per_thread, kernel.static_shared_bytes} ==
            expected.at(name));
  }
  CHECK(kernels_of(test_cubin("parameters_sm90")).at("many").registers_per_thread == 10);
  CHECK(kernels_of(test_cubin("parameters_sm120")).at("many").registers_per_thread == 11);
}

TEST_CASE("registers of no function, or of a record that is not whole, are nobody's") {
  Bytes image = test_cubin("shared_sm90");
  const size_t section = section_header(image, ".nv.info");
  const size_t records = contents_of(image, ".nv.info");
  REQUIRE(image[records + 1] == 0x2f);  // 12 bytes, the first kernel's
  const auto registers = [&] {
    std::multiset<uint32_t> all;
    for (const auto& [name, kernel] : kernels_of(image)) all.insert(kernel.registers_per_thread);
    return all;
  };
  REQUIRE(registers() == std::multiset<uint32_t>{8, 10, 10});
  const auto first = at<uint32_t>(image, records + 8);
  at<uint32_t>(image, records + 4) = 0xffff'ffff;  // a symbol that is not there
  CHECK(registers().count(0) == 1);
  CHECK(registers().count(first) == std::multiset<uint32_t>{8, 10, 10}.count(first) - 1);
  at<uint64_t>(image, section + 32) = 11;
  CHECK(registers() == std::multiset<uint32_t>{0, 0, 0});
}

TEST_CASE("code hashes are as defined") {
  const Kernels kernels = kernels_of(test_cubin("parameters_sm90"));
  CHECK(kernels.at("none").code_hash == 0x5d91a63ed87277a7U);
  CHECK(kernels.at("many").code_hash == 0xa41675e5b895e069U);
  CHECK(kernels_of(test_cubin("device_2_sm90")).at("calls").code_hash == 0x83e5f25b866d66b9U);
}

TEST_CASE("one name, other code: another hash; the same code: the same hash") {
  const Kernels two = kernels_of(test_cubin("same_name_2_sm80"));
  const Kernels three = kernels_of(test_cubin("same_name_3_sm80"));
  const std::string name = "triton_poi_fused_mul_0";
  CHECK(two.at(name).parameters == three.at(name).parameters);
  CHECK(two.at(name).code_hash != three.at(name).code_hash);
  CHECK(two.at("the_same").code_hash == three.at("the_same").code_hash);
}

TEST_CASE("code that a kernel calls is part of its hash") {
  const Kernels two = kernels_of(test_cubin("device_2_sm90"));
  const Kernels three = kernels_of(test_cubin("device_3_sm90"));
  CHECK(two.at("calls").code_hash != three.at("calls").code_hash);  // its own text is the same
  CHECK(two.at("launches_child").code_hash == three.at("launches_child").code_hash);
}

TEST_CASE("kernels that launch work themselves are told") {
  const Kernels kernels = kernels_of(test_cubin("device_2_sm90"));
  CHECK(kernels.at("launches_child").launches_kernels);
  CHECK_FALSE(kernels.at("launches_child").launches_graphs);
  CHECK(kernels.at("launches_graph").launches_graphs);
  CHECK_FALSE(kernels.at("launches_graph").launches_kernels);
  for (const char* name : {"calls", "_Z5childPf"}) {
    CHECK_FALSE(kernels.at(name).launches_kernels);
    CHECK_FALSE(kernels.at(name).launches_graphs);
  }
}

TEST_CASE("instructions are known where every function that may run is") {
  const Kernels kernels = kernels_of(test_cubin("indirect_sm90"));
  CHECK_FALSE(kernels.at("by_table").instructions.known);
  CHECK_FALSE(kernels.at("by_argument").instructions.known);
  const InstructionMix& named = kernels.at("by_name").instructions;
  CHECK(named.known);
  // Of the function it calls: a half product, and the way back to float.
  CHECK(named[SassOperation::kHmul].all + named[SassOperation::kHfma].one == 1);
  CHECK(named[SassOperation::kHadd] == InstructionCounts{1, 0, 0});
}

TEST_CASE("code of architectures whose encoding is not known is not read") {
  Bytes image = test_cubin("moves_sm90");
  const InstructionMix known = kernels_of(image).at("sgemm").instructions;
  CHECK(known[SassOperation::kFfma] == InstructionCounts{0, 0, 16});
  CHECK(known[SassOperation::kHfma] == InstructionCounts{1, 0, 0});
  const uint32_t flags = at<uint32_t>(image, 48);
  for (const uint32_t capability : {60U, 70U, 122U, 255U}) {
    at<uint32_t>(image, 48) = (flags & ~0xff00U) | capability << 8;
    CHECK_FALSE(kernels_of(image).at("sgemm").instructions.known);
  }
}

TEST_CASE("a layout that contradicts itself is no layout; the code counts all the same") {
  const Bytes good = test_cubin("parameters_sm75");
  const uint64_t code = kernels_of(good).at("pointers").code_hash;
  const std::string name = ".nv.info.pointers";
  // Records: 0x36, 0x37 (8 bytes each), 0x0a (12), 0x19 (4), then three of 0x17 (16 bytes each).
  const size_t records = contents_of(const_cast<Bytes&>(good), name) + 32;
  REQUIRE(good[records + 1] == 0x17);
  const auto broken = [&](auto change) {
    Bytes image = good;
    change(image);
    const Kernels kernels = kernels_of(image);
    CHECK(kernels.at("pointers").code_hash == code);
    CHECK(kernels.at("none").parameters_known);
    return !kernels.at("pointers").parameters_known && kernels.at("pointers").parameters.empty();
  };
  CHECK(broken([&](Bytes& i) { at<uint16_t>(i, records + 8) = 1; }));     // an ordinal twice
  CHECK(broken([&](Bytes& i) { at<uint16_t>(i, records + 8) = 4000; }));  // ordinals missing
  CHECK(broken([&](Bytes& i) { at<uint16_t>(i, records + 8) = 0xffff; }));
  CHECK(broken([&](Bytes& i) { at<uint16_t>(i, records + 10) = 4; }));           // overlapping
  CHECK(broken([&](Bytes& i) { at<uint32_t>(i, records + 12) = 0xfffff000; }));  // too large
  CHECK(broken([&](Bytes& i) { at<uint32_t>(i, records + 12) = 0; }));           // of no size
  CHECK(broken([&](Bytes& i) { at<uint16_t>(i, records + 2) = 8; }));            // a short record
  CHECK(broken([&](Bytes& i) { at<uint16_t>(i, records - 2) = 24; }));           // another end
  CHECK(broken([&](Bytes& i) {  // the section ends inside a record
    at<uint64_t>(i, section_header(i, name) + 32) -= 30;
  }));
}

TEST_CASE("what is no cubin is refused; sections outside the file are left out") {
  const Bytes good = test_cubin("parameters_sm75");
  const auto refused = [&](auto change) {
    Bytes image = good;
    change(image);
    return !read_cubin(image, [](const CubinFunction&) {});
  };
  CHECK(refused([](Bytes& i) { i.clear(); }));
  CHECK(refused([](Bytes& i) { i.resize(63); }));
  CHECK(refused([](Bytes& i) { i[18] = 62; }));                        // x86-64
  CHECK(refused([](Bytes& i) { i[4] = 1; }));                          // 32 bits
  CHECK(refused([](Bytes& i) { at<uint64_t>(i, 40) = UINT64_MAX; }));  // section table
  CHECK(refused([](Bytes& i) { at<uint16_t>(i, 60) = 0xfff0; }));      // its length
  CHECK(refused([](Bytes& i) { at<uint16_t>(i, 62) = 0xfff0; }));      // its names
  Bytes image = good;
  const size_t text = section_header(image, ".text.many");
  at<uint64_t>(image, text + 32) = UINT64_MAX;
  CHECK(kernels_of(image).count("many") == 0);
  CHECK(kernels_of(image).count("none") == 1);
}

TEST_CASE("a huge image is hashed within bounds") {
  Bytes image = test_cubin("parameters_sm75");
  const size_t text = section_header(image, ".text.many");
  const size_t start = image.size(), size = 2 * kMaxHashedBytes;
  image.resize(start + size, 7);
  at<uint64_t>(image, text + 24) = start;
  at<uint64_t>(image, text + 32) = size;
  const CubinFunction plain = kernels_of(image).at("many");
  CHECK(plain.code_cut);
  CHECK_FALSE(kernels_of(image).at("none").code_cut);
  for (const size_t changed : {start, start + size - 1}) {
    Bytes other = image;
    other[changed] ^= 1;
    CHECK(kernels_of(other).at("many").code_hash != plain.code_hash);
  }
  at<uint64_t>(image, text + 32) = size - 128;  // the same ends, another size
  CHECK(kernels_of(image).at("many").code_hash != plain.code_hash);
}

TEST_CASE("what this machine's compiler makes is read alike", "[nvcc]") {
  const char* const nvcc = "/usr/local/cuda/bin/nvcc";
  // The cubins above stand for it.
  if (test::kSanitized || !std::filesystem::exists(nvcc)) return;
  const std::filesystem::path out = std::filesystem::temp_directory_path() /
                                    ("cubin_test_" + std::to_string(std::rand()) + ".cubin");
  const auto compile = [&](const std::string& source, const std::string& arch) {
    output_of(std::string(nvcc) + " -cubin -arch=" + arch + " -o " + out.string() + " " +
              FLOPINJ_TEST_CUBINS + "/" + source);
    const Bytes image = read_file(out);
    std::filesystem::remove(out);
    return kernels_of(image);
  };
  const std::string archs = output_of(std::string(nvcc) + " --list-gpu-code");
  for (const char* arch : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}) {
    if (archs.find(std::string(arch) + "\n") == std::string::npos) continue;
    INFO(arch);
    check_parameters(compile("parameters.cu", arch));
    check_large(compile("large.cu", arch));
  }
}
