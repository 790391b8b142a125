// Memory for CUPTI's activity records, bounded in bytes.
//
// CUPTI asks for a buffer, fills it and gives it back once its records are finished; where the
// program runs far ahead of the GPU, it holds many at a time. From API version 27 (CUDA 12.9) on,
// CUPTI takes no buffer for an answer: it drops records and counts them. Before, it crashes the
// program (pytorch/kineto, issue 1275 and pull request 1038): there it is given more than the
// bound, and crowded() says that it has to be stopped from asking (activity.h).
//
// Threads: any.
#pragma once
#include <collector/identity/mutex.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kFirstVersionThatTakesNoBuffer = 27;

class ActivityBuffers {
 public:
  struct Limits {
    size_t buffer_bytes = size_t{1} << 20;
    size_t most_bytes = size_t{256} << 20;  // held by CUPTI
    size_t kept = 8;                        // free buffers that are not given back to the system
  };
  // `may_refuse`: CUPTI takes null for an answer.
  ActivityBuffers(Limits limits, bool may_refuse);
  ~ActivityBuffers();
  ActivityBuffers(const ActivityBuffers&) = delete;
  ActivityBuffers& operator=(const ActivityBuffers&) = delete;

  struct Buffer {
    uint8_t* data = nullptr;
    size_t bytes = 0;
  };
  // Nothing where CUPTI may be refused and the bound is reached. Else only where there is no memory
  // and the reserve for that case is used up too.
  Buffer take() noexcept;
  // Of a buffer that CUPTI does not hold nothing is done: it is another client's.
  void give_back(uint8_t* data) noexcept;

  size_t held_bytes() const;  // by CUPTI
  bool crowded() const { return held_bytes() >= limits_.most_bytes; }
  bool has_room() const { return held_bytes() <= limits_.most_bytes / 2; }
  uint64_t shortages() const;  // requests that found the bound reached, or no memory

 private:
  static constexpr size_t kReserved = 4, kReservedBytes = size_t{64} << 10;
  Buffer allocate() noexcept FLOPINJ_REQUIRES(mutex_);

  const Limits limits_;
  const bool may_refuse_;
  mutable Mutex mutex_;
  std::vector<uint8_t*> free_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<Buffer> held_ FLOPINJ_GUARDED_BY(mutex_);
  uint8_t* reserve_ = nullptr;  // kReserved buffers, made at the start
  size_t held_bytes_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  uint64_t shortages_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
