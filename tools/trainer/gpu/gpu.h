// Owners of the driver's objects: context, stream, memory, graph. All are used on threads where the
// context is current, and each keeps a reference to the DriverApi, which must outlive it.
#pragma once
#include <cuda.h>

#include <span>
#include <utility>
#include <vector>

#include "gpu/driver_api.h"

namespace trainer {

// Retains device 0's primary context, as programs on the CUDA runtime do, and makes it current.
class Context {
 public:
  explicit Context(const DriverApi& api);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DriverApi& api() const { return api_; }
  void make_current() const;  // needed once on every thread that calls the driver

 private:
  const DriverApi& api_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// A stream that does not wait for the default stream.
class Stream {
 public:
  explicit Stream(const DriverApi& api);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const DriverApi& api() const { return api_; }
  CUstream handle() const { return stream_; }
  void synchronize() const;

 private:
  const DriverApi& api_;
  CUstream stream_ = nullptr;
};

// Device memory for `size` values of T.
template <class T>
class Buffer {
 public:
  Buffer(const DriverApi& api, size_t size) : api_(&api), size_(size) {
    api.check(api.cuMemAlloc(&address_, size * sizeof(T)), "cuMemAlloc");
  }
  ~Buffer() {
    if (address_ != 0) api_->cuMemFree(address_);
  }
  Buffer(Buffer&& other) noexcept
      : api_(other.api_), size_(other.size_), address_(std::exchange(other.address_, 0)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;

  CUdeviceptr address() const { return address_; }
  size_t size() const { return size_; }

  // Copies in stream order. `values` has at most size() values and must stay valid until the stream
  // has run it.
  void upload(const Stream& stream, std::span<const T> values) {
    api_->check(
        api_->cuMemcpyHtoDAsync(address_, values.data(), values.size_bytes(), stream.handle()),
        "cuMemcpyHtoDAsync");
  }
  // Waits for the stream and returns the values.
  std::vector<T> download(const Stream& stream) const {
    std::vector<T> values(size_);
    api_->check(
        api_->cuMemcpyDtoHAsync(values.data(), address_, size_ * sizeof(T), stream.handle()),
        "cuMemcpyDtoHAsync");
    stream.synchronize();
    return values;
  }
  void clear(const Stream& stream) {
    static_assert(sizeof(T) == 4);
    api_->check(api_->cuMemsetD32Async(address_, 0, size_, stream.handle()), "cuMemsetD32Async");
  }

 private:
  const DriverApi* api_;
  size_t size_;
  CUdeviceptr address_ = 0;
};

// What a stream was asked to do between construction and finish(), ready to be launched again and
// again.
class CapturedGraph {
 public:
  explicit CapturedGraph(const Stream& stream);  // begins the capture
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void finish();        // ends the capture and instantiates
  void launch() const;  // on the captured stream

 private:
  const Stream& stream_;
  bool capturing_ = false;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

}  // namespace trainer
