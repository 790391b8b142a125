#include <injector/activity/activity_buffers.h>

#include <set>
#include <vector>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr ActivityBuffers::Limits kSmall{.buffer_bytes = 4'096, .most_bytes = 16'384, .kept = 2};

// What CUPTI holds at the end is CUPTI's: a CUPTI that ends in order gives every buffer back.
struct Held {
  ActivityBuffers& buffers;
  std::vector<uint8_t*> data;
  explicit Held(ActivityBuffers& of) : buffers(of) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    while (!data.empty()) give_back();
  }
  ActivityBuffers::Buffer take() {
    const ActivityBuffers::Buffer buffer = buffers.take();
    if (buffer.data != nullptr) data.push_back(buffer.data);
    return buffer;
  }
  void give_back() {
    buffers.give_back(data.back());
    data.pop_back();
  }
  size_t different() const { return std::set<uint8_t*>(data.begin(), data.end()).size(); }
};

}  // namespace

TEST_CASE("a CUPTI that can be refused gets no buffer past the bound") {
  ActivityBuffers buffers(kSmall, true);
  Held held(buffers);
  for (int i = 0; i < 4; ++i) {
    const auto buffer = held.take();
    REQUIRE(buffer.data != nullptr);
    CHECK(buffer.bytes == 4'096);
    CHECK(reinterpret_cast<uintptr_t>(buffer.data) % 8 == 0);
  }
  CHECK(held.different() == 4);
  CHECK(buffers.held_bytes() == 16'384);
  CHECK(buffers.shortages() == 0);
  CHECK(held.take().data == nullptr);
  CHECK(held.take().data == nullptr);
  CHECK(buffers.shortages() == 2);
  held.give_back();
  CHECK(held.take().data != nullptr);
}

// Null would crash it: nobody but the caller can make it stop asking.
TEST_CASE("a CUPTI that cannot be refused gets buffers past the bound, and the bound is known") {
  ActivityBuffers buffers(kSmall, false);
  Held held(buffers);
  for (int i = 0; i < 8; ++i) {
    CHECK(buffers.crowded() == (i >= 4));
    REQUIRE(held.take().data != nullptr);
  }
  CHECK(buffers.shortages() == 4);
  while (held.data.size() > 2) {
    CHECK_FALSE(buffers.has_room());
    held.give_back();
  }
  CHECK(buffers.has_room());
  CHECK_FALSE(buffers.crowded());
}

// Of 8 buffers' memory for 4: then the reserve, whose pieces do not overlap, then nothing.
TEST_CASE("even then there is an end, after a reserve of smaller buffers") {
  ActivityBuffers buffers(kSmall, false);
  Held held(buffers);
  size_t small = 0;
  for (auto buffer = held.take(); buffer.data != nullptr; buffer = held.take()) {
    for (size_t i = 0; i < buffer.bytes; ++i) buffer.data[i] = 0xAB;  // the sanitizer looks on
    small += buffer.bytes != kSmall.buffer_bytes ? 1 : 0;
    REQUIRE(held.data.size() < 100);
  }
  CHECK(small == 4);
  CHECK(held.data.size() == 8 + 4);
  CHECK(held.different() == 8 + 4);
  while (!held.data.empty()) held.give_back();
  CHECK(buffers.held_bytes() == 0);
  CHECK(held.take().bytes == kSmall.buffer_bytes);
}

TEST_CASE("a buffer that was not given out is left alone") {
  ActivityBuffers buffers(kSmall, true);
  uint8_t other[8];
  buffers.give_back(other);
  CHECK(buffers.held_bytes() == 0);
  Held held(buffers);
  CHECK(held.take().data != other);
}
