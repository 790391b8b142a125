// The launch path of a known signature allocates nothing: this program counts every allocation.
#include <collector/fingerprint.h>
#include <collector/thread_state.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "catch.h"

namespace {

std::atomic<uint64_t> allocations{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

void* operator new(std::size_t size) {
  if (void* p = counted(size)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new(std::size_t size, std::align_val_t align) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto a = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(a, (size + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

using namespace flopinj;

namespace {

struct Program {
  RangePathTable paths;
  ProcessRanges process{paths};
  SignatureTable table;
  ThreadState thread{ThreadId{1}, 100, paths, process};
  const KernelFunction* function = nullptr;
  LaunchShape shape;
  uint64_t arguments[16] = {};  // 128 bytes
  const void* pointers[16] = {};

  Program() {
    FunctionInfo info;
    info.name = "kernel";
    info.parameters_known = true;
    for (uint32_t i = 0; i < 16; ++i) {
      info.parameters.push_back({i * 8, 8});
      arguments[i] = i;
      pointers[i] = &arguments[i];
    }
    function = table.intern_function(info);
    thread.ring.allocate(64);
  }
  const Signature* launch() {
    const uint64_t fingerprint = fingerprint_of(function->info, {pointers, nullptr, 0});
    const Signature* s = thread.signatures.find(*function, shape, fingerprint);
    if (s == nullptr) {
      s = table.intern_signature(*function, shape, fingerprint, 0);
      thread.signatures.insert(*function, shape, fingerprint, s);
    }
    LaunchRecord record;
    record.signature = s->id;
    record.path = thread.ranges.path();
    record.sequence_plus_1 = thread.ranges.sequence_plus_1();
    thread.ring.push(record);
    bump(thread.launches[1].made);
    return s;
  }
  void step(uint32_t number) {
    const std::string names[] = {
        "forward", "a layer whose name does not fit in a small string",
        "aten::convolution, seq = " + std::to_string(number) + ", op_id = 7, sizes = [[64, 3]]"};
    const uint64_t before = allocations;
    for (const std::string& name : names) {
      thread.ranges.push({}, name);
      launch();
    }
    for (size_t i = 0; i < std::size(names); ++i) thread.ranges.pop({});
    seen = allocations - before;
  }
  uint64_t seen = 0;
};

}  // namespace

TEST_CASE("a known launch allocates nothing") {
  Program program;
  const uint64_t before = allocations;
  const Signature* first = program.launch();
  CHECK(allocations > before);  // the count works
  bool same = true;
  const uint64_t warm = allocations;
  for (int i = 0; i < 10'000; ++i) same &= program.launch() == first;
  const uint64_t after = allocations;
  CHECK(after == warm);
  CHECK(same);
  CHECK(program.thread.ring.dropped() != 0);  // a full ring neither
}

TEST_CASE("a step of known ranges and launches allocates nothing") {
  Program program;
  program.step(1);
  CHECK(program.seen > 0);
  uint64_t total = 0;
  for (uint32_t i = 2; i < 1'000; ++i) {
    program.step(i);
    total += program.seen;
  }
  CHECK(total == 0);
}

TEST_CASE("a thread that launches nothing is small") { CHECK(sizeof(ThreadState) <= 2'048); }
