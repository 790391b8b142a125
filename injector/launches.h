// The way of one launch, from its call to its record.
//
//   ENTER  signature; if counters are wanted, a window (windows.h)
//   call   the driver does it, or makes a node of a graph under capture
//   EXIT   if the call succeeded and made no node: stream, record; the window takes its row
//
// Nothing is counted before the call has succeeded. A launch function that calls another one is one
// launch.
#pragma once
#include <cupti.h>
#include <injector/counters/access/captures.h>
#include <injector/counters/access/contexts.h>
#include <injector/counters/access/questions.h>
#include <injector/counters/windows/windows.h>
#include <injector/graphs/graphs.h>
#include <injector/handles/functions.h>
#include <injector/handles/streams.h>
#include <injector/launch_choice.h>
#include <injector/process/edge.h>
#include <injector/vendor/driver_calls.h>

namespace flopinj {

class Launches {
 public:
  Launches(Edge& edge, Contexts& contexts, Functions& functions, Streams& streams,
           Captures& captures, Questions& questions, Graphs& graphs, Windows& windows)
      : edge_(edge),
        contexts_(contexts),
        functions_(functions),
        streams_(streams),
        captures_(captures),
        questions_(questions),
        graphs_(graphs),
        windows_(windows),
        choice_(edge.settings, edge.in_capture_range) {}

  // The frame is the call's, which ends behind exit().
  void enter(ThreadContext&, CallFrame&, const LaunchFunction&, const CUpti_CallbackData&);
  void exit(ThreadContext&, const CallFrame&, const LaunchFunction&, const CUpti_CallbackData&);
  // The program has said that the recording ends.
  void end() noexcept { choice_.end(); }

 private:
  const KernelFunction* function(ThreadContext&, const LaunchCall&, const char* symbol);
  const Signature* signature(ThreadContext&, const LaunchCall&, const KernelFunction*);
  static void pass_over(ThreadContext&, LaunchTurn, uint32_t launches);
  // Some stream is under capture, perhaps the launch's: no window opens.
  bool beside_capture(const LaunchInProgress&);
  // EXIT of a call that succeeded: whether it made a node in place of the launch.
  bool made_node(const LaunchInProgress&, const CallFrame&);
  bool on_green_context(ThreadContext&);
  LaunchTurn turn_of(ThreadContext&, const KernelFunction*);
  LaunchTurn turn_of_several(ThreadContext&);
  void record_graph(ThreadContext&, LaunchRecord, DeviceId);
  void record_devices(ThreadContext&, const CUpti_CallbackData&, DeviceId);

  Edge& edge_;
  Contexts& contexts_;
  Functions& functions_;
  Streams& streams_;
  Captures& captures_;
  Questions& questions_;
  Graphs& graphs_;
  Windows& windows_;
  LaunchChoice choice_;
};

}  // namespace flopinj
