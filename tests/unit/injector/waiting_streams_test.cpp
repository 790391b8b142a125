// Work that waits, by streams. The driver is one that the test plays.
#include <injector/counters/access/waiting_streams.h>
#include <injector/process/process.h>

#include <chrono>
#include <set>
#include <thread>

#include "catch.h"

using flopinj::CallFrame;
using flopinj::CudaApi;
using flopinj::WaitingStreams;

namespace {

std::set<CUstream> g_busy;
std::set<CUevent> g_events;  // that were made and not destroyed
bool g_events_over = false;
uint32_t g_asked = 0;

CUstream stream(uintptr_t number) { return reinterpret_cast<CUstream>(number << 8); }

CudaApi driver() {
  g_busy.clear();
  g_events.clear();
  g_events_over = false;
  g_asked = 0;
  CudaApi cuda;
  cuda.CtxPushCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  cuda.CtxPopCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
  cuda.StreamQuery = [](CUstream s) {
    ++g_asked;
    return g_busy.contains(s) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  cuda.EventCreate = [](CUevent* made, unsigned) {
    *made = reinterpret_cast<CUevent>((g_events.size() + 1) << 8);
    return g_events.insert(*made), CUDA_SUCCESS;
  };
  cuda.EventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  cuda.EventQuery = [](CUevent) { return g_events_over ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; };
  cuda.EventDestroy = [](CUevent event) { return g_events.erase(event), CUDA_SUCCESS; };
  return cuda;
}

}  // namespace

TEST_CASE("a call that makes work that waits counts as such work while it lasts") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  CallFrame frame;
  waiting.begin(frame);
  CHECK(waiting.any());
  CHECK(waiting.unfinished(cuda));
  frame.lower();
  CHECK_FALSE(waiting.unfinished(cuda));
  CHECK(g_asked == 0);
}

TEST_CASE("work is unfinished as long as the driver says so of its stream") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  g_busy = {stream(1), stream(2)};
  CHECK(waiting.add(cuda, nullptr, stream(1), false));
  CHECK(waiting.add(cuda, nullptr, stream(2), false));
  CHECK(waiting.unfinished(cuda));
  g_busy.erase(stream(1));
  CHECK(waiting.unfinished(cuda));
  g_busy.clear();
  CHECK_FALSE(waiting.unfinished(cuda));
  const uint32_t asked = g_asked;
  CHECK_FALSE(waiting.unfinished(cuda));  // nothing is left to ask about
  CHECK(g_asked == asked);
}

TEST_CASE("a stream that goes, and a thread's own one, are followed by an event") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  g_busy = {stream(1)};
  CHECK(waiting.add(cuda, nullptr, stream(1), false));
  CHECK(waiting.stream_destroying(cuda, nullptr, stream(1)));
  CHECK(waiting.add(cuda, nullptr, nullptr, true));
  CHECK(g_events.size() == 2);
  g_busy.clear();
  CHECK(waiting.unfinished(cuda));
  g_events_over = true;
  CHECK_FALSE(waiting.unfinished(cuda));
  CHECK(g_events.empty());
}

TEST_CASE("work without room is taken to be unfinished for good, until its context is gone") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  for (uintptr_t i = 1; i <= 300; ++i) g_busy.insert(stream(i));
  bool room = true;
  for (uintptr_t i = 1; i <= 300; ++i) room &= waiting.add(cuda, nullptr, stream(i), false);
  CHECK_FALSE(room);
  g_busy.clear();
  CHECK(waiting.unfinished(cuda));
  CHECK(waiting.may_wait_ns(flopinj::monotonic_ns()) == 0);
  waiting.clear();
  CHECK_FALSE(waiting.unfinished(cuda));
}

TEST_CASE("launches ask the driver at most once in a millisecond, and it is said what it took") {
  const CudaApi cuda = driver();
  WaitingStreams waiting;
  g_busy = {stream(1)};
  CHECK(waiting.add(cuda, nullptr, stream(1), false));
  const uint64_t began = flopinj::monotonic_ns();
  uint64_t cost_ns = 0;
  for (int i = 0; i < 10'000; ++i) CHECK(waiting.in_flight(cuda, 0, cost_ns));
  const uint64_t took_ms = (flopinj::monotonic_ns() - began) / 1'000'000;
  CHECK(g_asked <= took_ms + 1);
  CHECK(cost_ns > 0);
  g_busy.clear();
  // A call that has waited for the GPU asks all the same, and then launches need not.
  CHECK_FALSE(waiting.in_flight(cuda, 1'000'000'000, cost_ns));
  CHECK_FALSE(waiting.in_flight(cuda, 0, cost_ns));
  CHECK(waiting.come_and_go());
}
