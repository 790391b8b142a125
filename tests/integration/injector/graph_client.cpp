// Graphs made and changed by hand: graph_client CASE. Every launched kernel is dot(k), 2k FLOP, and
// every k is launched once outside of any graph, so that its count is known.
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "client.h"

namespace {

using client::check;
using client::Gpu;

// The parameters of a node that runs dot(k). Used at once: the driver copies them.
struct Dot {
  Dot(const Gpu& gpu, int k) : k_(k), x_(gpu.x), y_(gpu.y) {
    node.func = gpu.function("dot");
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = parameters_;
  }
  Dot(const Dot&) = delete;
  Dot& operator=(const Dot&) = delete;

  CUDA_KERNEL_NODE_PARAMS node{};

 private:
  int k_;
  CUdeviceptr x_, y_;
  void* parameters_[3] = {&k_, &x_, &y_};
};

CUgraphNode add(const Gpu& gpu, CUgraph graph, int k, CUgraphNode after = nullptr) {
  CUgraphNode node = nullptr;
  const Dot dot(gpu, k);
  check(cuGraphAddKernelNode(&node, graph, after != nullptr ? &after : nullptr,
                             after != nullptr ? 1 : 0, &dot.node),
        "cuGraphAddKernelNode");
  return node;
}

CUgraph make(const Gpu& gpu, std::initializer_list<int> ks) {
  CUgraph graph = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUgraphNode last = nullptr;
  for (const int k : ks) last = add(gpu, graph, k, last);
  return graph;
}

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  return exec;
}

void launch(CUgraphExec exec, int times) {
  for (int i = 0; i < times; ++i) check(cuGraphLaunch(exec, nullptr), "cuGraphLaunch");
}

// 2 x (3 + 5)
void by_hand(Gpu& gpu) { launch(instantiate(make(gpu, {3, 5})), 2); }

// 3 + 7: what is set after the clone is in the clone alone; then 2 x (3 + 5) of the original.
void cloned(Gpu& gpu) {
  const CUgraph original = make(gpu, {3, 5});
  CUgraph clone = nullptr;
  check(cuGraphClone(&clone, original), "cuGraphClone");
  CUgraphNode nodes[2];
  size_t count = 2;
  check(cuGraphGetNodes(clone, nodes, &count), "cuGraphGetNodes");
  for (size_t i = 0; i < count; ++i) {
    CUDA_KERNEL_NODE_PARAMS now{};
    check(cuGraphKernelNodeGetParams(nodes[i], &now), "cuGraphKernelNodeGetParams");
    const Dot seven(gpu, 7);
    if (*static_cast<int*>(now.kernelParams[0]) == 5)
      check(cuGraphKernelNodeSetParams(nodes[i], &seven.node), "cuGraphKernelNodeSetParams");
  }
  launch(instantiate(clone), 1);
  launch(instantiate(original), 2);
}

// 3 + 5, then after the update 2 x (7 + 9), however often updated.
void updated(Gpu& gpu) {
  const CUgraphExec exec = instantiate(make(gpu, {3, 5}));
  launch(exec, 1);
  for (int i = 0; i < 2; ++i) {
    const CUgraph other = make(gpu, {7, 9});
    CUgraphExecUpdateResultInfo info{};
    check(cuGraphExecUpdate(exec, other, &info), "cuGraphExecUpdate");
    check(cuGraphDestroy(other), "cuGraphDestroy");
    launch(exec, 1);
  }
}

// The handle of a destroyed graph may come back: 3, then 5.
void destroyed(Gpu& gpu) {
  for (const int k : {3, 5}) {
    const CUgraph graph = make(gpu, {k});
    const CUgraphExec exec = instantiate(graph);
    check(cuGraphDestroy(graph), "cuGraphDestroy");  // the executable graph stays
    launch(exec, 1);
    check(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
  }
}

// A node is taken out before instantiation: 3 alone.
void node_removed(Gpu& gpu) {
  const CUgraph graph = make(gpu, {3});
  check(cuGraphDestroyNode(add(gpu, graph, 5)), "cuGraphDestroyNode");
  launch(instantiate(graph), 1);
}

// A child graph beside a kernel, a child in the child: 3 + (5 + (7)), twice.
void children(Gpu& gpu) {
  const CUgraph inner = make(gpu, {7}), middle = make(gpu, {5}), outer = make(gpu, {3});
  CUgraphNode node = nullptr;
  check(cuGraphAddChildGraphNode(&node, middle, nullptr, 0, inner), "cuGraphAddChildGraphNode");
  check(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, middle), "cuGraphAddChildGraphNode");
  check(cuGraphDestroy(inner), "cuGraphDestroy");
  launch(instantiate(outer), 2);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  Gpu gpu(argv[0]);
  for (const int k : {3, 5, 7, 9}) gpu.dot(k);
  if (name == "by_hand")
    by_hand(gpu);
  else if (name == "cloned")
    cloned(gpu);
  else if (name == "updated")
    updated(gpu);
  else if (name == "destroyed")
    destroyed(gpu);
  else if (name == "node_removed")
    node_removed(gpu);
  else if (name == "children")
    children(gpu);
  else
    return 2;
  Gpu::synchronize();
  return 0;
}
