// One kernel whose work is in the device's memory, launched again and again: varying_client SHAPE
// LAUNCHES SEED [REST]. It rests 1 ms, or REST ms, every 50 launches. Prints the FLOP of all its
// launches, as it wrote them into that memory.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "client.h"

namespace {

// Iterations of launch i.
int work_of(const std::string& shape, int i, int launches, std::mt19937_64& bits) {
  const double u = static_cast<double>(bits() >> 11) * 0x1p-53;
  if (shape == "uniform") return 10 + static_cast<int>(90 * u);
  if (shape == "two_values") return u < 0.3 ? 100 : 10;
  if (shape == "exponential") return static_cast<int>(-50 * std::log(1 - u));
  if (shape == "trend") return 10 + 100 * i / launches;
  if (shape == "periodic") return i % 3 == 0 ? 100 : 5;
  std::fprintf(stderr, "varying_client: unknown shape\n");
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const std::chrono::milliseconds rest(argc == 5 ? std::atoi(argv[4]) : 1);
  const int launches = std::atoi(argv[2]);
  std::mt19937_64 bits(std::strtoull(argv[3], nullptr, 10));
  client::Gpu gpu(argv[0]);
  const CUfunction kernel = gpu.function("data_dependent");
  uint64_t flop = 0;
  for (int i = 0; i < launches; ++i) {
    const int iterations = work_of(argv[1], i, launches, bits);
    // At the pace of kernels that do something: what is measured again is chosen while the program
    // runs.
    if (i % 50 == 49) std::this_thread::sleep_for(rest);
    flop += 2 * static_cast<uint64_t>(iterations);
    client::check(cuMemcpyHtoD(gpu.x, &iterations, sizeof iterations), "cuMemcpyHtoD");
    void* parameters[] = {&gpu.x, &gpu.y};
    client::check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
                  "cuLaunchKernel");
  }
  client::Gpu::synchronize();
  std::printf("%llu\n", static_cast<unsigned long long>(flop));
  return 0;
}
