#include "passes/rows/kernel_durations.h"

#include <algorithm>
#include <unordered_map>

#include "flop_trace_fields.h"
#include "reader/message.h"
#include "support/median.h"
#include "support/wide.h"

namespace flopinj::reduce {
namespace {

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

}  // namespace

Durations::Page& Durations::page(size_t kernel, uint32_t number) {
  auto& pages = kernels_[kernel].pages;
  if (const auto known = pages.find(number); known != pages.end()) return known->second;
  full_ = full_ || ++pages_ > kMostPages;
  return full_ ? nowhere_ : pages[number];
}

void Durations::add(size_t kernel, uint64_t launches, const ShortestLongest& times) {
  add_saturating(kernels_[kernel].launches, launches);
  kernels_[kernel].times.add(times);
}

void Durations::add_bucket(size_t kernel, uint32_t bucket, uint64_t launches) {
  add_saturating(page(kernel, bucket / kPage)[bucket % kPage], launches);
}

void Durations::add(const Durations& o) {
  full_ = full_ || o.full_;
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
  const uint64_t elsewhere = k.launches - in_buckets;
  const auto at = [&](uint64_t place) -> std::optional<double> {  // from 1
    if (elsewhere >= place || place > in_buckets) return std::nullopt;
    uint64_t before = 0;
    std::optional<uint32_t> low, high;
    for_each_bucket(kernel, [&](uint32_t bucket, uint64_t launches) {
      before += launches;
      if (!low && before >= place - elsewhere) low = bucket;
      if (!high && before >= place) high = bucket;
    });
    if (low != high) return std::nullopt;
    const double middle = step_bucket_middle(*low);
    if (!k.times.any()) return middle;
    return std::clamp(middle, static_cast<double>(k.times.shortest_ns),
                      static_cast<double>(k.times.longest_ns));
  };
  const auto low = at(k.launches / 2 + k.launches % 2), high = at(k.launches / 2 + 1);
  return low && high ? std::optional(half_way(*low, *high)) : std::nullopt;
}

LaunchTimes Durations::of(size_t kernel) const {
  LaunchTimes times;
  const ShortestLongest& known = kernels_[kernel].times;
  if (known.any()) times.min_ns = known.shortest_ns;
  if (known.any()) times.max_ns = known.longest_ns;
  times.median_ns = median_ns(kernel);
  return times;
}

KernelNumbers::KernelNumbers(const SignatureTable& signatures) {
  std::unordered_map<uint32_t, uint32_t> number_of;
  for (uint32_t s = 0; s < signatures.size(); ++s) {
    const uint32_t name = s == SignatureTable::kUndefined ? kNoIndex : signatures[s].name;
    const auto [known, fresh] = number_of.try_emplace(name, static_cast<uint32_t>(names.size()));
    if (fresh) names.push_back(name);
    of_signature.push_back(known->second);
  }
}

void KernelDurations::launches(const RowTable& rows, const LaunchPiece& piece) {
  if (piece.windowed) return;
  if (rows_.size() < rows.size()) rows_.resize(rows.size());
  for (size_t i = 0; i < piece.size; ++i) {
    const uint64_t ns = piece.duration_ns[i];
    if (ns == LaunchPiece::kNoTime) continue;
    OfRow& row = rows_[piece.row[i]];
    row.shortest_ns = std::min(row.shortest_ns, ns);
    row.longest_ns = std::max(row.longest_ns, ns);
    const uint32_t bucket = step_bucket(ns);
    if (row.page_number != bucket / Durations::kPage) {
      row.page_number = bucket / Durations::kPage;
      row.page =
          &durations_.page(kernels_.of_signature[rows.signature(piece.row[i])], row.page_number);
    }
    ++(*row.page)[bucket % Durations::kPage];
  }
}

void KernelDurations::end(const RowTable& rows) {
  for (uint32_t row = 0; row < rows_.size(); ++row)
    durations_.add(kernels_.of_signature[rows.signature(row)], rows.hot(row).timed, times(row));
  rows_.clear();
}

void KernelDurations::tally(const RowTable& rows, uint32_t row, const TallyRow& tally) {
  if (tally.timed > 0 && !tally.windowed && tally.has_possible_time())
    durations_.add(kernels_.of_signature[rows.signature(row)], tally.timed, tally.times);
}

void KernelDurations::packet(uint32_t trace, const Packet& packet) {
  trace::KernelDurations message;
  if (packet.body_field !=
          static_cast<uint32_t>(trace_fields::TracePacketField::kernel_durations) ||
      !parse_message(message, packet.body))
    return;
  for_each_bucket(message, [&](uint32_t id, uint32_t bucket, uint64_t launches) {
    const uint32_t signature = tables_.traces[trace].signatures.get(id);
    durations_.add_bucket(
        kernels_.of_signature[signature != kNoIndex ? signature : SignatureTable::kUndefined],
        bucket, launches);
  });
}

void KernelDurations::give(Totals& totals) const {
  totals.medians_left_out = durations_.full();
  for (size_t kernel = 0; kernel < kernels_.names.size(); ++kernel)
    totals.launch_times[kernels_.names[kernel]] = durations_.of(kernel);
}

// A kernel is named by the lowest id of its signatures.
std::vector<trace::KernelDurations> KernelDurations::messages(RowTable& rows) const {
  constexpr int kMostValues = 1 << 16;  // and those of one kernel more: far below kMaxPacketBytes
  std::vector<trace::KernelDurations> all;
  if (durations_.full()) return all;
  std::vector<uint64_t> named;  // id above kernel
  for (uint32_t row = 1; row < rows.size(); ++row)
    if (rows.hot()[row].timed > 0)
      named.push_back(uint64_t{rows.info(row).signature_id} << 32 |
                      kernels_.of_signature[rows.signature(row)]);
  std::ranges::sort(named);
  std::vector<bool> done(kernels_.names.size());
  for (const uint64_t each : named) {
    const auto signature = static_cast<uint32_t>(each >> 32), kernel = static_cast<uint32_t>(each);
    if (done[kernel]) continue;
    done[kernel] = true;
    if (all.empty() || all.back().kernel_size() >= kMostValues) all.emplace_back();
    trace::KernelDurations& message = all.back();
    message.add_kernel(signature);
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
