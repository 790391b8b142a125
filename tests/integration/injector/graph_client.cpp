// Graphs made and changed by hand: graph_client CASE. Every launched kernel is dot(k), 2k FLOP, and
// every k is launched once outside of any graph, so that its count is known.
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

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

// A child graph whose parameters are set anew in the executable graph: 3 + 5, then 2 x (3 + 9).
void child_set(Gpu& gpu) {
  const CUgraph outer = make(gpu, {3});
  CUgraphNode child = nullptr;
  check(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, make(gpu, {5})),
        "cuGraphAddChildGraphNode");
  const CUgraphExec exec = instantiate(outer);
  launch(exec, 1);
  check(cuGraphExecChildGraphNodeSetParams(exec, child, make(gpu, {9})),
        "cuGraphExecChildGraphNodeSetParams");
  launch(exec, 2);
}

// A whole-graph update reaches into child graphs: 3 + 5, then 2 x (7 + 9).
void child_updated(Gpu& gpu) {
  const auto with_child = [&](int k, int child_k) {
    const CUgraph graph = make(gpu, {k});
    CUgraphNode child = nullptr;
    check(cuGraphAddChildGraphNode(&child, graph, nullptr, 0, make(gpu, {child_k})),
          "cuGraphAddChildGraphNode");
    return graph;
  };
  const CUgraphExec exec = instantiate(with_child(3, 5));
  launch(exec, 1);
  CUgraphExecUpdateResultInfo info{};
  check(cuGraphExecUpdate(exec, with_child(7, 9), &info), "cuGraphExecUpdate");
  launch(exec, 2);
}

// A node is switched off and on again: 3 + 5, 3, 3 + 5.
void disabled(Gpu& gpu) {
  const CUgraph graph = make(gpu, {3});
  const CUgraphNode five = add(gpu, graph, 5);
  const CUgraphExec exec = instantiate(graph);
  launch(exec, 1);
  check(cuGraphNodeSetEnabled(exec, five, 0), "cuGraphNodeSetEnabled");
  launch(exec, 1);
  check(cuGraphNodeSetEnabled(exec, five, 1), "cuGraphNodeSetEnabled");
  launch(exec, 1);
}

// For launches from the GPU too, which nobody makes here: 3, twice.
void for_device(Gpu& gpu) {
  CUgraphExec exec = nullptr;
  check(
      cuGraphInstantiateWithFlags(&exec, make(gpu, {3}), CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
      "cuGraphInstantiateWithFlags");
  launch(exec, 2);
}

// A captured node that kernels may change, which none does here: 3, twice.
void updatable(Gpu& gpu) {
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  attribute.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const Dot three(gpu, 3);
  check(cuLaunchKernelEx(&config, three.node.func, three.node.kernelParams, nullptr),
        "cuLaunchKernelEx");
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  launch(instantiate(graph), 2);
}

struct Conditional {
  CUgraph graph = nullptr;
  CUgraphConditionalHandle handle = 0;
  std::vector<CUgraph> bodies;
};

Conditional conditional(CUgraphConditionalNodeType type, unsigned bodies, unsigned value) {
  Conditional made;
  check(cuGraphCreate(&made.graph, 0), "cuGraphCreate");
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  check(cuGraphConditionalHandleCreate(&made.handle, made.graph, context, value,
                                       CU_GRAPH_COND_ASSIGN_DEFAULT),
        "cuGraphConditionalHandleCreate");
  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  node.conditional.handle = made.handle;
  node.conditional.type = type;
  node.conditional.size = bodies;
  node.conditional.ctx = context;
  CUgraphNode added = nullptr;
  check(cuGraphAddNode(&added, made.graph, nullptr, nullptr, 0, &node), "cuGraphAddNode");
  made.bodies.assign(node.conditional.phGraph_out, node.conditional.phGraph_out + bodies);
  return made;
}

// The body runs as long as its own kernel says: 4 times dot(5), then 2 times. Beside it dot(3) once
// each. The body is captured. count_down runs once by itself, so that its count is known.
void looping(Gpu& gpu) {
  CUmodule module = nullptr;
  const std::string path =
      gpu.module_path.substr(0, gpu.module_path.rfind('/')) + "/conditional_kernels.ptx";
  check(cuModuleLoad(&module, path.c_str()), "cuModuleLoad");
  CUfunction count_down = nullptr;
  check(cuModuleGetFunction(&count_down, module, "count_down"), "count_down");
  CUdeviceptr counter = gpu.y + 4096;
  const auto count = [&](CUgraphConditionalHandle handle, CUstream stream) {
    void* parameters[] = {&handle, &counter};
    check(cuLaunchKernel(count_down, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
          "count_down");
  };

  const Conditional loop = conditional(CU_GRAPH_COND_TYPE_WHILE, 1, 1);
  count(loop.handle, nullptr);
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuStreamBeginCaptureToGraph(stream, loop.bodies[0], nullptr, nullptr, 0,
                                    CU_STREAM_CAPTURE_MODE_RELAXED),
        "cuStreamBeginCaptureToGraph");
  gpu.dot(5, stream);
  count(loop.handle, stream);
  CUgraph captured = nullptr;
  check(cuStreamEndCapture(stream, &captured), "cuStreamEndCapture");
  add(gpu, loop.graph, 3);
  const CUgraphExec exec = instantiate(loop.graph);
  for (const int times : {4, 2}) {
    check(cuMemcpyHtoD(counter, &times, sizeof times), "cuMemcpyHtoD");
    launch(exec, 1);
    Gpu::synchronize();
  }
}

// The value says which: body 1 of a switch, dot(7), and of an if and else the else, dot(9).
void choosing(Gpu& gpu) {
  const Conditional of_three = conditional(CU_GRAPH_COND_TYPE_SWITCH, 3, 1);
  add(gpu, of_three.bodies[0], 3), add(gpu, of_three.bodies[1], 7), add(gpu, of_three.bodies[2], 5);
  launch(instantiate(of_three.graph), 2);
  const Conditional either = conditional(CU_GRAPH_COND_TYPE_IF, 2, 0);
  add(gpu, either.bodies[0], 3), add(gpu, either.bodies[1], 9);
  launch(instantiate(either.graph), 1);
}

// The cluster is no parameter of a node but an attribute: 2 x (axpy(128) twice), then axpy(256) and
// axpy(128), all in clusters of two blocks, as each is launched once outside.
void clustered(Gpu& gpu) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {2, 1, 1};
  const auto axpy = [&](int n, auto&& use) {
    float a = 2.0F;
    void* parameters[] = {&n, &a, &gpu.x, &gpu.y};
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = gpu.function("axpy");
    node.gridDimX = static_cast<unsigned>(n) / 32;
    node.blockDimX = 32;
    node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = parameters;
    use(node);
  };
  for (const int n : {128, 256})
    axpy(n, [&](const CUDA_KERNEL_NODE_PARAMS& node) {
      CUlaunchConfig config{node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, nullptr, &attribute, 1};
      check(cuLaunchKernelEx(&config, node.func, node.kernelParams, nullptr), "cuLaunchKernelEx");
    });
  const CUgraph graph = make(gpu, {});
  CUgraphNode first = nullptr, second = nullptr;
  axpy(128, [&](const CUDA_KERNEL_NODE_PARAMS& node) {
    check(cuGraphAddKernelNode(&first, graph, nullptr, 0, &node), "cuGraphAddKernelNode");
    check(cuGraphAddKernelNode(&second, graph, &first, 1, &node), "cuGraphAddKernelNode");
  });
  check(cuGraphKernelNodeSetAttribute(first, attribute.id, &attribute.value),
        "cuGraphKernelNodeSetAttribute");
  check(cuGraphKernelNodeCopyAttributes(second, first), "cuGraphKernelNodeCopyAttributes");
  const CUgraphExec exec = instantiate(graph);
  launch(exec, 2);
  axpy(256, [&](const CUDA_KERNEL_NODE_PARAMS& node) {
    check(cuGraphExecKernelNodeSetParams(exec, first, &node), "cuGraphExecKernelNodeSetParams");
  });
  launch(exec, 1);
}

// A kernel that runs only in a graph: dot(11).
void only_in_graph(Gpu& gpu) { launch(instantiate(make(gpu, {3, 11})), 2); }

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  Gpu gpu(argv[0]);
  for (const int k : {3, 5, 7, 9}) gpu.dot(k);
  static const std::map<std::string, void (*)(Gpu&)> kCases = {
      {"by_hand", by_hand},           {"cloned", cloned},
      {"updated", updated},           {"destroyed", destroyed},
      {"node_removed", node_removed}, {"children", children},
      {"child_set", child_set},       {"child_updated", child_updated},
      {"disabled", disabled},         {"for_device", for_device},
      {"updatable", updatable},       {"looping", looping},
      {"choosing", choosing},         {"only_in_graph", only_in_graph},
      {"clustered", clustered},
  };
  const auto known = kCases.find(name);
  if (known == kCases.end()) return 2;
  known->second(gpu);
  Gpu::synchronize();
  return 0;
}
