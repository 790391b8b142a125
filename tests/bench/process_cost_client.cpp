// What NVTX ranges, short threads and forks cost this program. Knows nothing of us; run it with and
// without the profiler (process_cost.py does). process_cost_client KERNELS prints
//   range_ns    of a range pushed and popped, median
//   string_ns   of one that is named by a registered string, in a domain
//   thread_us   of a thread that has one range: processor time of the process, mean
//   launcher_us of a thread that launches one kernel too
//   fork_us     of a child that ends at once, and is waited for; the child's time too
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void check(CUresult result) {
  if (result != CUDA_SUCCESS) std::exit(1);
}

// Of `rounds` batches of `times` calls each; nanoseconds a call.
template <class Body>
double median_ns(int rounds, int times, Body body) {
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    const auto began = Clock::now();
    for (int i = 0; i < times; ++i) body();
    all.push_back(std::chrono::duration<double, std::nano>(Clock::now() - began).count() / times);
  }
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[static_cast<size_t>(rounds / 2)];
}

double microseconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto of = [](const timeval& t) { return 1e6 * double(t.tv_sec) + double(t.tv_usec); };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Processor time of a call, in all threads and children: other programs leave it as it is.
template <class Body>
double processor_us(int times, Body body) {
  const double before = microseconds(RUSAGE_SELF) + microseconds(RUSAGE_CHILDREN);
  for (int i = 0; i < times; ++i) body();
  return (microseconds(RUSAGE_SELF) + microseconds(RUSAGE_CHILDREN) - before) / times;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction dot = nullptr;
  CUdeviceptr memory = 0;
  check(cuInit(0));
  check(cuDeviceGet(&device, 0));
  check(cuDevicePrimaryCtxRetain(&context, device));
  check(cuCtxSetCurrent(context));
  check(cuModuleLoad(&module, argv[1]));
  check(cuModuleGetFunction(&dot, module, "dot"));
  check(cuMemAlloc(&memory, 64));
  const auto range = [] {
    nvtxRangePushA("range");
    nvtxRangePop();
  };
  const auto launch = [&] {
    int k = 0;
    void* parameters[] = {&k, &memory, &memory};
    check(cuCtxSetCurrent(context));
    check(cuLaunchKernel(dot, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  };
  launch();
  check(cuCtxSynchronize());
  usleep(200'000);  // a recording that ends by itself has ended

  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "string");
  std::printf("range_ns %.1f\n", median_ns(200, 10'000, range));
  std::printf("string_ns %.1f\n", median_ns(200, 10'000, [&] {
                nvtxDomainRangePushEx(domain, &attributes);
                nvtxDomainRangePop(domain);
              }));
  // Before there are threads: what a fork copies is the memory that they leave, too.
  std::printf("fork_us %.1f\n", processor_us(300, [] {
                const pid_t child = fork();
                if (child == 0) _exit(0);
                int status = 0;
                waitpid(child, &status, 0);
              }));
  std::printf("thread_us %.1f\n", processor_us(1'500, [&] { std::thread(range).join(); }));
  std::printf("launcher_us %.1f\n", processor_us(1'500, [&] {
                std::thread([&] {
                  range();
                  launch();
                }).join();
              }));
  check(cuCtxSynchronize());
  return 0;
}
