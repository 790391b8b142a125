// Ranks that reduce their gradients by kernels which wait for each other, as with NCCL:
// collective_client PTX RANKS STEPS HOW. HOW says who launches: "threads", one for each rank;
// "graphs", such threads, each kernel in a captured graph; or "one", a thread for all ranks. Each
// rank has a device, a stream for its own kernels and one for the collective's, with events between
// them. Ends with 1 where a sum is wrong.
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client.h"

namespace {

using client::check;

constexpr unsigned kWords = 960;  // a multiple of 2 to 6 ranks
constexpr unsigned kBlock = 64;
constexpr int kReads = 3;  // steps between two that are waited for

// As in collective_kernels.cu.
struct Ring {
  unsigned rank, ranks, call;
  CUdeviceptr mine, next;
};

class Rank {
 public:
  Rank(const char* ptx, unsigned rank, unsigned ranks, bool in_graphs)
      : ring_{rank, ranks, 0, 0, 0}, in_graphs_(in_graphs) {
    check(cuDeviceGet(&device_, static_cast<int>(rank)), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    use();
    check(cuModuleLoad(&module_, ptx), "cuModuleLoad");
    for (CUstream* stream : {&computing_, &reducing_})
      check(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (CUevent* event : {&computed_, &reduced_})
      check(cuEventCreate(event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    for (CUdeviceptr* words : {&in_, &out_})
      check(cuMemAlloc(words, kWords * sizeof(float)), "cuMemAlloc");
    const size_t slots = 2 * 2 * (ranks - 1) * (kWords / ranks) * sizeof(uint64_t);
    check(cuMemAlloc(&ring_.mine, slots), "cuMemAlloc");
    check(cuMemsetD8(ring_.mine, 0, slots), "cuMemsetD8");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
  }
  void joins(const Rank& next) { ring_.next = next.ring_.mine; }
  void use() const { check(cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

  // The gradient of the step, and its sum over all ranks behind it.
  void step(bool bf16) {
    ++ring_.call;
    unsigned words = kWords;
    auto factor = static_cast<float>(ring_.rank);
    void* gradient[] = {&words, &factor, &in_};
    check(cuStreamWaitEvent(computing_, reduced_, 0), "cuStreamWaitEvent");
    launch(bf16 ? "gradient_bf16" : "gradient_f32", kWords / kBlock, computing_, gradient);
    check(cuEventRecord(computed_, computing_), "cuEventRecord");
    check(cuStreamWaitEvent(reducing_, computed_, 0), "cuStreamWaitEvent");
    void* reduce[] = {&ring_, &words, &in_, &out_};
    launch(bf16 ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
                : "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
           2, reducing_, reduce);
    check(cuEventRecord(reduced_, reducing_), "cuEventRecord");
  }

  // As a program that reads its loss: nothing of the rank is in flight then.
  void wait() const {
    use();
    check(cuCtxSynchronize(), "cuCtxSynchronize");
  }

  // Whether each element is the sum of rank x (i % 8) + 1.
  bool right(bool bf16) const {
    use();
    std::vector<uint32_t> words(kWords);
    check(cuStreamSynchronize(reducing_), "cuStreamSynchronize");
    check(cuMemcpyDtoH(words.data(), out_, kWords * sizeof(float)), "cuMemcpyDtoH");
    const unsigned ranks = ring_.ranks, elements = bf16 ? 2 * kWords : kWords;
    for (unsigned i = 0; i < elements; ++i) {
      const uint32_t bits = !bf16        ? words[i]
                            : i % 2 == 0 ? words[i / 2] << 16
                                         : words[i / 2] & 0xFFFF0000U;
      float sum = 0;
      std::memcpy(&sum, &bits, sizeof sum);
      if (sum != static_cast<float>(ranks * (ranks - 1) / 2 * (i % 8) + ranks)) return false;
    }
    return true;
  }

 private:
  void launch(const char* name, unsigned grid, CUstream stream, void** parameters) {
    CUfunction function = nullptr;
    check(cuModuleGetFunction(&function, module_, name), name);
    if (in_graphs_) return launch_graph(graphs_[name], function, grid, stream, parameters);
    check(cuLaunchKernel(function, grid, 1, 1, kBlock, 1, 1, 0, stream, parameters, nullptr), name);
  }

  struct Graph {
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr;
  };
  static void launch_graph(Graph& graph, CUfunction function, unsigned grid, CUstream stream,
                           void** parameters) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = function;
    kernel.gridDimX = grid;
    kernel.blockDimX = kBlock;
    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = parameters;
    if (graph.exec == nullptr) {
      CUgraph made = nullptr;
      size_t one = 1;
      check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "cuStreamBeginCapture");
      check(cuLaunchKernel(function, grid, 1, 1, kBlock, 1, 1, 0, stream, parameters, nullptr),
            "cuLaunchKernel");
      check(cuStreamEndCapture(stream, &made), "cuStreamEndCapture");
      check(cuGraphGetNodes(made, &graph.node, &one), "cuGraphGetNodes");
      check(cuGraphInstantiateWithFlags(&graph.exec, made, 0), "cuGraphInstantiateWithFlags");
    }
    check(cuGraphExecKernelNodeSetParams(graph.exec, graph.node, &kernel),
          "cuGraphExecKernelNodeSetParams");
    check(cuGraphLaunch(graph.exec, stream), "cuGraphLaunch");
  }

  Ring ring_;
  bool in_graphs_;
  std::map<std::string, Graph> graphs_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUstream computing_ = nullptr, reducing_ = nullptr;
  CUevent computed_ = nullptr, reduced_ = nullptr;
  CUdeviceptr in_ = 0, out_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto count = static_cast<unsigned>(std::stoi(argv[2]));
  const int steps = std::stoi(argv[3]);
  const std::string how = argv[4];
  check(cuInit(0), "cuInit");
  std::vector<Rank> ranks;
  for (unsigned r = 0; r < count; ++r) ranks.emplace_back(argv[1], r, count, how == "graphs");
  for (unsigned r = 0; r < count; ++r) ranks[r].joins(ranks[(r + 1) % count]);
  for (const bool bf16 : {false, true}) {
    if (how != "one") {
      std::vector<std::thread> threads;
      for (Rank& rank : ranks)
        threads.emplace_back([&] {
          rank.use();
          for (int i = 0; i < steps; ++i) {
            rank.step(bf16);
            if (i % kReads == 0) rank.wait();
          }
        });
      for (std::thread& thread : threads) thread.join();
    } else {
      for (int i = 0; i < steps; ++i) {
        for (Rank& rank : ranks) {
          rank.use();
          rank.step(bf16);
        }
        if (i % kReads == 0)
          for (const Rank& rank : ranks) rank.wait();
      }
    }
    for (const Rank& rank : ranks)
      if (!rank.right(bf16)) return 1;
  }
}
