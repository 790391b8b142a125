// What the kernel nodes of CUDA graphs run, so that a graph launch can be counted kernel by kernel.
//
// Nodes come into being by capture (a launch call makes a node instead of running: CUPTI tells of
// the node inside that call), by hand (cuGraphAddKernelNode) or as copies (cuGraphClone, child
// graphs). Instantiation copies every node once more; the copies' ids are the ones in activity
// records. An executable graph has its own list, which cuGraphExec*SetParams, cuGraphNodeSetEnabled
// and cuGraphExecUpdate change.
//
// Kernel nodes that we did not see made are asked for their parameters. What stays unknown (graphs
// instantiated before we came) is reported, never left out in silence.
//
// How often the bodies of conditional nodes run is decided on the GPU. Their kernels are followed
// like others, but a graph launch is no launch of them: each activity record is.
//
// Threads: every function may be called on any thread. No CUDA or CUPTI call is made under the
// lock, for CUPTI may hold its own while it tells us something.
#pragma once
#include <collector/measured_graph.h>
#include <cupti.h>
#include <injector/captures.h>
#include <injector/edge.h>
#include <injector/functions.h>
#include <injector/graph_calls.h>
#include <injector/thread_cache.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flopinj {

class Graphs {
 public:
  Graphs(Edge& edge, Functions& functions, Captures& captures)
      : edge_(edge), functions_(functions), captures_(captures) {}

  void call_enter(ThreadCache&, const GraphFunction&);
  void call_exit(ThreadState&, ThreadCache&, const GraphFunction&, const CUpti_CallbackData&);
  void resource(ThreadCache&, CUpti_CallbackIdResource, const CUpti_GraphData&);

  // After a graph launch succeeded. A hit in the thread's few slots takes no lock.
  LaunchedGraph launched(ThreadCache&, CUgraphExec);
  // Before it, where graphs are to be measured (Settings). False: it is unknown.
  bool look_up(ThreadCache&, CUgraphExec, LaunchedGraph&);

 private:
  static constexpr size_t kMostNodes = 1U << 20;
  static constexpr size_t kMostExecs = 1U << 14;

  struct Kernel {
    SignatureId signature;
    PathId path;
    uint64_t sequence_plus_1 = 0;
    uint32_t flags = 0;  // as of LaunchRecord
    bool device_updatable = false;
  };
  struct Node {
    CUgraph graph = nullptr;
    Kernel kernel;
  };
  struct SourceNode {
    CUgraphNode node = nullptr;
    Kernel kernel;
    bool conditional = false;  // in a body
  };
  struct Child {
    CUgraphNode node = nullptr;
    CUgraph copy = nullptr;            // of the child graph, inside the parent
    std::vector<SourceNode> contents;  // where CUPTI did not tell of the copy
  };
  struct Conditional {
    CUgraphNode node = nullptr;
    std::vector<CUgraph> bodies;
  };
  struct Graph {
    std::vector<CUgraphNode> kernels;  // in the order they were made
    std::vector<Child> children;
    std::vector<Conditional> conditionals;
  };
  struct ExecNode {
    CUgraphNode origin = nullptr;  // in the graph it was instantiated from
    Kernel kernel;
    uint64_t id = 0;  // CUPTI's
    bool enabled = true, conditional = false;
    uint32_t place = 0;  // among the kernels, where Exec::ordered
  };
  struct Exec {
    std::vector<ExecNode> nodes;
    bool measurable = false, ordered = false;  // GraphOrder, and its kernels are `nodes`
    LaunchedGraph launched;
    bool changed = true;  // `launched` is out of date
  };

  void set_order(CUgraph, Exec&) const;
  MeasuredGraph* measured_as(const Exec&);
  Kernel kernel_of(ThreadState&, ThreadCache&, const GraphCall&);
  void instantiate(ThreadState&, ThreadCache&, const GraphCall&);
  void add_child(ThreadCache&, const GraphCall&);
  void change_exec(const GraphCall&, const Kernel&);
  void set_nodes(Exec&, const std::vector<SourceNode>& places,
                 const std::vector<SourceNode>& values);
  std::optional<Kernel> ask_driver(ThreadState&, ThreadCache&, CUgraphNode);
  std::optional<Kernel> read_node(ThreadState&, ThreadCache&, CUgraphNode);
  void add_cluster(GraphCall&) const;
  void set_attribute(ThreadState&, ThreadCache&, const GraphCall&);
  uint64_t id_of(CUgraphNode) const;
  void report(const char* code, std::string_view message);

  // Under mutex_.
  void put_node(CUgraph, CUgraphNode, const Kernel&);
  void drop_node(CUgraphNode, bool holds_graphs);
  void drop_graph(CUgraph);
  void flatten(CUgraph, std::vector<SourceNode>&, bool conditional = false) const;

  Edge& edge_;
  Functions& functions_;
  Captures& captures_;
  std::atomic<uint64_t> epoch_{1};  // changes with every change of any executable graph
  std::mutex mutex_;
  std::unordered_map<CUgraphNode, Node> nodes_;  // kernel nodes
  std::unordered_map<CUgraph, Graph> graphs_;
  std::unordered_map<CUgraphExec, Exec> execs_;
  std::unordered_map<GraphId, MeasuredGraph> measured_;  // never removed
};

}  // namespace flopinj
