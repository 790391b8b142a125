// What the kernel nodes of graphs and of executable graphs run: tables only, no call of CUDA or
// CUPTI, no lock. graphs.h fills them.
#pragma once
#include <collector/identity/ids.h>
#include <cuda.h>
#include <injector/process/thread_context.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace flopinj {

struct NodeKernel {
  SignatureId signature;
  PathId path;
  uint64_t sequence_plus_1 = 0;
  uint32_t flags = 0;           // as of LaunchRecord
  bool passed_over = false;     // the user chose kernels of other names
  bool waits = false;           // perhaps for what the program does later
  CUfunction handle = nullptr;  // as the program gave it

  // Another kernel in the same place.
  void run(const NodeKernel& other) {
    signature = other.signature;
    handle = other.handle;
    flags = other.flags;
    passed_over = other.passed_over;
    waits = other.waits;
  }
};

// A kernel node of a graph that is to be instantiated, or that an update comes from.
struct SourceNode {
  CUgraphNode node = nullptr;
  NodeKernel kernel;
  bool conditional = false;  // in a body
};

struct ChildGraph {
  CUgraphNode node = nullptr;
  CUgraph copy = nullptr;            // of the child graph, inside the parent
  std::vector<SourceNode> contents;  // where CUPTI did not report the copy
};

struct ExecNode {
  CUgraphNode origin = nullptr;  // in the graph it was instantiated from
  NodeKernel kernel;
  uint64_t id = 0;  // CUPTI's
  bool enabled = true, conditional = false;
};

struct ExecutableGraph {
  std::vector<ExecNode> nodes;
  bool waits = false;  // it has other nodes that may wait, or unknown ones
  LaunchedGraph launched;
  bool changed = true;  // `launched` is out of date

  ExecNode* find(CUgraphNode origin);
  // An update pairs nodes in the order they were made, as CUDA itself does. False, and nothing is
  // changed, where they do not pair.
  bool update(const std::vector<SourceNode>& places, const std::vector<SourceNode>& values);
};

class GraphNodes {
 public:
  static constexpr size_t kMostNodes = 1U << 20;
  static constexpr size_t kMostExecutables = 1U << 14;

  // A new node, or a new kernel of a known one; `graph` may be null for a known one. False: full.
  bool put(CUgraph graph, CUgraphNode, const NodeKernel&);
  NodeKernel* find(CUgraphNode);  // null: unknown
  void drop_node(CUgraphNode, bool holds_graphs);

  void add_child(CUgraph parent, ChildGraph);
  void add_conditional(CUgraph parent, CUgraphNode, std::vector<CUgraph> bodies);
  void add_waiting(CUgraph);  // a node that may wait, and is no kernel
  bool waits(CUgraph) const;  // one is in it, in a child or in a body
  void drop_graph(CUgraph);
  // All kernel nodes, those of child graphs and bodies too.
  std::vector<SourceNode> flatten(CUgraph) const;
  std::vector<SourceNode> contents_of_child(CUgraphNode) const;

  bool put_executable(CUgraphExec, ExecutableGraph);  // false: full
  ExecutableGraph* executable(CUgraphExec);           // null: unknown
  bool drop_executable(CUgraphExec);                  // false: unknown

 private:
  struct Node {
    CUgraph graph = nullptr;
    NodeKernel kernel;
  };
  struct Conditional {
    CUgraphNode node = nullptr;
    std::vector<CUgraph> bodies;
  };
  struct Graph {
    std::vector<CUgraphNode> kernels;  // in the order they were made
    std::vector<ChildGraph> children;
    std::vector<Conditional> conditionals;
    bool waits = false;
  };
  void flatten(CUgraph, std::vector<SourceNode>&, bool conditional) const;

  std::unordered_map<CUgraphNode, Node> nodes_;
  std::unordered_map<CUgraph, Graph> graphs_;
  std::unordered_map<CUgraphExec, ExecutableGraph> executables_;
};

}  // namespace flopinj
