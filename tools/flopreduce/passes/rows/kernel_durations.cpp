#include "passes/rows/kernel_durations.h"

#include <algorithm>

namespace flopinj::reduce {

KernelDurations::KernelDurations(const TraceTables& tables, uint32_t trace)
    : trace_(tables.traces[trace]),
      kernels_(tables),
      durations_(kernels_.size()),
      signature_(kernels_.size()) {}

void KernelDurations::add(const LaunchList& list) {
  for (size_t i = 0; i < list.size; ++i) {
    if (!list.is(i, LaunchList::kTimed) || list.is(i, LaunchList::kWindowed)) continue;
    const uint32_t kernel = kernels_.of(trace_, list.signature[i]);
    durations_.add_to_bucket(kernel, list.duration_ns[i]);
    uint32_t& lowest = signature_[kernel];
    lowest = lowest == 0 ? list.signature[i] : std::min(lowest, list.signature[i]);
  }
}

std::vector<trace::KernelDurations> KernelDurations::messages() const {
  constexpr int kMostValues = 1 << 16;  // and those of one kernel more: far below kMaxPacketBytes
  std::vector<size_t> order;
  for (size_t kernel = 0; kernel < signature_.size(); ++kernel)
    if (signature_[kernel] != 0 && !durations_.full()) order.push_back(kernel);
  std::ranges::sort(order, {}, [&](size_t kernel) { return signature_[kernel]; });
  std::vector<trace::KernelDurations> all;
  for (const size_t kernel : order) {
    if (all.empty() || all.back().kernel_size() >= kMostValues) all.emplace_back();
    trace::KernelDurations& message = all.back();
    message.add_kernel(signature_[kernel]);
    const int buckets_at = message.kernel_size();
    message.add_kernel(0);
    uint32_t last = 0;
    uint64_t buckets = 0;
    durations_.for_each_bucket(kernel, [&](uint32_t bucket, uint64_t launches) {
      message.add_kernel(bucket - last);
      message.add_kernel(launches);
      last = bucket;
      ++buckets;
    });
    message.set_kernel(buckets_at, buckets);
  }
  return all;
}

}  // namespace flopinj::reduce
