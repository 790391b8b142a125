// Programs in which recordings begin and end while they run.
//   rounds     ranges of every kind of name, again and again
//   own_socket gives its own listening socket the number of every other one in the process, and
//              prints how many of five connections it got itself
//   capture    launches before, in and after the range of its first cuProfilerStart and Stop, and
//              in a second one; SECONDS later it ends
//   hidden     is not dumpable: the kernel lets its own user not read it
//   forks      leaves a child behind that does nothing, and prints the child's id
//   threads N  N threads launch without end, each a kernel every millisecond. Answers each line
//              with an empty one, once the C library has given free memory back to the system
//   scarce     launches, and reads lines from its first launch on: "one N" (the profiler's
//              allocation after N more fails), "all N" (and all behind it) or "none". Answers each
//              with an empty line. At the end of its input it prints whether its launches computed
//              as they should
#include <cuda.h>
#include <fcntl.h>
#include <malloc.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "profiler_calls.h"

// As in cudaProfiler.h, which the Python wheels of CUDA's headers lack.
extern "C" {
CUresult CUDAAPI cuProfilerStart();
CUresult CUDAAPI cuProfilerStop();
}

namespace {

using client::Gpu;

void rounds(const Gpu& gpu) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  for (;;) {
    nvtxRangePushA("round");
    gpu.axpy(1);
    nvtxDomainRangePushEx(domain, &attributes);
    gpu.axpy(2);
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    usleep(2'000);
  }
}

int listening(const sockaddr_un& address, socklen_t size) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(fd, 8) != 0)
    std::exit(3);
  return fd;
}

void own_socket() {
  constexpr int kConnections = 5;
  usleep(300'000);  // the profiler listens by now
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "attach_client-" + std::to_string(getpid());
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int own = listening(address, size);
  for (int fd = 3; fd < 65'536; ++fd) {
    struct stat status {};
    if (fd != own && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) dup2(own, fd);
  }
  usleep(1'500'000);  // it has looked at its descriptor again
  std::thread([&] {
    for (int i = 0; i < kConnections; ++i) {
      const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      if (connect(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0) std::exit(4);
      usleep(50'000);  // time for another thread to take it
    }
  }).join();
  fcntl(own, F_SETFL, O_NONBLOCK);
  int taken = 0;
  for (; taken < kConnections; ++taken)
    if (accept4(own, nullptr, nullptr, SOCK_CLOEXEC) < 0) break;
  std::printf("connections %d\n", taken);
}

void capture(const Gpu& gpu, unsigned seconds) {
  const auto launch = [&gpu](int times, int size) {
    for (int i = 0; i < times; ++i) gpu.axpy(size);
  };
  launch(5, 1);
  client::check(cuProfilerStart(), "cuProfilerStart");
  launch(7, 10);
  client::check(cuProfilerStop(), "cuProfilerStop");
  launch(6, 100);
  client::check(cuProfilerStart(), "cuProfilerStart");
  launch(4, 1'000);
  client::check(cuProfilerStop(), "cuProfilerStop");
  Gpu::synchronize();
  sleep(seconds);
}

void hidden() {
  prctl(PR_SET_DUMPABLE, 0);
  std::cout << std::endl;
  for (;;) pause();
}

void forks() {
  std::cin.get();
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  std::printf("%d\n", child);
  std::fflush(stdout);
  usleep(500'000);
}

void threads(const Gpu& gpu, unsigned count) {
  std::vector<std::thread> launching;
  for (unsigned i = 0; i < count; ++i)
    launching.emplace_back([&] {
      gpu.use();
      for (;; usleep(1'000)) {
        nvtxRangePushA("launch");
        gpu.axpy(16);
        nvtxRangePop();
      }
    });
  for (std::string line; std::getline(std::cin, line);) {
    malloc_trim(0);
    std::cout << std::endl;
  }
  for (std::thread& thread : launching) thread.join();
}

// y[0] is known after each launch: it begins as 0, and x[0] and a are 1.
void scarce(const Gpu& gpu) {
  using client::ScarceMemory;
  const float one = 1;
  float y = 0;
  client::check(cuMemcpyHtoD(gpu.x, &one, sizeof one), "cuMemcpyHtoD");
  client::check(cuMemcpyHtoD(gpu.y, &y, sizeof y), "cuMemcpyHtoD");
  std::atomic<bool> ending{false};
  std::atomic<unsigned> launches{0};
  std::thread launching([&] {
    gpu.use();
    while (!ending) {
      nvtxRangePushA("launch");
      gpu.axpy(16, nullptr, 1.0F);
      nvtxRangePop();
      if (++launches == 1) launches.notify_one();
      usleep(200);
    }
  });
  launches.wait(0);
  std::optional<ScarceMemory> memory;
  for (std::string line; std::getline(std::cin, line);) {
    memory.reset();
    const bool all = line.starts_with("all");
    if (all || line.starts_with("one"))
      memory.emplace(std::atol(line.c_str() + 3),
                     all ? ScarceMemory::Fails::kAllFromThere : ScarceMemory::Fails::kOne,
                     ScarceMemory::Of::kAllThreads);
    std::cout << std::endl;
  }
  memory.reset();
  ending = true;
  launching.join();
  Gpu::synchronize();
  client::check(cuMemcpyDtoH(&y, gpu.y, sizeof y), "cuMemcpyDtoH");
  std::cout << (y == static_cast<float>(launches.load()) ? "right" : "wrong") << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const Gpu gpu(argv[0]);
  if (name == "rounds")
    rounds(gpu);
  else if (name == "own_socket")
    own_socket();
  else if (name == "capture")
    capture(gpu, argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0);
  else if (name == "hidden")
    hidden();
  else if (name == "forks")
    forks();
  else if (name == "threads")
    threads(gpu, argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1);
  else if (name == "scarce")
    scarce(gpu);
  else
    return 2;
  return 0;
}
