// Work that waits, by streams. The driver is one that the test plays.
#include <injector/counters/access/waiting_streams.h>
#include <injector/process/process.h>

#include <functional>
#include <set>

#include "catch.h"

using flopinj::CallFrame;
using flopinj::CudaApi;
using flopinj::WaitingStreams;

namespace {

std::set<CUstream> g_busy;
uint32_t g_asked = 0;
std::function<void()> g_while_asked;

CUstream stream(uintptr_t number) { return reinterpret_cast<CUstream>(number << 8); }

CudaApi driver() {
  g_busy.clear();
  g_asked = 0;
  g_while_asked = {};
  CudaApi cuda;
  cuda.StreamQuery = [](CUstream s) {
    ++g_asked;
    const bool busy = g_busy.contains(s);
    if (g_while_asked) g_while_asked();
    return busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  return cuda;
}

}  // namespace

TEST_CASE("a call that makes work that waits counts as such work while it lasts") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  CallFrame frame;
  waiting.begin(frame);
  CHECK(waiting.any());
  CHECK(waiting.ask(cuda));
  frame.lower();
  CHECK_FALSE(waiting.any());
  CHECK(g_asked == 0);
}

TEST_CASE("work is unfinished as long as the driver says so of its stream") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  g_busy = {stream(1), CU_STREAM_LEGACY};
  CHECK(waiting.add(stream(1), false));
  CHECK(waiting.add(nullptr, false));
  CHECK(waiting.ask(cuda));
  g_busy.erase(stream(1));
  CHECK(waiting.ask(cuda));
  g_busy.clear();
  CHECK(waiting.any());  // nobody has asked
  CHECK_FALSE(waiting.ask(cuda));
  CHECK_FALSE(waiting.any());
  const uint32_t asked = g_asked;
  CHECK_FALSE(waiting.ask(cuda));  // nothing is left to ask about
  CHECK(g_asked == asked);
}

TEST_CASE("work that is added while the driver is asked is unfinished") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  CHECK(waiting.add(stream(1), false));
  const bool same = GENERATE(true, false);
  g_while_asked = [&] {
    g_while_asked = {};
    CHECK(waiting.add(stream(same ? 1 : 2), false));
  };
  CHECK(waiting.ask(cuda));  // and the answer was: it has ended
  CHECK(waiting.any());
  CHECK_FALSE(waiting.ask(cuda));
}

TEST_CASE("what the program has waited for is over, without a question") {
  WaitingStreams waiting;
  CHECK(waiting.add(stream(1), false));
  CHECK(waiting.add(stream(2), false));
  waiting.stream_ended(stream(1), false, waiting.added(), 1'000);
  CHECK(waiting.any());
  const uint64_t work = waiting.added();
  CHECK(waiting.add(stream(2), false));  // during the call
  waiting.stream_ended(stream(2), false, work, 1'000);
  CHECK(waiting.any());
  waiting.all_ended(work, 1'000);
  CHECK(waiting.any());
  CHECK_FALSE(waiting.come_and_go());
  waiting.all_ended(waiting.added(), 1'000);
  CHECK_FALSE(waiting.any());
  CHECK(waiting.come_and_go());
}

TEST_CASE("what nobody can ask for is over once the program has waited for all") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  const int why = GENERATE(0, 1, 2, 3);
  bool room = true;
  if (why == 0) {  // its stream is gone
    CHECK(waiting.add(stream(1), false));
    CHECK(waiting.holds(stream(1)));
    waiting.stream_destroying(stream(1));
    CHECK_FALSE(waiting.holds(stream(1)));
  } else if (why == 1) {  // in a thread's own stream
    CHECK(waiting.add(nullptr, true));
  } else if (why == 2) {
    CHECK(waiting.add(CU_STREAM_PER_THREAD, false));
  } else {  // in too many
    for (uintptr_t i = 1; i <= 300; ++i) room &= waiting.add(stream(i), false);
    CHECK_FALSE(room);
  }
  CHECK(waiting.ask(cuda));
  waiting.stream_ended(nullptr, true, waiting.added(), 1'000);  // of some thread
  CHECK(waiting.any());
  CHECK(waiting.may_wait_ns(flopinj::monotonic_ns()) == 0);
  CHECK_FALSE(waiting.may_ask(flopinj::monotonic_ns(), 0, true));
  waiting.all_ended(waiting.added(), 1'000);
  CHECK_FALSE(waiting.any());
}

TEST_CASE("launches have the driver asked for a thousandth of their time, calls for a hundredth") {
  constexpr uint64_t kMs = 1'000'000, kTook = 50'000;
  WaitingStreams waiting;
  CHECK(waiting.add(stream(1), false));
  uint64_t now = 1'000 * kMs, asked = 0;
  waiting.wanted(now);
  for (int i = 0; i < 1'000; ++i, now += kMs) {
    if (!waiting.may_ask(now, 0, false)) continue;
    waiting.was_asked(now, kTook, 0, true);
    ++asked;
  }
  CHECK(asked == 20);  // 1 ms in a second
  waiting.was_asked(now, kTook, kMs, true);
  CHECK(waiting.may_ask(now, 100 * kTook, false));
  CHECK_FALSE(waiting.may_ask(now, 99 * kTook, false));
  // Nobody wants a window any more; or counters are to be given back.
  now += 11'000 * kMs;
  CHECK_FALSE(waiting.may_ask(now, 1'000 * kMs, false));
  CHECK(waiting.may_ask(now, 1'000 * kMs, true));
}
