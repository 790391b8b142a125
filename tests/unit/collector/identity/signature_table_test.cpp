#include <collector/identity/signature_table.h>

#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include "catch.h"

using namespace flopinj;

namespace {

FunctionInfo info(std::string name, uint32_t parameter_bytes = 8) {
  FunctionInfo f;
  f.name = std::move(name);
  f.parameters = {{0, parameter_bytes}};
  f.parameters_known = true;
  return f;
}
LaunchShape shape(uint32_t grid) {
  LaunchShape s;
  s.grid = {grid, 1, 1};
  s.block = {128, 1, 1};
  return s;
}

}  // namespace

TEST_CASE("stable hashes keep their values for ever") {
  // From the xxhash package for Python, over the bytes that signature_table.h defines.
  const std::string name = "_Z4gemmPKfS0_Pfiii";
  CHECK(stable_name_hash(name) == 0x3ad64a6a0a553a16);
  LaunchShape s;
  s.grid = {16, 8, 1};
  s.block = {256, 1, 1};
  s.dynamic_shared_bytes = 49'152;
  CHECK(stable_signature_hash(name, s, 0x0123'4567'89ab'cdef) == 0xeed36aadcb395503);
  CHECK(stable_signature_hash(name, s, 0x0123'4567'89ab'cdef, 0xfeed'face'1234'5678) ==
        0x867a17d6bb0850f6);
  s.cluster = {2, 1, 1};
  CHECK(stable_signature_hash(name, s, 0x0123'4567'89ab'cdef) == 0xc4581ce714b7de8b);
  CHECK(stable_signature_hash("", LaunchShape{}, 0) == 0x75617d8750059798);
  LaunchShape big;
  big.grid = {65'535, 3, 2};
  big.block = {1'024, 1, 1};
  big.dynamic_shared_bytes = 232'448;
  CHECK(stable_signature_hash("_ZN" + std::string(5'000, 'x'), big, ~uint64_t{0}) ==
        0xf2c86a71aba62520);
}

TEST_CASE("functions are told apart by name, layout and resources") {
  SignatureTable table;
  const KernelFunction* a = table.intern_function(info("a"));
  CHECK(a == table.intern_function(info("a")));
  CHECK(a != table.intern_function(info("b")));
  CHECK(a != table.intern_function(info("a", 4)));
  FunctionInfo unknown = info("a");
  unknown.parameters_known = false;
  CHECK(a != table.intern_function(unknown));
  FunctionInfo registers = info("a");
  registers.registers_per_thread = 255;
  CHECK(a != table.intern_function(registers));
  FunctionInfo code = info("a");
  code.code_hash = 0xfeed;
  const KernelFunction* const other = table.intern_function(code);
  CHECK(a != other);
  CHECK(table.intern_signature(*a, shape(1), 5, 0)->stable_hash !=
        table.intern_signature(*other, shape(1), 5, 0)->stable_hash);
  CHECK(a->id == FunctionId{1});
  CHECK(a->name_hash == stable_name_hash("a"));
  CHECK(table.functions_after(FunctionId{}).size() == 6);
  CHECK(table.functions_after(FunctionId{3}).size() == 3);
  CHECK(table.functions_after(FunctionId{6}).empty());
}

TEST_CASE("signatures differ in everything they are made of") {
  SignatureTable table;
  const KernelFunction& f = *table.intern_function(info("f"));
  const KernelFunction& g = *table.intern_function(info("g"));
  std::vector<LaunchShape> shapes{shape(1), shape(2)};
  for (const auto member : {&LaunchShape::grid, &LaunchShape::block, &LaunchShape::cluster}) {
    for (size_t axis = 0; axis < 3; ++axis) {
      LaunchShape s = shape(1);
      (s.*member)[axis] += 7;
      shapes.push_back(s);
    }
  }
  LaunchShape shared = shape(1);
  shared.dynamic_shared_bytes = 1'024;
  shapes.push_back(shared);

  std::set<const Signature*> all;
  std::set<uint64_t> hashes;
  for (const KernelFunction* function : {&f, &g})
    for (const LaunchShape& s : shapes)
      for (const uint64_t fingerprint : {uint64_t{1}, uint64_t{2}}) {
        const Signature* signature = table.intern_signature(*function, s, fingerprint, 0);
        REQUIRE(signature != nullptr);
        CHECK(signature == table.intern_signature(*function, s, fingerprint, 0));
        CHECK(signature->parameter_class == ParameterClass::kExact);
        CHECK(signature->stable_hash == stable_signature_hash(function->info.name, s, fingerprint));
        all.insert(signature);
        hashes.insert(signature->stable_hash);
      }
  CHECK(all.size() == 2 * shapes.size() * 2);
  CHECK(hashes.size() == all.size());
  CHECK(table.signatures_after(SignatureId{}).size() == all.size());
  uint32_t id = 0;
  for (const Signature* s : table.signatures_after(SignatureId{})) CHECK(s->id.value == ++id);
}

TEST_CASE("a function of unknown layout has one signature per shape, and says so") {
  SignatureTable table;
  FunctionInfo f = info("f");
  f.parameters.clear();
  f.parameters_known = false;
  const KernelFunction& function = *table.intern_function(f);
  const Signature* s = table.intern_signature(function, shape(1), 17, 0);
  CHECK(s->parameter_class == ParameterClass::kUnknown);
  CHECK(s->fingerprint == 0);
  CHECK(s == table.intern_signature(function, shape(1), 18, 0));
}

TEST_CASE("fingerprints that explode share one class that is marked") {
  SignatureTable table;
  const KernelFunction& f = *table.intern_function(info("f"));
  for (uint64_t fp = 1; fp <= kMaxFingerprintsPerShape; ++fp)
    CHECK(table.intern_signature(f, shape(1), fp, 0)->parameter_class == ParameterClass::kExact);
  const Signature* merged = table.intern_signature(f, shape(1), 1'000, 0b11);
  CHECK(merged->parameter_class == ParameterClass::kMerged);
  CHECK(merged->fingerprint == kMergedFingerprint);
  CHECK(merged->shape == shape(1));
  CHECK(merged->wanted_groups == 0b11);  // measured, as varying
  CHECK(merged == table.intern_signature(f, shape(1), 1'001, 0));
  // Those that were there first keep their own; another shape starts anew.
  CHECK(table.intern_signature(f, shape(1), 5, 0)->fingerprint == 5);
  CHECK(table.intern_signature(f, shape(2), 1'000, 0)->parameter_class == ParameterClass::kExact);
  CHECK(table.overflowed() == 0);
}

TEST_CASE("a full table answers with the function's overflow signature") {
  SignatureTable table;
  const KernelFunction& f = *table.intern_function(info("f"));
  const KernelFunction& g = *table.intern_function(info("g"));
  table.want_everywhere(1);
  for (uint32_t i = 0; i < kMaxSignatures; ++i)
    if (!table.intern_signature(f, shape(i + 1), 0, 0)) FAIL("no signature");
  CHECK(table.overflowed() == 0);
  const Signature* over = table.intern_signature(f, shape(kMaxSignatures + 1), 0, 0);
  REQUIRE(over != nullptr);
  CHECK(is_overflow(*over));
  CHECK(over->function == &f);
  CHECK(over->wanted_groups == 0);
  CHECK(over == table.intern_signature(f, shape(kMaxSignatures + 2), 3, 1));
  CHECK(over != table.intern_signature(g, shape(1), 0, 0));
  CHECK(table.overflowed() == 3);
  table.want_everywhere(2);
  CHECK(over->wanted_groups == 0);
  CHECK_FALSE(is_overflow(*table.intern_signature(f, shape(7), 0, 0)));  // known ones stay known
}

TEST_CASE("a full function table answers with nothing") {
  SignatureTable table;
  for (uint32_t i = 0; i < kMaxFunctions; ++i)
    if (!table.intern_function(info("f" + std::to_string(i)))) FAIL("no function");
  CHECK(table.intern_function(info("one more")) == nullptr);
  CHECK(table.intern_function(info("f77")) != nullptr);
  CHECK(table.overflowed() == 1);
}

TEST_CASE("collectives want nothing") {
  SignatureTable table;
  const KernelFunction& f = *table.intern_function(
      info("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"));
  CHECK(f.never_measure);
  const Signature* s = table.intern_signature(f, shape(1), 0, 0b1);
  CHECK(s->wanted_groups == 0);
  table.want_everywhere(0b10);
  CHECK(s->wanted_groups == 0);
}

TEST_CASE("plans reach signatures of before and after, and can be taken back") {
  SignatureTable table;
  const KernelFunction& f = *table.intern_function(info("f"));
  const Signature* before = table.intern_signature(f, shape(1), 0, 0);
  table.want_everywhere(0b110);
  const Signature* after = table.intern_signature(f, shape(2), 0, 0);
  CHECK(before->wanted_groups == 0b110);
  CHECK(after->wanted_groups == 0b110);
  table.want_nowhere(0b010);
  CHECK(before->wanted_groups == 0b100);
  CHECK(table.intern_signature(f, shape(3), 0, 0)->wanted_groups == 0b100);
}

TEST_CASE("threads that intern while a plan arrives agree, and none misses the plan") {
  SignatureTable table;
  constexpr uint32_t kThreads = 4, kShapes = 300;
  std::vector<std::vector<const Signature*>> seen(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&table, &mine = seen[t], t] {
      std::mt19937 random(t);
      for (uint32_t i = 0; i < kShapes; ++i) {
        const uint32_t k = (i * 7 + t * 13) % kShapes;  // each in its own order
        const auto* f = table.intern_function(info("f" + std::to_string(k % 10)));
        table.intern_signature(*f, shape(k + 1), random() % 3, 0);
        mine.push_back(table.intern_signature(*f, shape(k + 1), 99, 0));
      }
    });
  table.want_everywhere(0b101);
  for (std::thread& t : threads) t.join();
  for (uint32_t t = 1; t < kThreads; ++t)
    for (uint32_t i = 0; i < kShapes; ++i) {
      const uint32_t k = (i * 7 + t * 13) % kShapes;
      for (uint32_t j = 0; j < kShapes; ++j)
        if (j * 7 % kShapes == k && seen[0][j] != seen[t][i]) FAIL("two signatures for one key");
    }
  CHECK(table.functions_after(FunctionId{}).size() == 10);
  for (const Signature* s : table.signatures_after(SignatureId{}))
    if (s->wanted_groups != 0b101) FAIL("signature " << s->id.value << " missed the plan");
}
