// GPU times of kernels, from CUPTI's activity records.
//
//   start()    register the buffer callbacks, then enable the kernel records
//   flush()    the writer thread asks now and then; finished records are handed to the collector
//              before it returns, or later on CUPTI's own thread when a buffer fills up
//   finish()   no launch will follow: flush() now also takes buffers with unfinished records
//   stop()     the kind is disabled
//
// Buffers come from a small pool: where the program outruns us, CUPTI gets none and drops, and
// counts, records.
#pragma once
#include <injector/edge.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace flopinj {

class Activity {
 public:
  explicit Activity(Edge&);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // False, with one line in `error`, when CUPTI refuses or its records have no known layout.
  bool start(std::string& error);
  void flush();
  void finish() { finishing_.store(true, std::memory_order_relaxed); }
  void stop();

  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }  // cumulative

 private:
  struct Pool;
  struct Callbacks;  // what CUPTI calls
  void read(uint8_t* buffer, size_t valid_bytes) noexcept;

  Edge& edge_;
  std::unique_ptr<Pool> pool_;
  std::atomic<uint64_t> lost_{0};
  std::atomic<bool> finishing_{false}, running_{false};
};

}  // namespace flopinj
