// Streams under capture, as the calls of the program begin and end them.
#include <injector/counters/access/captures.h>
#include <injector/process/process.h>

#include "catch.h"

using flopinj::CallFrame;
using flopinj::Captures;
using flopinj::monotonic_ns;

namespace {

const CUcontext kContext = reinterpret_cast<CUcontext>(uintptr_t{0x1000});
CUstream stream(uintptr_t number) { return reinterpret_cast<CUstream>(number << 8); }

bool begin(Captures& captures, CUstream of) {
  CallFrame frame;
  captures.beginning(frame);
  return captures.begun(frame, kContext, of);
}

}  // namespace

TEST_CASE("a capture counts from the ENTER of the call that begins it") {
  Captures captures;
  CallFrame frame;
  captures.beginning(frame);
  CHECK(captures.any());
  frame.lower();  // the call failed
  CHECK_FALSE(captures.any());
}

TEST_CASE("a capture ends with its end, its stream, or its context") {
  Captures captures;
  for (int way = 0; way < 3; ++way) {
    REQUIRE(begin(captures, stream(1)));
    REQUIRE(begin(captures, stream(2)));
    CHECK(captures.known());
    if (way == 0) captures.ended(kContext, stream(1));
    if (way == 1) captures.stream_destroying(stream(1));
    if (way == 2) captures.context_destroying(kContext);
    CHECK(captures.any() == (way != 2));
    captures.ended(kContext, stream(2));
    CHECK_FALSE(captures.any());
  }
}

TEST_CASE("a thread's own stream is another thread's no more than its capture is") {
  Captures captures;
  REQUIRE(begin(captures, CU_STREAM_PER_THREAD));
  std::thread([&] { captures.ended(kContext, CU_STREAM_PER_THREAD); }).join();
  CHECK(captures.any());
  captures.ended(kContext, CU_STREAM_PER_THREAD);
  CHECK_FALSE(captures.any());
}

TEST_CASE("captures without room are taken to go on for good") {
  Captures captures;
  uintptr_t begun = 0;
  while (begun < 300 && begin(captures, stream(begun + 1))) ++begun;
  CHECK(begun == 256);
  for (uintptr_t i = 1; i <= 300; ++i) captures.ended(kContext, stream(i));
  CHECK(captures.any());
}

TEST_CASE("after a late start captures may be there that were not seen") {
  Captures captures(true);
  CHECK(captures.any());
  CHECK_FALSE(captures.known());
  CHECK_FALSE(captures.asks_first());
  captures.seen(true);
  CHECK(captures.any());
}

TEST_CASE("a program that starts the recording itself is believed at its first launch") {
  const bool capturing = GENERATE(false, true);
  Captures captures(true, true);
  CHECK(captures.any());
  CHECK(captures.asks_first());
  CHECK_FALSE(captures.asks_first());
  const uint64_t began = monotonic_ns();
  captures.seen(capturing);
  CHECK(captures.any() == capturing);
  // One that was there may go on for two seconds without a launch in it.
  captures.seen(false);
  const bool any = captures.any();
  if (monotonic_ns() - began < 2'000'000'000) CHECK(any == capturing);
}
