// Memory for CUPTI's activity records, bounded in bytes.
//
// CUPTI asks for a buffer, fills it and gives it back once its records are finished; where the
// program runs far ahead of the GPU, it holds many at a time. From API version 27 (CUDA 12.9) on,
// CUPTI takes no buffer for an answer: it drops records and counts them. Before, it crashes the
// program (pytorch/kineto, issue 1275 and pull request 1038): there it is given more than the
// bound, and crowded() says that it has to be stopped from asking (activity.h).
//
// A buffer is CUPTI's until it comes back: CUPTI may write into it at any time, also after the
// recording (pytorch/pytorch, pull requests 195207 and 195471), so its addresses are used for
// nothing else. NVIDIA does not say what becomes of a buffer that CUPTI holds when it is finalised;
// after the end of a subscription such buffers have never come back (pull request 195471). Where
// that is likely, a buffer is left behind: it keeps its addresses, its pages go back to the system,
// it no longer counts for the bound, and what might come in it is not read.
//
// Threads: any.
#pragma once
#include <collector/base/mutex.h>

#include <array>
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
    size_t kept = 8;  // free buffers that the system does not get before the recording ends
    size_t most_left = 16'384;  // left behind: 16 GiB of addresses, none of memory
  };
  // `may_refuse`: CUPTI takes null for an answer.
  ActivityBuffers(Limits limits, bool may_refuse);
  ~ActivityBuffers();

  struct Buffer {
    uint8_t* data = nullptr;
    size_t bytes = 0;
  };
  // Nothing where CUPTI may be refused and the bound is reached. Else only where there is no memory
  // and the reserve for that case is used up too.
  Buffer take() noexcept;
  // Of a buffer that CUPTI does not hold nothing is done: it is another client's.
  void give_back(uint8_t* data) noexcept;

  // A recording has ended, after CUPTI was asked for every buffer. `for_good`: CUPTI, or the
  // subscription, has ended too. Then what is held is left behind; else what was held when the
  // recording before ended. Past `most_left`, and where its pages are locked, a buffer
  // stays in the bound.
  void recording_ended(bool for_good) noexcept;
  bool left_behind(const uint8_t* data) const;

  uint64_t taken() const;  // buffers, so far
  // Of the first `taken`, those that CUPTI holds and was given in this recording.
  size_t held_of(uint64_t taken) const;

  size_t held_bytes() const;  // by CUPTI
  size_t left() const;        // buffers left behind
  bool crowded() const { return held_bytes() >= limits_.most_bytes; }
  bool has_room() const { return held_bytes() <= limits_.most_bytes / 2; }
  uint64_t shortages() const;  // requests that found the bound reached, or no memory

 private:
  static constexpr size_t kReserved = 4, kReservedBytes = size_t{64} << 10;
  struct Held : Buffer {
    uint64_t number = 0;      // from 1
    bool of_earlier = false;  // recording
  };
  Buffer allocate() noexcept FLOPINJ_REQUIRES(mutex_);
  void keep_or_free(Buffer) noexcept FLOPINJ_REQUIRES(mutex_);
  void fill_reserve() noexcept FLOPINJ_REQUIRES(mutex_);

  const Limits limits_;
  const bool may_refuse_;
  mutable Mutex mutex_;
  std::vector<uint8_t*> free_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<Held> held_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<Buffer> left_ FLOPINJ_GUARDED_BY(mutex_);
  std::array<uint8_t*, kReserved> reserve_ FLOPINJ_GUARDED_BY(mutex_){};  // null: CUPTI has it
  uint64_t taken_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  size_t held_bytes_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  uint64_t shortages_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
