// What the driver tests share: a device with a context and the test kernels, checked calls, and an
// observer that writes down what the driver reports.
#pragma once
#include <cuda.h>
#include <simgpu/hooks.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"

inline std::string error_name(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : std::to_string(result);
}

// For calls that must succeed; usable on any thread, unlike Catch's macros.
inline void check(CUresult result) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(error_name(result));
}

inline const simgpu::Driver& hooks() {
  const void* table = nullptr;
  check(cuGetExportTable(&table, &simgpu::kHooksUuid));
  return *static_cast<const simgpu::Driver*>(table);
}

// A device array of T, freed with the object.
template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : count_(values.size()) {
    check(cuMemAlloc(&address_, bytes()));
    check(cuMemcpyHtoD(address_, values.data(), bytes()));
  }
  ~Array() { cuMemFree(address_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    check(cuMemcpyDtoH(values.data(), address_, bytes()));
    return values;
  }

 private:
  CUdeviceptr address_ = 0;
  size_t count_;
};

class Gpu {
 public:
  Gpu() {
    check(cuInit(0));
    check(cuDeviceGet(&device, 0));
    check(cuCtxCreate(&context, nullptr, 0, device));
    check(cuModuleLoad(&module, TEST_KERNELS));
  }
  ~Gpu() { cuCtxDestroy(context); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  CUfunction function(const char* name) const {
    CUfunction f = nullptr;
    check(cuModuleGetFunction(&f, module, name));
    return f;
  }
  template <class... Args>
  static CUresult try_launch(CUfunction f, unsigned grid, unsigned block, unsigned shared,
                             CUstream stream, Args... args) {
    void* params[] = {&args..., nullptr};
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, params, nullptr);
  }
  template <class... Args>
  void launch(const char* name, unsigned grid, unsigned block, unsigned shared,
              Args... args) const {
    check(try_launch(function(name), grid, block, shared, nullptr, args...));
  }

  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
};

// Everything the driver says while one of these is alive. One at a time.
class Recorder {
 public:
  struct Event {
    std::string what;
    uint32_t correlation_id = 0;
  };

  Recorder() {
    observer_.self = this;
    observer_.api_enter = [](void* self, simgpu::ApiCall* c) {
      *c->correlation_data = c->correlation_id * 7ULL;
      at(self).add(std::string("enter ") + c->name, c->correlation_id);
      const std::lock_guard lock(at(self).mutex_);
      at(self).symbols.push_back(c->symbol != nullptr ? c->symbol : "");
    };
    observer_.api_exit = [](void* self, simgpu::ApiCall* c) {
      at(self).add(std::string("exit ") + c->name, c->correlation_id);
      const std::lock_guard lock(at(self).mutex_);
      at(self).data_kept = at(self).data_kept && *c->correlation_data == c->correlation_id * 7ULL;
    };
    observer_.kernel_begin = [](void* self, const simgpu::KernelRun* r) {
      at(self).add(std::string("begin ") + r->symbol, r->correlation_id);
    };
    observer_.kernel_end = [](void* self, const simgpu::KernelRun* r) {
      at(self).add(std::string("end ") + r->symbol, r->correlation_id);
      const std::lock_guard lock(at(self).mutex_);
      at(self).runs.push_back(*r);
    };
    observer_.memory_copy = [](void* self, const simgpu::MemoryCopy* c) {
      const std::lock_guard lock(at(self).mutex_);
      at(self).copies.push_back(*c);
    };
    observer_.context_created = [](void* self, CUcontext, uint32_t, uint32_t) {
      at(self).add("context created");
    };
    observer_.context_destroying = [](void* self, CUcontext, uint32_t, uint32_t) {
      at(self).add("context destroying");
    };
    observer_.stream_created = [](void* self, CUcontext, CUstream, uint32_t) {
      at(self).add("stream created");
    };
    observer_.stream_destroying = [](void* self, CUcontext, CUstream, uint32_t) {
      at(self).add("stream destroying");
    };
    observer_.module_loaded = [](void* self, CUcontext, const simgpu::ModuleInfo* m) {
      at(self).add("module loaded");
      const std::lock_guard lock(at(self).mutex_);
      at(self).module_bytes = m->image_bytes;
    };
    observer_.module_unloading = [](void* self, CUcontext, const simgpu::ModuleInfo*) {
      at(self).add("module unloading");
    };
    observer_.graph = [](void* self, simgpu::GraphEvent event, const simgpu::GraphInfo*) {
      static const char* const kNames[] = {"graph created", "graph destroying", "graph cloned",
                                           "node created",  "node cloned",      "node destroying",
                                           "exec created",  "exec destroying"};
      at(self).add(kNames[static_cast<size_t>(event)]);
    };
    observer_.synchronized = [](void* self, CUcontext, CUstream stream) {
      at(self).add(stream != nullptr ? "stream synchronized" : "context synchronized");
    };
    hooks().set_observer(&observer_);
  }
  ~Recorder() { hooks().set_observer(nullptr); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  std::vector<std::string> words() const {
    std::vector<std::string> all;
    for (const Event& e : events) all.push_back(e.what);
    return all;
  }
  void clear() {
    events.clear();
    runs.clear();
    copies.clear();
    symbols.clear();
  }

  std::vector<Event> events;
  std::vector<simgpu::KernelRun> runs;
  std::vector<simgpu::MemoryCopy> copies;
  std::vector<std::string> symbols;
  bool data_kept = true;
  size_t module_bytes = 0;

 private:
  static Recorder& at(void* self) { return *static_cast<Recorder*>(self); }
  void add(std::string what, uint32_t id = 0) {
    const std::lock_guard lock(mutex_);
    events.push_back({std::move(what), id});
  }
  std::mutex mutex_;
  simgpu::Observer observer_{};
};
