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

// CUPTI may write into them at any later time, and read what it has written. Three recordings, in
// each of which CUPTI gives nothing back.
TEST_CASE("what CUPTI holds when it has ended stays mapped, and the next recording has its room") {
  ActivityBuffers buffers(kSmall, true);
  Held held(buffers);
  for (size_t recording = 1; recording <= 3; ++recording) {
    for (int i = 0; i < 4; ++i) REQUIRE(held.take().data != nullptr);
    CHECK(held.take().data == nullptr);
    const std::vector<uint8_t*> last(held.data.end() - 4, held.data.end());
    for (uint8_t* const data : last) data[17] = 0xAB;
    buffers.recording_ended(true);
    CHECK(buffers.held_bytes() == 0);
    CHECK(buffers.left() == 4 * recording);
    CHECK(held.different() == 4 * recording);
    for (uint8_t* const data : last) {
      CHECK(buffers.left_behind(data));
      CHECK(data[17] == 0);  // its page is gone
      data[18] = 0xCD;
      CHECK(data[18] == 0xCD);
    }
  }
  while (!held.data.empty()) held.give_back();
  CHECK(buffers.left() == 0);
  CHECK(held.take().data != nullptr);
}

// It may be the buffer that CUPTI goes on with: it counts, and what comes in it is read. One that
// does not come back in the next recording either never does.
TEST_CASE("where CUPTI goes on, a buffer is left behind when a second recording has ended") {
  ActivityBuffers buffers(kSmall, true);
  Held held(buffers);
  uint8_t* const first = held.take().data;
  buffers.recording_ended(false);
  CHECK_FALSE(buffers.left_behind(first));
  CHECK(buffers.held_bytes() == kSmall.buffer_bytes);
  uint8_t* const second = held.take().data;
  buffers.recording_ended(false);
  CHECK(buffers.left_behind(first));
  CHECK_FALSE(buffers.left_behind(second));
  CHECK(buffers.held_bytes() == kSmall.buffer_bytes);
}

TEST_CASE("buffers that CUPTI was asked for and holds are known from those it was given since") {
  ActivityBuffers buffers(kSmall, true);
  Held held(buffers);
  for (int i = 0; i < 2; ++i) REQUIRE(held.take().data != nullptr);
  const uint64_t asked = buffers.taken();
  REQUIRE(held.take().data != nullptr);
  CHECK(buffers.held_of(asked) == 2);
  held.give_back();
  held.give_back();
  CHECK(buffers.held_of(asked) == 1);
  buffers.recording_ended(false);
  CHECK(buffers.held_of(asked) == 0);
}

TEST_CASE("buffers left behind have a bound, past which they count as held") {
  ActivityBuffers::Limits limits = kSmall;
  limits.most_left = 6;
  ActivityBuffers buffers(limits, true);
  Held held(buffers);
  for (int i = 0; i < 4; ++i) REQUIRE(held.take().data != nullptr);
  buffers.recording_ended(true);
  for (int i = 0; i < 4; ++i) REQUIRE(held.take().data != nullptr);
  buffers.recording_ended(true);
  CHECK(buffers.left() == 6);
  CHECK(buffers.held_bytes() == 2 * kSmall.buffer_bytes);
  for (int i = 0; i < 2; ++i) CHECK(held.take().data != nullptr);
  CHECK(held.take().data == nullptr);
  CHECK(held.different() == 10);
}

// As docs/safety.md says. Nothing is written into them here, so they are addresses only.
TEST_CASE("CUPTI holds 256 MiB at a time, and 16,384 buffers stay behind") {
  ActivityBuffers::Limits limits;
  CHECK(limits.buffer_bytes == size_t{1} << 20);
  {
    ActivityBuffers buffers(limits, true);
    Held held(buffers);
    while (held.take().data != nullptr) REQUIRE(held.data.size() <= 256);
    CHECK(buffers.held_bytes() == size_t{256} << 20);
  }
  limits.buffer_bytes = 4'096;
  limits.most_bytes = 256 * limits.buffer_bytes;
  ActivityBuffers buffers(limits, true);
  Held held(buffers);
  for (size_t behind = 0; behind < 16'384; behind += 256) {
    CHECK(buffers.left() == behind);
    while (held.take().data != nullptr) {
    }
    buffers.recording_ended(true);
  }
  CHECK(held.take().data != nullptr);
  const uint64_t before = buffers.shortages();
  while (held.take().data != nullptr) {
  }
  CHECK(buffers.shortages() == before + 1);
  buffers.recording_ended(true);
  CHECK(buffers.left() == 16'384);
  CHECK(held.take().data == nullptr);  // times are missing from here on
}

TEST_CASE("a buffer that was not given out is left alone") {
  ActivityBuffers buffers(kSmall, true);
  uint8_t other[8];
  buffers.give_back(other);
  CHECK(buffers.held_bytes() == 0);
  Held held(buffers);
  CHECK(held.take().data != other);
}
