// Measurement windows: stretches of launches on one context whose counters are read.
//
// Protocol
//   1. A launch whose signature wants a group (or that finds the gate shut) takes the context's
//      lock at its ENTER, and the scheduler decides. A window is to be opened: the gate is shut,
//      launches that other threads are in the middle of are waited for, and CUPTI is started.
//   2. While a window is open, every launch on the context holds the lock from ENTER to EXIT:
//      rows are in the order of execution. A launch that succeeded appends its row.
//   3. It is closed before a launch that must not be inside (a graph, a collective) or that wants
//      another group's window, after the launch that fills or finishes it, when a stream is about
//      to be captured (captures.h), when its context is destroyed, and at exit. One that has been
//      open for max_open_ns is closed by the planner's thread, unless a launch is in it just then:
//      what a program measured before it idles is written, however it ends. As many ranges as
//      rows, and none dropped: the counters of rows that the scheduler chose become samples. Else
//      all are thrown away.
// A window around a graph launch (graph_windows.cpp) is opened at its ENTER, holds it alone, and is
// closed at its EXIT; what its ranges say of the graph's kernels: collector/graph_window.h.
//
// A launch that finds no window and wants none says so in its thread's cache (`launching`) and
// takes no lock.
//
// Order of locks: context's window lock -> list of threads' caches | contexts | group's evaluation | the
// planner's, the collector's and CUPTI's own. No callback takes a window lock while holding another
// of ours.
// Waiting for a window lock is bounded everywhere: who does not get it goes on, and the window,
// which will have seen one range too many, is discarded.
#pragma once
#include <collector/measured_graph.h>
#include <collector/scheduler.h>
#include <injector/captures.h>
#include <injector/contexts.h>
#include <injector/edge.h>
#include <injector/planner.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

namespace flopinj {

struct OpenWindow {
  DevicePlan* plan = nullptr;
  MeasurementWindow measured;
  MeasuredGraph* graph = nullptr;  // the window is around a launch of it
  uint32_t passed_by = 0;          // Context::passed_by when it was opened

  // Of a graph never more than one pass: whether its kernels can be run again one by one, nobody
  // has established.
  MetricGroup& read_by() const {
    return graph != nullptr ? *plan->groups[measured.group] : plan->read_by(measured.group);
  }
};

// Shuts the gate. It opens again at the end of the scope, whatever happens, unless a window is left
// open behind it.
class ShutGate {
 public:
  explicit ShutGate(Context& context) : gate_(context.gate) {
    gate_.store(true, std::memory_order_seq_cst);
  }
  ~ShutGate() {
    if (!kept_) gate_.store(false, std::memory_order_seq_cst);
  }
  ShutGate(const ShutGate&) = delete;
  ShutGate& operator=(const ShutGate&) = delete;
  void keep() { kept_ = true; }

 private:
  std::atomic<bool>& gate_;
  bool kept_ = false;
};

struct WindowPatience {
  std::chrono::milliseconds for_lock, for_launches;
};

class Windows {
 public:
  Windows(Edge& edge, Planner& planner, Contexts& contexts, const Captures& captures);

  // Before the first launch on a context: the wait that Settings::plan_wait_ms() tells.
  void await_plan(Context&);
  // ENTER. `signature` is null for what must not be in a window; `graph` is the graph that is
  // launched, where it may be measured. Follow with exit(), on this thread.
  void enter(Context&, ThreadCache&, const Signature*, MeasuredGraph* graph = nullptr);
  // EXIT. True when the launch was made inside a window. Of the row, what enter() left open is
  // filled in.
  bool exit(Context&, ThreadCache&, WindowRow, bool made);
  // For an EXIT that fails before it comes to exit(); after exit() it does nothing. The window, if
  // there is one, will be discarded.
  void leave(ThreadCache&) noexcept;

  // ENTER of a call that begins a capture, which Captures knows of already.
  void capture_beginning();

  // False when a launch on it does not return: then nothing is left to serve another context.
  bool context_destroying(Context&);
  // At exit or detach: no new windows, open ones are closed. Any thread, with or without a context.
  void finish();

 private:
  bool wants_window(const Context&, const Signature*, const MeasuredGraph*) const;
  void enter_slowly(Context&, ThreadCache&, const Signature*, MeasuredGraph*);
  bool decide(Context&, const ThreadCache&, const Signature&);
  void open(Context&, const ThreadCache&, uint32_t group, bool shared, MeasuredGraph*);
  void deliver(const OpenWindow&, uint32_t number, uint32_t group, std::span<const double> values,
               size_t column);
  void close(Context&);
  // graph_windows.cpp
  void open_for(Context&, const ThreadCache&, MeasuredGraph&);
  void close_graph(Context&, const WindowRow*);
  void deliver_graph(const OpenWindow&, GraphSamples);
  void refuse_graphs(const Problem&);
  void close_from_outside(Context&);
  bool close_old() noexcept;
  void degrade(const Context&, const Problem&);

  Edge& edge_;
  Planner& planner_;
  Contexts& contexts_;
  const Captures& captures_;
  MeasurementScheduler& scheduler_;
  const WindowPatience patience_;
  std::atomic<bool> on_;
  std::atomic<uint32_t> windows_{0};  // number of the last window
};

}  // namespace flopinj
