// The expected hashes come from the xxhash package for Python (4.1), given the canonical bytes that
// fingerprint.h defines: "pointer\0" for a pointer, little-endian values else, no padding.
#include <collector/identity/fingerprint.h>

#include <array>
#include <cstring>
#include <memory>
#include <numeric>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr uint64_t kAddress = 0x7f12'3456'7800;

// gemm(const float* a, const float* b, float* c, int m, int n, int k, float alpha)
FunctionInfo gemm() {
  FunctionInfo f;
  f.name = "_Z4gemmPKfS0_Pfiiif";
  f.parameters = {{0, 8}, {8, 8}, {16, 8}, {24, 4}, {28, 4}, {32, 4}, {36, 4}};
  f.parameters_known = true;
  return f;
}
struct GemmArguments {
  uint64_t a = kAddress, b = kAddress + 4096, c = kAddress + 8192;
  int32_t m = 32, n = 48, k = 64;
  float alpha = 1.0F;
};
static_assert(sizeof(GemmArguments) == 40);

uint64_t packed(const FunctionInfo& f, const void* bytes, size_t size) {
  return fingerprint_of(f, {nullptr, bytes, size});
}
uint64_t by_pointers(const GemmArguments& g) {
  const void* const p[] = {&g.a, &g.b, &g.c, &g.m, &g.n, &g.k, &g.alpha};
  return fingerprint_of(gemm(), {p, nullptr, 0});
}

}  // namespace

TEST_CASE("fingerprint: a matrix product's K separates launches, its buffers do not") {
  GemmArguments g;
  CHECK(by_pointers(g) == 0x89fb879ca2f23bd7);
  GemmArguments elsewhere = g;
  elsewhere.a += 1U << 30;
  elsewhere.c = 0x3'0200'0000;  // a low address, as some allocators give
  CHECK(by_pointers(elsewhere) == by_pointers(g));
  GemmArguments longer = g;
  longer.k = 128;
  CHECK(by_pointers(longer) == 0x64b58d16f92e1bb8);
}

TEST_CASE("fingerprint: an absent optional argument is a different call") {
  GemmArguments g;
  g.c = 0;
  CHECK(by_pointers(g) == 0xbb2666d9c1b5f7ea);
}

TEST_CASE("fingerprint: both of CUDA's parameter forms give the same") {
  const GemmArguments g;
  CHECK(packed(gemm(), &g, sizeof g) == by_pointers(g));
}

TEST_CASE("fingerprint: padding between parameters is not read") {
  FunctionInfo f;
  f.parameters = {{0, 1}, {8, 8}, {16, 2}};
  f.parameters_known = true;
  unsigned char bytes[18] = {};
  const uint64_t clean = packed(f, bytes, sizeof bytes);
  std::memset(bytes + 1, 0xee, 7);
  CHECK(packed(f, bytes, sizeof bytes) == clean);
  bytes[17] = 1;
  CHECK(packed(f, bytes, sizeof bytes) != clean);
}

TEST_CASE("fingerprint: a structure by value keeps its sizes and loses its pointers") {
  struct Params {
    uint64_t data;
    int32_t m, n, k, pad;
  };
  FunctionInfo f;
  f.parameters = {{8, sizeof(Params)}};
  f.parameters_known = true;
  const Params p{kAddress, 4096, 11008, 512, 0};
  const void* const values[] = {&p};
  const auto of = [&](const Params& q) {
    const void* const v[] = {&q};
    return fingerprint_of(f, {v, nullptr, 0});
  };
  CHECK(fingerprint_of(f, {values, nullptr, 0}) == 0x564465b66507d423);
  Params moved = p, other = p;
  moved.data += 256;
  other.n = 4096;
  CHECK(of(moved) == of(p));
  CHECK(of(other) != of(p));
}

// A map of 32,768 tokens of 4,096 values: its two sizes less 1 together look like a pointer.
TEST_CASE("fingerprint: a tensor map keeps its sizes and loses its address") {
  FunctionInfo f;
  f.parameters = {{0, 128}, {128, 128}};
  f.parameters_known = true;
  using Map = std::array<uint64_t, 16>;
  const Map map{kAddress, 0x0100'2031, 512, 0, uint64_t{32'767} << 32 | 4095, 0, 0x3f3f};
  const Map other{kAddress, 0x0100'2031, 1024, 0, uint64_t{1023} << 32 | 8191, 0, 0x3f3f};
  REQUIRE(looks_like_pointer(map[4]));
  const auto of = [&](const Map& a, const Map& b) {
    alignas(64) const Map both[2] = {a, b};
    const void* const values[] = {&both[0], &both[1]};
    const uint64_t hash = fingerprint_of(f, {values, nullptr, 0});
    CHECK(packed(f, both, sizeof both) == hash);
    return hash;
  };
  const auto with = [](Map m, size_t word, uint64_t value) {
    m[word] = value;
    return m;
  };
  const uint64_t hash = of(map, other);
  CHECK(hash == 0x59dd602efe16eff9);
  CHECK(of(with(map, 0, kAddress + 4096), other) == hash);
  CHECK(of(with(map, 1, 0x0100'2031 | 1U << 21), other) == hash);
  CHECK(of(with(map, 1, 0x0100'2032), other) != hash);
  CHECK(of(with(map, 4, uint64_t{32'767} << 32 | 8191), other) != hash);
  CHECK(of(map, with(other, 4, uint64_t{32'600} << 32 | 8191)) != of(map, other));

  // Sixteen buffers are none.
  Map buffers{};
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i] = kAddress + i * 256;
  const uint64_t buffers_hash = of(buffers, other);
  for (size_t i = 0; i < buffers.size(); ++i)
    CHECK(of(with(buffers, i, kAddress + (1U << 20)), other) == buffers_hash);
}

TEST_CASE("fingerprint: which words are taken for pointers") {
  CHECK(looks_like_pointer(0x7fff'ffff'fff8));
  CHECK(looks_like_pointer(0x7f00'0000'0200));  // high half of mapped memory: any low half
  CHECK(looks_like_pointer(0x5555'5678'0000));
  CHECK(looks_like_pointer(0x1'0100'0000));
  CHECK_FALSE(looks_like_pointer(0));
  CHECK_FALSE(looks_like_pointer(0xffff'ffff));                   // below 4 GiB
  CHECK_FALSE(looks_like_pointer(0x8000'0000'0000));              // not a user-space address
  CHECK_FALSE(looks_like_pointer(0xffff'ffff'ffff'ffff));         // -1
  CHECK_FALSE(looks_like_pointer(0x3ff0'0000'0000'0000));         // 1.0
  CHECK_FALSE(looks_like_pointer(uint64_t{1024} << 32 | 4096));   // int{4096}, int{1024}
  CHECK_FALSE(looks_like_pointer(uint64_t{32000} << 32 | 8192));  // tokens, vocabulary
}

TEST_CASE("fingerprint: parameters that are not aligned hold no pointers") {
  FunctionInfo f;
  f.parameters = {{4, 12}};
  f.parameters_known = true;
  unsigned char a[16] = {}, b[16] = {};
  const uint64_t one = kAddress, two = kAddress + 256;
  std::memcpy(a + 4, &one, 8);
  std::memcpy(b + 4, &two, 8);
  CHECK(packed(f, a, sizeof a) != packed(f, b, sizeof b));
}

TEST_CASE("fingerprint: every size, never a byte past it") {
  for (size_t size = 1; size <= 700; ++size) {
    // Exactly as large as it is read: the address sanitizer sees one byte more.
    const auto bytes = std::make_unique<unsigned char[]>(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i + 1);
    const uint64_t before = fingerprint_of_bytes(bytes.get(), size);
    CHECK(fingerprint_of_bytes(bytes.get(), size) == before);
    bytes[size - 1] ^= 1;
    CHECK(fingerprint_of_bytes(bytes.get(), size) != before);
  }
  const unsigned char seven[] = {1, 2, 3, 4, 5, 6, 7};
  CHECK(fingerprint_of_bytes(seven, sizeof seven) == 0x23dad96362ed7fbe);
}

TEST_CASE("fingerprint: long parameters hash as one stream") {
  uint64_t words[1000];
  std::iota(std::begin(words), std::end(words), uint64_t{0});
  CHECK(fingerprint_of_bytes(words, sizeof words) == 0x29462356e2d9061a);

  // In pieces that do not line up with any buffer.
  unsigned char bytes[4094];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<unsigned char>(i * 7 % 251);
  FunctionInfo f;
  f.parameters_known = true;
  for (uint32_t at = 0, size = 1; at < sizeof bytes; at += size, size = size % 7 + 1)
    f.parameters.push_back({at, std::min(size, static_cast<uint32_t>(sizeof bytes) - at)});
  CHECK(packed(f, bytes, sizeof bytes) == 0x504b64bcb3fe7092);
}

TEST_CASE("fingerprint: a packed buffer shorter than the layout is read to its end") {
  const GemmArguments g;
  const uint64_t whole = packed(gemm(), &g, sizeof g);
  for (const size_t size : {size_t{0}, size_t{3}, size_t{12}, size_t{26}, size_t{39}}) {
    const auto part = std::make_unique<unsigned char[]>(size);
    std::memcpy(part.get(), &g, size);
    CHECK(packed(gemm(), part.get(), size) != whole);
  }
}

TEST_CASE("fingerprint: nothing known is zero") {
  const GemmArguments g;
  FunctionInfo unknown = gemm();
  unknown.parameters_known = false;
  CHECK(packed(unknown, &g, sizeof g) == 0);
  CHECK(fingerprint_of(gemm(), {}) == 0);
  FunctionInfo none;
  none.parameters_known = true;
  CHECK(packed(none, &g, sizeof g) == 0);
  CHECK(fingerprint_of_bytes(nullptr, 8) == 0);
  CHECK(fingerprint_of_bytes(&g, 0) == 0);
  const void* const broken[] = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  CHECK(fingerprint_of(gemm(), {broken, nullptr, 0}) == 0);
}

TEST_CASE("fingerprint: runs of parameters read alike give what each alone would") {
  // Words, four bytes, other sizes, words at odd places, and words again.
  const FunctionInfo f = [] {
    FunctionInfo info;
    info.parameters = {{0, 8},  {8, 8},   {16, 4}, {20, 4}, {24, 4}, {28, 8},
                       {36, 1}, {40, 16}, {56, 2}, {64, 8}, {72, 4}};
    info.parameters_known = true;
    return info;
  }();
  unsigned char bytes[76];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<unsigned char>(i * 11 % 251);
  const uint64_t address = kAddress;
  for (const size_t at : {size_t{8}, size_t{28}, size_t{48}, size_t{64}})
    std::memcpy(bytes + at, &address, 8);
  const void* from[11];
  for (size_t i = 0; i < 11; ++i) from[i] = bytes + f.parameters[i].offset;
  CHECK(fingerprint_of(f, {from, nullptr, 0}) == packed(f, bytes, sizeof bytes));
}

TEST_CASE("fingerprint: a layout past CUDA's limit is cut there") {
  FunctionInfo f;
  f.parameters = {{0, 40'000}};
  f.parameters_known = true;
  const auto bytes = std::make_unique<unsigned char[]>(kMaxParameterBytes);
  CHECK(packed(f, bytes.get(), 40'000) == fingerprint_of_bytes(bytes.get(), kMaxParameterBytes));
}
