// What the kernel nodes of CUDA graphs run, so that a graph launch can be counted kernel by kernel.
//
// Nodes come into being by capture (a launch call makes a node instead of running: CUPTI reports
// the node inside that call), by hand (cuGraphAddKernelNode) or as copies (cuGraphClone, child
// graphs). Instantiation copies every node once more; the copies' ids are the ones in activity
// records. An executable graph has its own list, which cuGraphExec*SetParams, cuGraphNodeSetEnabled
// and cuGraphExecUpdate change.
//
// What we did not see made (nodes and graphs from before we came) is reported, never left out in
// silence.
//
// How often the bodies of conditional nodes run is decided on the GPU. Their kernels are followed
// like others, but a graph launch is no launch of them: each activity record is.
//
// Threads: every function may be called on any thread. No CUDA or CUPTI call is made under the
// lock, for CUPTI may hold its own while it reports something. A diagnostic makes none either
// (Edge::now_ns).
#pragma once
#include <collector/base/mutex.h>
#include <cupti.h>
#include <injector/counters/access/captures.h>
#include <injector/graphs/graph_nodes.h>
#include <injector/handles/functions.h>
#include <injector/process/edge.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/driver_calls.h>

#include <array>
#include <atomic>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace flopinj {

class Graphs {
 public:
  Graphs(Edge& edge, Functions& functions, Captures& captures)
      : edge_(edge), functions_(functions), captures_(captures) {}

  void call_enter(ThreadContext&, CallFrame&, const GraphFunction&);
  // Without a frame where ENTER was not seen.
  void call_exit(ThreadContext&, CallFrame*, const GraphFunction&, const CUpti_CallbackData&);
  void resource(ThreadContext&, CUpti_CallbackIdResource, const CUpti_GraphData&);
  // The launch that made the node loaded its kernel's module, and only then has this signature.
  void captured_as(CUgraphNode, const Signature&);

  // Before a graph launch. Whether it may wait for the host or for another device. An unknown graph
  // may, once the process has any that does.
  bool may_wait(ThreadContext&, CUgraphExec);
  // After a graph launch succeeded. A hit in the thread's few slots takes no lock.
  LaunchedGraph launched(ThreadContext&, CUgraphExec);

 private:
  const LaunchedGraph* known(ThreadContext&, CUgraphExec);  // null: it is not
  NodeKernel kernel_of(ThreadContext&, const GraphCall&);
  void instantiate(ThreadContext&, const GraphCall&);
  void add_child(ThreadContext&, const GraphCall&);
  void change_exec(const GraphCall&, const NodeKernel&);
  std::optional<NodeKernel> kernel_of(CUgraphNode);  // none: it is reported
  std::array<uint32_t, 3> cluster_of(const NodeKernel*) const;
  void keep_cluster(GraphCall&);
  void set_attribute(const GraphCall&);
  uint64_t id_of(CUgraphNode) const;
  void report(const char* code, std::string_view message);

  void put(CUgraph, CUgraphNode, const NodeKernel&) FLOPINJ_REQUIRES(mutex_);

  Edge& edge_;
  Functions& functions_;
  Captures& captures_;
  std::atomic<bool> may_wait_{false};  // a graph of the process
  std::atomic<uint64_t> epoch_{1};     // changes with every change of any executable graph
  Mutex mutex_;
  GraphNodes nodes_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
