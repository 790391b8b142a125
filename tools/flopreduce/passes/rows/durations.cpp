#include "passes/rows/durations.h"

#include <algorithm>

#include "support/wide.h"

namespace flopinj::reduce {

uint64_t* Durations::new_place(Kernel& kernel, uint32_t bucket) {
  if (!full_ && ++pages_ > kMostPages) give_up();
  if (full_) return nullptr;
  if (!kernel.pages) kernel.pages = std::make_unique<std::array<std::unique_ptr<Page>, kPages>>();
  auto& page = (*kernel.pages)[bucket / kPage];
  page = std::make_unique<Page>();
  return &(*page)[bucket % kPage];
}

void Durations::give_up() {
  full_ = true;
  for (Kernel& kernel : kernels_) kernel.pages.reset();
}

void Durations::add(size_t kernel, uint64_t launches, const ShortestLongest& times) {
  add_saturating(kernels_[kernel].launches, launches);
  kernels_[kernel].times.add(times);
}

void Durations::add_bucket(size_t kernel, uint32_t bucket, uint64_t launches) {
  if (uint64_t* const count = place(kernels_[kernel], bucket)) add_saturating(*count, launches);
}

void Durations::add(const Durations& o) {
  if (o.full_) give_up();
  for (size_t kernel = 0; kernel < kernels_.size(); ++kernel) {
    add(kernel, o.kernels_[kernel].launches, o.kernels_[kernel].times);
    o.for_each_bucket(
        kernel, [&](uint32_t bucket, uint64_t launches) { add_bucket(kernel, bucket, launches); });
  }
}

// The middle of the bucket that has the median, wherever launches that are in no bucket belong.
std::optional<double> Durations::median_ns(size_t kernel) const {
  const Kernel& k = kernels_[kernel];
  if (k.times.any() && k.times.shortest_ns == k.times.longest_ns)
    return static_cast<double>(k.times.shortest_ns);
  uint64_t in_buckets = 0;
  for_each_bucket(kernel,
                  [&](uint32_t, uint64_t launches) { add_saturating(in_buckets, launches); });
  if (in_buckets == 0 || in_buckets > k.launches) return std::nullopt;
  const uint64_t place = k.launches / 2 + k.launches % 2;
  const uint64_t elsewhere = k.launches - in_buckets;
  if (elsewhere >= place || place > in_buckets) return std::nullopt;
  uint64_t before = 0;
  std::optional<uint32_t> low, high;
  for_each_bucket(kernel, [&](uint32_t bucket, uint64_t launches) {
    before += launches;
    if (!low && before >= place - elsewhere) low = bucket;
    if (!high && before >= place) high = bucket;
  });
  if (low != high) return std::nullopt;
  const double middle = static_cast<double>(step_bucket_begin(*low)) / 2 +
                        static_cast<double>(step_bucket_begin(*low + 1) - 1) / 2;
  if (!k.times.any()) return middle;
  return std::clamp(middle, static_cast<double>(k.times.shortest_ns),
                    static_cast<double>(k.times.longest_ns));
}

LaunchTimes Durations::of(size_t kernel) const {
  LaunchTimes times;
  const ShortestLongest& known = kernels_[kernel].times;
  if (known.any()) times.min_ns = known.shortest_ns;
  if (known.any()) times.max_ns = known.longest_ns;
  times.median_ns = median_ns(kernel);
  return times;
}

}  // namespace flopinj::reduce
