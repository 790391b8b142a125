// What a summary keeps of how long the launches of each kernel took (the format's KernelDurations).
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/rows/durations.h"
#include "reader/launch_batch.h"
#include "step_buckets.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// A number for each kernel, as the names of signatures say it.
class KernelNumbers {
 public:
  explicit KernelNumbers(const TraceTables& tables) {
    std::unordered_map<uint32_t, uint32_t> number_of;
    for (uint32_t s = 0; s < tables.signatures.size(); ++s) {
      const uint32_t name = s == SignatureTable::kUndefined ? kNoIndex : tables.signatures[s].name;
      const auto [known, fresh] = number_of.try_emplace(name, static_cast<uint32_t>(size()));
      if (fresh) names_.push_back(name);
      of_.push_back(known->second);
    }
  }
  size_t size() const { return names_.size(); }
  uint32_t name(size_t kernel) const { return names_[kernel]; }  // NamePool; kNoIndex: not known
  // By the signature's id in a trace.
  uint32_t of(const TraceState& trace, uint32_t signature) const {
    const uint32_t index = trace.signatures.get(signature);
    return of_[index != kNoIndex ? index : SignatureTable::kUndefined];
  }

 private:
  std::vector<uint32_t> names_, of_;  // by kernel; by signature
};

// Of one recording.
class KernelDurations {
 public:
  // `tables` must outlive this.
  KernelDurations(const TraceTables& tables, uint32_t trace);
  // Of a batch, those that were timed outside of windows.
  void add(const LaunchList& list);
  std::vector<trace::KernelDurations> messages() const;

 private:
  const TraceState& trace_;
  KernelNumbers kernels_;
  Durations durations_;
  std::vector<uint32_t> signature_;  // the lowest id of each kernel; 0: no launch yet
};

// Calls visit(signature, bucket, launches) for each bucket. What cannot be ends the message.
template <typename Visit>
void for_each_bucket(const trace::KernelDurations& message, Visit&& visit) {
  const auto& all = message.kernel();
  for (int i = 0; i + 1 < all.size();) {
    const uint64_t signature = all[i++];
    const uint64_t buckets = all[i++];
    if (signature > UINT32_MAX || buckets > static_cast<uint64_t>(all.size() - i) / 2) return;
    uint64_t bucket = 0;
    for (uint64_t n = 0; n < buckets; ++n, i += 2) {
      bucket += std::min<uint64_t>(all[i], kStepBuckets);
      if (bucket >= kStepBuckets) return;
      visit(static_cast<uint32_t>(signature), static_cast<uint32_t>(bucket), all[i + 1]);
    }
  }
}

}  // namespace flopinj::reduce
