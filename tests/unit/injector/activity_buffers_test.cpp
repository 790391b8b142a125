#include <injector/activity_buffers.h>

#include <set>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr ActivityBuffers::Limits kSmall{.buffer_bytes = 4'096, .most_bytes = 16'384, .kept = 2};

}  // namespace

TEST_CASE("a CUPTI that can be refused gets no buffer past the bound") {
  ActivityBuffers buffers(kSmall, true);
  std::set<uint8_t*> held;
  for (int i = 0; i < 4; ++i) {
    const auto buffer = buffers.take();
    REQUIRE(buffer.data != nullptr);
    CHECK(buffer.bytes == 4'096);
    CHECK(reinterpret_cast<uintptr_t>(buffer.data) % 8 == 0);
    CHECK(held.insert(buffer.data).second);
  }
  CHECK(buffers.held_bytes() == 16'384);
  CHECK(buffers.shortages() == 0);
  CHECK(buffers.take().data == nullptr);
  CHECK(buffers.take().data == nullptr);
  CHECK(buffers.shortages() == 2);
  buffers.give_back(*held.begin());
  CHECK(buffers.take().data != nullptr);
}

// Null would crash it: nobody but the caller can make it stop asking.
TEST_CASE("a CUPTI that cannot be refused gets buffers past the bound, and the bound is known") {
  ActivityBuffers buffers(kSmall, false);
  std::vector<uint8_t*> held;
  for (int i = 0; i < 8; ++i) {
    CHECK(buffers.crowded() == (i >= 4));
    held.push_back(buffers.take().data);
    REQUIRE(held.back() != nullptr);
  }
  CHECK(buffers.shortages() == 4);
  while (held.size() > 2) {
    CHECK_FALSE(buffers.has_room());
    buffers.give_back(held.back());
    held.pop_back();
  }
  CHECK(buffers.has_room());
  CHECK_FALSE(buffers.crowded());
}

// Of 8 buffers' memory for 4: then the reserve, whose pieces do not overlap, then nothing.
TEST_CASE("even then there is an end, after a reserve of smaller buffers") {
  ActivityBuffers buffers(kSmall, false);
  std::set<uint8_t*> held;
  size_t small = 0;
  for (auto buffer = buffers.take(); buffer.data != nullptr; buffer = buffers.take()) {
    for (size_t i = 0; i < buffer.bytes; ++i) buffer.data[i] = 0xAB;  // the sanitizer looks on
    CHECK(held.insert(buffer.data).second);
    small += buffer.bytes != kSmall.buffer_bytes ? 1 : 0;
    REQUIRE(held.size() < 100);
  }
  CHECK(small == 4);
  CHECK(held.size() == 8 + 4);
  for (uint8_t* const data : held) buffers.give_back(data);
  CHECK(buffers.held_bytes() == 0);
  CHECK(buffers.take().bytes == kSmall.buffer_bytes);
}

TEST_CASE("a buffer that was not given out is left alone") {
  ActivityBuffers buffers(kSmall, true);
  uint8_t other[8];
  buffers.give_back(other);
  CHECK(buffers.held_bytes() == 0);
  CHECK(buffers.take().data != other);
}
