// Notices that kernel times have stopped coming.
//
// Before CUPTI 13.3 a process has one pair of buffer callbacks and one switch for each kind of
// record. Another client (torch.profiler) registers its own callbacks in the place of ours, and
// turns kernel records off when it is done. CUPTI reports neither; launches are made, and no record
// comes. Asking for records while the other client is at work takes them from it. A profile with
// records of every kernel is of a few steps, so they are asked for after kPatienceNs, and where
// asking has not helped, as while a kernel runs for long, twice as long after each time.
//
// Threads: the writer's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

namespace flopinj {

class ActivityWatch {
 public:
  static constexpr uint64_t kSilenceNs = 5'000'000'000;    // is said
  static constexpr uint64_t kPatienceNs = 10'000'000'000;  // then records are asked for again
  static constexpr uint64_t kMostPatienceNs = 300'000'000'000;

  enum class Advice : uint8_t { kNothing, kSayIt, kAskAgain };
  // Launches made and records received so far. kSayIt comes once for each silence, kAskAgain again
  // and again.
  Advice look(uint64_t launches, uint64_t records, uint64_t now_ns) {
    launches_ = launches;
    if (std::exchange(records_, records) != records || launches == answered_launches_) {
      answered_launches_ = launches;
      silent_since_ns_ = 0;
      said_ = false;
      return Advice::kNothing;
    }
    if (silent_since_ns_ == 0) {
      silent_since_ns_ = asked_ns_ = now_ns;
      patience_ns_ = kPatienceNs;
    }
    if (now_ns - asked_ns_ >= patience_ns_) {
      asked_ns_ = now_ns;
      patience_ns_ = std::min(2 * patience_ns_, kMostPatienceNs);
      return Advice::kAskAgain;
    }
    if (now_ns - silent_since_ns_ < kSilenceNs || std::exchange(said_, true))
      return Advice::kNothing;
    return Advice::kSayIt;
  }
  // No record was to come for the launches so far.
  void excuse(uint64_t launches, uint64_t records) {
    launches_ = answered_launches_ = launches;
    records_ = records;
    silent_since_ns_ = 0;
    said_ = false;
  }
  // Launches made in this silence; 0: records come.
  uint64_t unanswered() const { return launches_ - answered_launches_; }

 private:
  uint64_t launches_ = 0, answered_launches_ = 0, records_ = 0;
  uint64_t silent_since_ns_ = 0;             // 0: not
  uint64_t asked_ns_ = 0, patience_ns_ = 0;  // in this silence
  bool said_ = false;
};

}  // namespace flopinj
