// What one host thread keeps between CUPTI callbacks: the launch it is in, and its own copies of
// handle tables, so that the steady state takes no lock. Used by its own thread, but for
// CallFrames::launching. this_thread.h finds the caller's.
#pragma once
#include <collector/base/zero_pages.h>
#include <collector/identity/launch_record.h>
#include <collector/identity/signature_table.h>
#include <cuda.h>
#include <injector/process/call_frames.h>
#include <injector/vendor/launch_calls.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace flopinj {

struct Context;
struct ThreadState;

struct FunctionSlot {
  CUfunction handle = nullptr;
  const char* symbol = nullptr;  // CUPTI's pointer, compared only
  const KernelFunction* function = nullptr;
  uint32_t epoch = 0;
};

using FunctionSlots = std::array<FunctionSlot, 1'024>;

struct StreamSlot {
  const Context* context = nullptr;
  CUstream stream = nullptr;
  StreamId id;
  uint32_t epoch = 0;
  bool per_thread = false;
  bool green = false;  // on a green context
};

struct ContextSlot {
  CUcontext handle = nullptr;
  Context* context = nullptr;
  uint32_t epoch = 0;
};

struct LaunchedGraph {
  GraphId id;
  uint32_t passed_over = 0;  // of its kernels, those whose names the user did not choose
  uint32_t kernels = 0;      // launches in one launch of the graph, bodies left out
  bool timed = true;         // CUPTI's times can be kept apart
  bool waits = false;        // perhaps for the host or for another device
  bool bodies_lost = false;  // it has conditional bodies and found no room in the table of graphs
};

struct GraphSlot {
  CUgraphExec exec = nullptr;
  LaunchedGraph graph;
  uint64_t epoch = 0;
};

// What the user's choice makes of a launch (launch_choice.h).
// The first two are recorded; kFree has no turn of its own.
enum class LaunchTurn : uint8_t { kFree, kRecorded, kOther, kSkipped, kAfter };
constexpr bool is_recorded(LaunchTurn turn) { return turn <= LaunchTurn::kRecorded; }

// Between ENTER and EXIT of the outermost launch call; a new one at each ENTER.
struct LaunchInProgress {
  // As new. Member by member: filled as one piece of memory it takes several times as long.
  void reset() noexcept {
    asked.reset();
    context = nullptr;
    signature = nullptr;
    node = nullptr;
    record = {};
    turn = LaunchTurn::kFree;
    waits = chosen = beside_capture = false;
    window_call_began_ns = window_entered_ns = timed_call_began_ns = 0;
  }

  LaunchCall asked;  // as it was at ENTER; nothing of a launch on several devices
  Context* context = nullptr;
  const Signature* signature = nullptr;
  CUgraphNode node = nullptr;  // that it made instead, under capture
  LaunchRecord record;         // path, sequence and correlation as of ENTER
  LaunchTurn turn = LaunchTurn::kFree;
  bool waits = false;   // it may wait for work that the program makes later
  bool chosen = false;  // of a window: it becomes a sample
  // Some stream is under capture: perhaps its own, so that the call makes a node in place of it.
  bool beside_capture = false;
  uint64_t window_call_began_ns = 0;  // in a window
  uint64_t window_entered_ns = 0;     // the same by the clock of kernels' times; 0: without these
  uint64_t timed_call_began_ns = 0;   // where the call is timed; else 0
};
static_assert(sizeof(LaunchInProgress) == sizeof(LaunchCall) + sizeof(LaunchRecord) + 56,
              "reset() sets all members");

// Between ENTER and EXIT of the outermost graph call: what CUPTI reported of it on this thread.
struct GraphCallInProgress {
  bool makes_exec = false;   // the copies are an executable graph's
  bool conditional = false;  // and a conditional node is among them
  bool waits = false;        // and one that may wait, and is no kernel
  struct Clone {
    CUgraphNode node, original;
  };
  std::vector<Clone> clones;    // kernel nodes, in the order of the reports
  std::vector<CUgraph> graphs;  // clones of graphs
};

// Modules that CUPTI reported on this thread since the call it is in began.
struct LoadedModules {
  uint32_t count = 0;
  uint32_t last = 0;           // CUPTI's id
  void clear() { count = 0; }  // at ENTER of a call that may load modules
  void push(uint32_t id) {
    ++count;
    last = id;
  }
};

struct ThreadContext {
  // The collector's part; null where its table of threads is full.
  ThreadState* state = nullptr;

  CallFrames calls;
  LaunchInProgress launch;  // the outermost one that the thread is in
  LoadedModules modules_loaded;
  GraphCallInProgress graph_call;
  bool slow_callback = false;           // what this callback did is accounted elsewhere
  uint64_t synchronizing_since_ns = 0;  // it is in a call that may wait for what is in flight
  uint64_t synchronizing_work = 0;      // which was added before (waiting_streams.h)
  // Such calls in a row, no other call between them, have waited so long by now.
  uint64_t row_waited_ns = 0;
  uint64_t row_callbacks = 0;  // ThreadState::callbacks at the end of the last one

  ContextSlot context;
  std::array<GraphSlot, 8> graphs;
  std::array<StreamSlot, 16> streams;
  ZeroPages<FunctionSlots> functions;  // nothing in it is a thread's own
  ThreadContext* next_ended = nullptr;
};

}  // namespace flopinj
