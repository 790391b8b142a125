// A training program in C++ with libtorch and a loop of its own. Ranges of NVTX say which step and
// phase a kernel is of; they cost next to nothing where nobody listens.
//
//   torch=$(python -c 'import os, torch; print(os.path.dirname(torch.__file__))')
//   g++ -std=c++20 -O2 -I$torch/include -I$torch/include/torch/csrc/api/include \
//     -I/usr/local/cuda/include examples/libtorch_mlp.cpp -o libtorch_mlp \
//     -L$torch/lib -Wl,-rpath,$torch/lib -Wl,--no-as-needed -ltorch -ltorch_cuda -ltorch_cpu -lc10
//   flopinj run -o mlp.pb -- ./libtorch_mlp
//
// Or while it runs, from another terminal, with the number that it prints:
//   flopinj attach -o later.pb PID; sleep 10; flopinj detach PID
#include <nvtx3/nvToolsExt.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

struct Network : torch::nn::Module {
  explicit Network(int64_t width)
      : first(register_module("first", torch::nn::Linear(784, width))),
        last(register_module("last", torch::nn::Linear(width, 10))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor hidden;
    {
      const Range layer("layer:first");
      hidden = torch::relu(first(images));
    }
    const Range layer("layer:last");
    return last(hidden);
  }

  torch::nn::Linear first, last;
};

int64_t argument(int argc, char** argv, int at, int64_t otherwise) {
  return argc > at ? std::stoll(argv[at]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t steps = argument(argc, argv, 1, 1000), width = argument(argc, argv, 2, 4096),
                batch = argument(argc, argv, 3, 512);
  const bool on_gpu = torch::cuda::is_available();
  const torch::Device device(on_gpu ? torch::kCUDA : torch::kCPU);
  std::cout << "process " << getpid() << " trains on " << device << std::endl;
  torch::manual_seed(0);
  Network network(width);
  network.to(device);
  torch::optim::SGD optimizer(network.parameters(), 0.01);
  const torch::Tensor images = torch::randn({batch, 784}, device);
  const torch::Tensor labels =
      torch::randint(10, {batch}, torch::TensorOptions(device).dtype(torch::kLong));
  double loss_now = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const Range whole("step");
    torch::Tensor loss;
    {
      const Range phase("forward");
      loss = torch::cross_entropy_loss(network.forward(images), labels);
    }
    {
      const Range phase("backward");
      optimizer.zero_grad();
      loss.backward();
    }
    const Range phase("optimizer");
    optimizer.step();
    loss_now = loss.item<double>();
  }
  std::cout << "loss " << loss_now << " after " << steps << " steps\n";
  // flopinj run sets it for what it starts.
  if (const char* output = std::getenv("FLOPINJ_OUTPUT"))
    std::cout << "Read the trace:  flopinj report " << output << '\n';
  else
    std::cout << "Not recorded. Profile it:  flopinj run -- " << argv[0] << '\n';
}
