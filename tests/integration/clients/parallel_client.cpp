// Data-parallel training as it is: parallel_client NAME=VALUE ... Ranks compute, and their
// collectives wait for each other; the host runs ahead of the GPU and reads the loss now and then.
// It needs a GPU whose work is asynchronous (SIMGPU_ASYNC=1), and prints of each rank
//   rank R seconds S        of all steps
//   rank R held|free        with look=1: who has the counters, at each loss. Then there are as many
//                           steps as it takes until rank 0 has seen them held, and free again
//
//   ranks=2        processes, one device each; with threads=1: threads of this process; with
//                  threads=0: one thread of this process, which launches on one device after the
//                  other, so that the second's collectives come behind the first's next launch
//   steps=200      step_ms=30: how long its collectives take    ahead=4: steps, of the host
//   read_every=10  steps from one loss to the next; 0: no call ever waits for the GPU
//   late=0         from this step on there is one kernel more
//   leave=0        1: rank 0 exits with a collective in flight that no other rank comes to
//   order=0        1: the host launches a kernel between a receive and the send that its peer waits
//                  for, in the opposite order on every second rank
#include <cupti_range_profiler.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client.h"
#include "driver/execution/patience.h"

namespace {

using client::check;
using client::Gpu;
using Clock = std::chrono::steady_clock;

constexpr int kCollectives = 3;  // in one step

std::map<std::string, int> g_options{
    {"ranks", 2},       {"threads", -1}, {"steps", 200}, {"step_ms", 30}, {"ahead", 4},
    {"read_every", 10}, {"late", 0},     {"leave", 0},   {"order", 0},    {"look", 0}};
int option(const char* name) { return g_options.at(name); }

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

// What ranks say to the network: how many of their collectives have begun; and it to them: how many
// have ended.
// In that of rank 0 is how many steps there are.
struct Wire {
  unsigned arrived, released, steps;
  unsigned char rest[4096 - 3 * sizeof(unsigned)];
};
unsigned get(const unsigned& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
void set(unsigned& word, unsigned value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }

// Lets a collective end once all ranks are in it, and some time has passed. Until all ranks have
// ended, as `ended` says.
void be_network(Wire* wires, const std::function<bool()>& ended) {
  const auto takes = std::chrono::microseconds(option("step_ms") * 1'000 / kCollectives);
  const int ranks = option("ranks");
  for (unsigned number = 1;; ++number) {
    const simgpu::Patience patience;
    for (int rank = 0; rank < ranks;) {
      if (get(wires[rank].arrived) >= number) {
        ++rank;
        continue;
      }
      if (ended()) return;
      patience.rest();
    }
    std::this_thread::sleep_for(takes);
    for (int rank = 0; rank < ranks; ++rank) set(wires[rank].released, number);
  }
}

// Whether the range profiler of the context can be had: nobody else has it.
bool counters_free(CUcontext context) {
  void* const library = dlopen("libcupti.so.13", RTLD_LAZY);
  const auto find = [&](const char* name) { return library ? dlsym(library, name) : nullptr; };
  const auto initialize =
      reinterpret_cast<decltype(&cuptiProfilerInitialize)>(find("cuptiProfilerInitialize"));
  const auto enable =
      reinterpret_cast<decltype(&cuptiRangeProfilerEnable)>(find("cuptiRangeProfilerEnable"));
  const auto disable =
      reinterpret_cast<decltype(&cuptiRangeProfilerDisable)>(find("cuptiRangeProfilerDisable"));
  if (initialize == nullptr || enable == nullptr || disable == nullptr) std::exit(3);
  CUpti_Profiler_Initialize_Params ours{};  // a recording that has ended has taken back its own
  ours.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  if (initialize(&ours) != CUPTI_SUCCESS) std::exit(3);
  CUpti_RangeProfiler_Enable_Params on{};
  on.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
  on.ctx = context;
  if (enable(&on) != CUPTI_SUCCESS) return false;
  CUpti_RangeProfiler_Disable_Params off{};
  off.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
  off.pRangeProfilerObject = on.pRangeProfilerObject;
  if (disable(&off) != CUPTI_SUCCESS) std::exit(3);
  return true;
}

class Rank {
 public:
  Rank(const char* program, int number, int device, Wire& wire)
      : number_(number), gpu_(program, device), wire_(wire) {
    for (CUstream* stream : {&compute_, &communication_})
      check(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (CUevent* event : {&ready_, &done_})
      check(cuEventCreate(event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    check(cuMemHostRegister(&wire_, sizeof wire_, CU_MEMHOSTREGISTER_DEVICEMAP),
          "cuMemHostRegister");
    check(cuMemHostGetDevicePointer(&words_, &wire_, 0), "cuMemHostGetDevicePointer");
    check(cuMemAlloc(&matrix_, 64 * 64 * sizeof(float)), "cuMemAlloc");
    check(cuMemsetD8(matrix_, 0, 64 * 64 * sizeof(float)), "cuMemsetD8");
    Gpu::synchronize();
  }

  // Forward, backward, a step of the optimizer.
  void step(int number) {
    gpu_.use();
    forward();
    for (int part = 0; part < kCollectives; ++part) {
      if (option("order") != 0 && number_ % 2 == 1) backward(part);
      collective();
      if (option("order") == 0 || number_ % 2 == 0) backward(part);
    }
    check(cuStreamWaitEvent(compute_, done_, 0), "cuStreamWaitEvent");
    gpu_.axpy(2'000, compute_, 0.5F);
    if (option("late") != 0 && number >= option("late")) gpu_.dot(33, compute_);
  }

  // So many steps of the GPU lie behind the host.
  void keep_ahead(int number) const {
    const int done = (number - option("ahead")) * kCollectives;
    const simgpu::Patience patience;
    while (static_cast<int>(get(wire_.released)) < done) patience.rest();
  }

  void read_loss(int number, Wire& first) {
    gpu_.use();
    float loss = 0;
    check(cuMemcpyDtoHAsync(&loss, gpu_.y, sizeof loss, compute_), "cuMemcpyDtoHAsync");
    check(cuStreamSynchronize(compute_), "cuStreamSynchronize");
    if (option("look") == 0) return;
    const bool free = counters_free(gpu_.context);
    std::printf("rank %d %s\n", number_, free ? "free" : "held");
    was_held_ |= !free;
    // The step in which a rank may be that is as far ahead as it can be is the last one.
    if (number_ == 0 && free && std::exchange(was_held_, false))
      set(first.steps, static_cast<unsigned>(number + option("ahead") + 2));
  }

  void finish() {
    gpu_.use();
    Gpu::synchronize();
  }

 private:
  void forward() {
    int n = 64;
    void* parameters[] = {&n, &matrix_, &gpu_.x, &gpu_.y};
    check(cuLaunchKernel(gpu_.function("matrix_vector"), 2, 1, 1, 32, 1, 1, 0, compute_, parameters,
                         nullptr),
          "matrix_vector");
    gpu_.axpy(1'000, compute_);
  }
  void backward(int part) { gpu_.axpy(3'000 + 100 * part, compute_); }

  void collective() {
    ++collectives_;
    check(cuEventRecord(ready_, compute_), "cuEventRecord");
    check(cuStreamWaitEvent(communication_, ready_, 0), "cuStreamWaitEvent");
    check(cuStreamWriteValue32(communication_, words_, collectives_, 0), "cuStreamWriteValue32");
    CUdeviceptr released = words_ + offsetof(Wire, released);
    unsigned before = collectives_ - 1;
    void* parameters[] = {&released, &before};
    check(cuLaunchKernel(gpu_.function("wait_for_flag"), 1, 1, 1, 1, 1, 1, 0, communication_,
                         parameters, nullptr),
          "wait_for_flag");
    gpu_.all_reduce(32, communication_);
    check(cuEventRecord(done_, communication_), "cuEventRecord");
  }

  const int number_;
  Gpu gpu_;
  Wire& wire_;
  CUdeviceptr words_ = 0, matrix_ = 0;
  CUstream compute_ = nullptr, communication_ = nullptr;
  CUevent ready_ = nullptr, done_ = nullptr;
  unsigned collectives_ = 0;
  bool was_held_ = false;
};

// Of one thread: its ranks take turns.
void train(const std::vector<std::unique_ptr<Rank>>& ranks, int first, Wire& of_first) {
  const auto began = Clock::now();
  for (int step = 0;; ++step) {
    for (const auto& rank : ranks) rank->keep_ahead(step);
    if (static_cast<unsigned>(step) >= get(of_first.steps)) break;
    for (const auto& rank : ranks) rank->step(step);
    if (const int every = option("read_every"); every != 0 && step % every == every - 1)
      for (const auto& rank : ranks) rank->read_loss(step, of_first);
  }
  if (option("leave") != 0 && first == 0) {
    ranks.front()->step(option("steps"));
    std::printf("rank 0 seconds %.3f\n", seconds_since(began));
    std::exit(0);
  }
  for (const auto& rank : ranks) rank->finish();
  for (size_t i = 0; i < ranks.size(); ++i)
    std::printf("rank %d seconds %.3f\n", first + static_cast<int>(i), seconds_since(began));
  std::fflush(stdout);
}

void train_one(const char* program, int number, int device, Wire* wires) {
  std::vector<std::unique_ptr<Rank>> ranks;
  ranks.push_back(std::make_unique<Rank>(program, number, device, wires[number]));
  train(ranks, number, wires[0]);
}

int in_processes(const char* program, Wire* wires) {
  const int ranks = option("ranks");
  for (int number = 0; number < ranks; ++number) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("RANK", std::to_string(number).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(number).c_str(), 1);
    train_one(program, number, number, wires);
    std::exit(0);
  }
  int ended = 0, worst = 0;
  const auto all_ended = [&] {
    for (int status = 0; waitpid(-1, &status, WNOHANG) > 0; ++ended)
      if (status != 0) worst = 1;
    return ended == ranks || worst != 0;
  };
  be_network(wires, all_ended);
  return worst;
}

int in_threads(const char* program, Wire* wires, bool one) {
  const int ranks = option("ranks");
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < (one ? 1 : ranks); ++number)
    threads.emplace_back([&, number] {
      std::vector<std::unique_ptr<Rank>> mine;
      for (int rank = number; rank < (one ? ranks : number + 1); ++rank)
        mine.push_back(std::make_unique<Rank>(program, rank, rank, wires[rank]));
      train(mine, number, wires[0]);
      ++ended;
    });
  be_network(wires, [&] { return ended.load() == static_cast<int>(threads.size()); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    const auto known = g_options.find(argument.substr(0, equals));
    if (equals == std::string::npos || known == g_options.end()) return 2;
    known->second = std::atoi(argument.c_str() + equals + 1);
  }
  void* const shared = mmap(nullptr, static_cast<size_t>(option("ranks")) * sizeof(Wire),
                            PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Wire* const wires = static_cast<Wire*>(shared);
  const bool known = option("look") == 0;
  set(wires[0].steps, known ? static_cast<unsigned>(option("steps")) : UINT_MAX);
  if (option("threads") < 0) return in_processes(argv[0], wires);
  return in_threads(argv[0], wires, option("threads") == 0);
}
