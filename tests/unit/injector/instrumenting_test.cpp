#include <injector/counters/windows/instrumenting.h>

#include "catch.h"

using namespace flopinj;

namespace {
LaunchShape block(uint32_t x, uint32_t y = 1) {
  LaunchShape shape;
  shape.block = {x, y, 1};
  return shape;
}
}  // namespace

// 65,536 registers in all: with 64 more for each thread, and no thread with more than 255.
TEST_CASE("launches are instrumented where every thread of a block finds 64 registers more") {
  CHECK(fits_instrumented(64, block(512)));          // 128 each
  CHECK_FALSE(fits_instrumented(65, block(512)));    // 129, given out as 136
  CHECK(fits_instrumented(56, block(32, 16)));       // the shape does not matter
  CHECK_FALSE(fits_instrumented(16, block(1'024)));  // 64 each is all there is
  CHECK(fits_instrumented(255, block(256)));         // 255 is the most that a thread has
  CHECK_FALSE(fits_instrumented(255, block(257)));
  CHECK(fits_instrumented(32, block(640)));        // 96 * 640
  CHECK_FALSE(fits_instrumented(40, block(640)));  // 104 * 640
}

// A kernel that has 255 of them runs in blocks of at most 256 threads.
TEST_CASE("where registers or the block are not known a launch is instrumented if it fits anyway") {
  CHECK(fits_instrumented(0, block(256)));
  CHECK_FALSE(fits_instrumented(0, block(257)));
  CHECK_FALSE(fits_instrumented(0, block(1'024)));
  CHECK_FALSE(fits_instrumented(32, block(0, 0)));
}

TEST_CASE("where it was shown to work, launches without room and kernels that hand registers on") {
  KernelFunction function;
  Signature signature;
  signature.function = &function;
  signature.shape = block(384);
  auto& registers = function.info.registers_per_thread;
  registers = 168;
  CHECK_FALSE(fits_instrumented(signature, {}));
  CHECK(fits_instrumented(signature, {.without_room = true}));
  function.info.instructions.moves_registers = true;
  CHECK_FALSE(fits_instrumented(signature, {.without_room = true}));
  CHECK(fits_instrumented(signature, {.handed_on = true}));
  registers = 32;
  CHECK_FALSE(fits_instrumented(signature, {}));  // room or not
}

// Whether its warps hand registers to others is not known either.
TEST_CASE("a kernel whose registers are not known is never taken for one that was shown to work") {
  KernelFunction function;
  Signature signature;
  signature.function = &function;
  signature.shape = block(384);
  CHECK_FALSE(fits_instrumented(signature, {.without_room = true, .handed_on = true}));
}
