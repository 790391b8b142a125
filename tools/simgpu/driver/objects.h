// The objects behind CUDA handles. Objects are shared: the handle tables (runtime.h) hold one
// reference, calls in progress others, so destroying a handle under another thread's feet is an
// error code and no crash.
#pragma once
#include <cuda.h>
#include <simgpu/hooks.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "driver/api/jit_log.h"
#include "driver/device.h"
#include "driver/execution/work_queue.h"
#include "ptx/code.h"

namespace simgpu {

struct Capture;
struct Function;

struct Stream {
  enum class Kind { kLegacyDefault, kPerThreadDefault, kCreated };
  static constexpr int kLeastPriority = 0, kGreatestPriority = -5;

  uint32_t id = 0;
  Kind kind = Kind::kCreated;
  unsigned int flags = 0;
  int priority = 0;
  CUgreenCtx green = nullptr;  // that it belongs to
  std::shared_ptr<Context> context;
  std::atomic<uint64_t> ready_ns{
      0};  // when the work given so far is done, on the modelled timeline

  std::shared_ptr<WorkQueue> queue;  // null: work is done at the call that gives it

  Stream() = default;
  ~Stream() {
    if (queue != nullptr) queue->close();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::mutex capture_mutex;
  std::shared_ptr<Capture> capture;  // null: not capturing; under capture_mutex

  // Takes part in the legacy default stream's ordering.
  bool blocking() const {
    return kind != Kind::kLegacyDefault && (flags & CU_STREAM_NON_BLOCKING) == 0;
  }
};

struct Event {
  std::shared_ptr<Context> context;
  unsigned int flags = 0;

  std::mutex mutex;
  bool recorded = false;  // false: as if completed long ago
  Mark mark;              // where in its stream; time_ns is set when it is reached
  uint64_t time_ns = 0;
  std::shared_ptr<Capture>
      capture;  // recorded in a capturing stream: a point in a graph, not in time
  std::vector<CUgraphNode> capture_nodes;
};

// Memory that kernels allocate: of the device's, as much as the context's limit says.
class Heap {
 public:
  uint64_t allocate(Device& device, uint64_t bytes, uint64_t limit);  // 0: there is none left
  bool free(Device& device, uint64_t address);
  void clear(Device& device);

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> pieces_;  // address to bytes
  uint64_t used_ = 0;
};

struct Context {
  uint32_t id = 0;
  Device* device = nullptr;
  bool primary = false;
  std::atomic<Session> session{Session{0, 0, 0}};  // while one is open nothing can be captured
  std::shared_ptr<Stream> legacy_stream;
  std::atomic<CUresult> failure{CUDA_SUCCESS};  // of asynchronous work; for good
  // By CUlimit: a thread's stack, what printf waits in, the heap of malloc.
  std::atomic<size_t> limits[3]{1 << 10, 1 << 20, 8 << 20};
  Heap heap;

  std::mutex mutex;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread_streams;
  std::vector<Mark> destroyed_streams;  // whose work was not done; it goes on
};

// The primary context, for some of the device's multiprocessors.
struct GreenContext {
  uint32_t id = 0;
  std::shared_ptr<Context> primary;
};

// Decoded PTX of a module and the device memory of its variables, which it frees.
struct ModuleCode {
  ptx::Program program;
  std::vector<CUdeviceptr> memory;

  ModuleCode() = default;
  ~ModuleCode();
  ModuleCode(const ModuleCode&) = delete;
  ModuleCode& operator=(const ModuleCode&) = delete;
};

struct Module {
  uint32_t id = 0;
  std::shared_ptr<Context> context;
  std::shared_ptr<const ModuleCode> code;
  std::vector<std::byte> cubin;                                // what tools are shown
  std::map<std::string, std::shared_ptr<Function>> functions;  // by name, made at load, then fixed
};

// A kernel of a module; a CUkernel has one per context it was used in.
struct Function {
  const char* symbol = nullptr;  // its name, valid for ever
  CUmodule module_handle = nullptr;
  uint32_t module_id = 0;
  std::shared_ptr<Context> context;
  std::shared_ptr<const ModuleCode> module_code;  // what `code` is in
  const ptx::Kernel* code = nullptr;
  std::atomic<uint32_t> max_dynamic_shared{48 * 1024};
};

struct Library {
  std::shared_ptr<const ptx::Module> text;
  std::vector<std::byte> bytes;
  std::mutex mutex;
  std::map<CUcontext, std::shared_ptr<Module>> modules;  // one per context that used it
  std::map<std::string, std::shared_ptr<struct Kernel>> kernels;
};

// Of cuLinkCreate: PTX text that grows, then is the image.
struct Link {
  std::mutex mutex;
  std::string text, image;
  api::JitLog errors, information;
};

struct Kernel {
  const ptx::Function* entry = nullptr;
  const char* symbol = nullptr;  // its name, valid for ever
  std::weak_ptr<Library> library;
};

}  // namespace simgpu
