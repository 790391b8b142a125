// A program that forks while its other threads are busy: fork_client BUSY FROM CHILDREN SEED
//
//   BUSY  what two threads do all the time, a line of kBusy below
//   FROM  thread    an ordinary thread
//         callback  a callback of the program's own client of CUPTI
//         host      a host function of a stream
//         handler   a signal handler on the busy thread; every second child returns from it
//         before    an ordinary thread of a program that leaves CUDA to its children
//
// Every child uses NVTX, with its parent's handles and with names that are new, and ends. The
// program prints how many children did not end with 0; one that hangs ends by SIGALRM.
#include <cupti.h>
#include <dlfcn.h>
#include <injector/operators.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client.h"

namespace {

using client::Gpu;

constexpr unsigned kPatienceS = 30;
constexpr int kMostFailures = 3;  // each takes that long
constexpr int kRight = 0, kOtherHandle = 3;

const char* program = nullptr;
nvtxDomainHandle_t domain, numbers;
nvtxStringHandle_t text;
const FlopinjOperators* operators = nullptr;
std::atomic<bool> done{false};

nvtxEventAttributes_t registered() {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = text;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = 5;
  return attributes;
}

void push() {
  const nvtxEventAttributes_t attributes = registered();
  nvtxRangePushA("known");
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
  nvtxRangePop();
}
void mark() {
  const nvtxEventAttributes_t attributes = registered();
  nvtxRangePushA("known");
  nvtxDomainMarkEx(numbers, &attributes);
  nvtxRangePop();
}
void range() {
  const nvtxEventAttributes_t attributes = registered();
  nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &attributes));
}
std::string new_name() {
  static thread_local unsigned long number = 0;
  return std::to_string(getpid()) + " " + std::to_string(gettid()) + " " + std::to_string(++number);
}
void push_new() {
  nvtxRangePushA(new_name().c_str());
  nvtxRangePop();
}
void find() {
  nvtxDomainRegisterStringA(domain, "text");
  nvtxDomainCreateA("domain");
}
// Operators as flopinj.torch tells them, one that is known and one that is new.
void tell_operators() {
  static thread_local uint64_t hash = uint64_t(getpid()) << 32;
  for (const uint64_t one : {uint64_t{1}, ++hash}) {
    if (operators->push(one, 5) != 0) operators->push_named(one, 5, "aten::add", 9);
    operators->pop();
  }
}
// A copy of NVTX that finds the library.
void load_copy(const std::string& path) {
  void* const copy = dlopen(path.c_str(), RTLD_NOW);
  if (copy == nullptr) std::exit(2);
  reinterpret_cast<void (*)()>(dlsym(copy, "nvtx_copy_ranges"))();
  dlclose(copy);
}

// In a child. A call in a signal handler that interrupted the profiler does nothing.
int use_nvtx(bool in_handler) {
  push();
  mark();
  range();
  tell_operators();
  if (in_handler) return kRight;
  push_new();
  nvtxDomainRegisterStringA(domain, new_name().c_str());
  nvtxDomainCreateA(new_name().c_str());
  const bool same =
      nvtxDomainRegisterStringA(domain, "text") == text && nvtxDomainCreateA("domain") == domain;
  return same ? kRight : kOtherHandle;
}

struct Stream {
  explicit Stream(const Gpu& gpu) {
    gpu.use();
    client::check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  CUstream stream = nullptr;
};

using Step = std::function<void()>;
struct Busy {
  std::string_view name;
  Step (*step)(const Gpu*);
};

const Busy kBusy[] = {
    {"idle", [](const Gpu*) -> Step { return [] { usleep(1'000); }; }},
    {"push", [](const Gpu*) -> Step { return push; }},
    {"push_new", [](const Gpu*) -> Step { return push_new; }},
    {"mark", [](const Gpu*) -> Step { return mark; }},
    {"range", [](const Gpu*) -> Step { return range; }},
    {"find", [](const Gpu*) -> Step { return find; }},
    {"register",
     [](const Gpu*) -> Step {
       return [] { nvtxDomainRegisterStringA(domain, new_name().c_str()); };
     }},
    {"create", [](const Gpu*) -> Step { return [] { nvtxDomainCreateA(new_name().c_str()); }; }},
    {"operators", [](const Gpu*) -> Step { return tell_operators; }},
    {"copies",
     [](const Gpu*) -> Step {
       const std::string here = program;
       return [path = here.substr(0, here.rfind('/')) + "/nvtx_copy.so"] { load_copy(path); };
     }},
    {"thread", [](const Gpu*) -> Step { return [] { std::thread([] { push(); }).join(); }; }},
    {"launch",
     [](const Gpu* gpu) -> Step {
       return [gpu, s = Stream(*gpu)] {
         gpu->axpy(64, s.stream);
         client::check(cuStreamSynchronize(s.stream), "cuStreamSynchronize");
       };
     }},
    {"graph",
     [](const Gpu* gpu) -> Step {
       return [gpu, s = Stream(*gpu)] {
         CUgraph graph = nullptr;
         CUgraphExec exec = nullptr;
         cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
         gpu->axpy(64, s.stream);
         client::check(cuStreamEndCapture(s.stream, &graph), "cuStreamEndCapture");
         client::check(cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
         client::check(cuGraphLaunch(exec, s.stream), "cuGraphLaunch");
         client::check(cuStreamSynchronize(s.stream), "cuStreamSynchronize");
         cuGraphExecDestroy(exec);
         cuGraphDestroy(graph);
       };
     }},
    {"wait",
     [](const Gpu* gpu) -> Step {
       return [s = Stream(*gpu)] {
         client::check(cuLaunchHostFunc(
                           s.stream, [](void*) {}, nullptr),
                       "cuLaunchHostFunc");
         client::check(cuStreamSynchronize(s.stream), "cuStreamSynchronize");
       };
     }},
    {"module",
     [](const Gpu* gpu) -> Step {
       return [gpu] {
         CUmodule module = nullptr;
         gpu->use();
         client::check(cuModuleLoad(&module, gpu->module_path.c_str()), "cuModuleLoad");
         client::check(cuModuleUnload(module), "cuModuleUnload");
       };
     }},
};

// Makes a child, which runs `body` and ends with what it returns.
std::atomic<pid_t> made{0};
template <class Body>
void make_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(kPatienceS);
    _exit(body());
  }
  made = child;
}

// Of the handler.
std::atomic<int> signals{0};
std::atomic<bool> is_returning_child{false};
void handle(int) {
  const pid_t child = fork();
  if (child != 0) {
    made = child;
    return;
  }
  alarm(kPatienceS);
  const int result = use_nvtx(true);
  if (++signals % 2 == 0) _exit(result);
  is_returning_child = true;
}

void* symbol(const char* file, const char* name) {
  void* const library = dlopen(file, RTLD_LAZY);
  void* const found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) std::exit(2);
  return found;
}

// As in the headers of CUPTI 13.2 and later.
struct Params {
  size_t size = 40;
  const char* name = "fork_client";
  char* old_name = nullptr;
  size_t old_name_size = 0;
  uint8_t allow_multiple = 1;
  uint8_t padding[7] = {};
};

std::atomic<bool> wanted{false};  // by the next callback
void CUPTIAPI callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {
  if (wanted.exchange(false)) make_child([] { return use_nvtx(false); });
}

void subscribe() {
  CUpti_SubscriberHandle handle = nullptr;
  Params params;
  const auto subscribe =
      reinterpret_cast<CUptiResult (*)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                                       Params*)>(symbol("libcupti.so.13", "cuptiSubscribe_v2"));
  const auto enable = reinterpret_cast<CUptiResult (*)(uint32_t, CUpti_SubscriberHandle,
                                                       CUpti_CallbackDomain, CUpti_CallbackId)>(
      symbol("libcupti.so.13", "cuptiEnableCallback"));
  if (subscribe(&handle, callback, nullptr, &params) != CUPTI_SUCCESS ||
      enable(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) !=
          CUPTI_SUCCESS)
    std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  program = argv[0];
  const std::string_view from = argv[2];
  const int children = std::atoi(argv[3]);
  std::minstd_rand random(static_cast<unsigned>(std::atoi(argv[4])));
  domain = nvtxDomainCreateA("domain");
  numbers = nvtxDomainCreateA("flopinj");
  text = nvtxDomainRegisterStringA(domain, "text");
  const auto get_operators = reinterpret_cast<const FlopinjOperators* (*)()>(
      symbol(std::getenv("NVTX_INJECTION64_PATH"), "flopinj_operators"));
  operators = get_operators();
  const std::unique_ptr<const Gpu> gpu(from == "before" ? nullptr : new Gpu(program));
  if (from == "callback") subscribe();

  Step (*step)(const Gpu*) = nullptr;
  for (const Busy& busy : kBusy)
    if (busy.name == argv[1]) step = busy.step;
  if (step == nullptr) return 2;
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  // Modules of simgpu are libraries, as copies of NVTX are: the C library may not start a thread in
  // the child of a process that was loading one.
  const bool starts_threads =
      std::string_view(argv[1]) != "module" && std::string_view(argv[1]) != "copies";
  const int count = from == "handler" ? 1 : 2;  // that a child has no other thread to wait for
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      // Whoever forks, and the children, come first: the test is over sooner.
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
      const Step work = step(gpu.get());
      for (int warm = 0; warm < 10; ++warm) work();
      for (++ready; !done.load();) {
        work();
        if (is_returning_child.load()) _exit(use_nvtx(false));
      }
    });
  while (ready < count) usleep(100);

  std::signal(SIGUSR1, handle);
  std::unique_ptr<Stream> stream;
  if (gpu != nullptr) stream = std::make_unique<Stream>(*gpu);
  int failures = 0, number = 0;
  for (; number < children && failures < kMostFailures; ++number) {
    usleep(static_cast<useconds_t>(random() % 300));
    made = 0;
    if (from == "thread") {
      make_child([&] {
        const int result = use_nvtx(false);
        if (starts_threads) std::thread([] { push_new(); }).join();
        return result;
      });
    } else if (from == "before") {
      make_child([] {
        const Gpu own(program);
        own.axpy(64);
        Gpu::synchronize();
        std::exit(use_nvtx(false));
        return kRight;
      });
    } else if (from == "callback") {
      wanted = true;
      gpu->axpy(64, stream->stream);
    } else if (from == "host") {
      const CUhostFn forks = [](void*) { make_child([] { return use_nvtx(false); }); };
      client::check(cuLaunchHostFunc(stream->stream, forks, nullptr), "cuLaunchHostFunc");
    } else {
      ++signals;
      pthread_kill(threads.front().native_handle(), SIGUSR1);
    }
    while (made == 0) usleep(50);
    int status = 0;
    if (waitpid(made, &status, 0) < 0 || status != 0) {
      ++failures;
      std::fprintf(stderr, "client: child %d: status 0x%x\n", number,
                   static_cast<unsigned>(status));
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d children, %d failed\n", number, failures);
  std::fflush(stdout);
  return failures == 0 ? 0 : 1;
}
