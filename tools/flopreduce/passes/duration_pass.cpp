#include "passes/duration_pass.h"

#include <algorithm>
#include <unordered_map>

#include "flop_trace_fields.h"
#include "passes/packets/every_packet.h"
#include "passes/rows/durations.h"
#include "passes/rows/kernel_durations.h"
#include "passes/rows/tally_counts.h"
#include "reader/launch_batch.h"
#include "reader/message.h"
#include "reader/tally_batch.h"

namespace flopinj::reduce {
namespace {

// What is known of a trace's signatures while a batch is read. Most ids are small.
class Places {
 public:
  struct Place {
    uint64_t last_ns = 0;  // duration of its last launch in the batch
    uint32_t batch = 0;
    uint32_t kernel = 0;
  };
  explicit Places(const KernelNumbers& kernels) : kernels_(kernels), small_(kSmall) {}
  void begin_batch(const TraceState& trace) {
    if (trace_ != &trace || ++batch_ == 0) {
      std::fill(small_.begin(), small_.end(), Place{});
      large_.clear();
      batch_ = 1;
    }
    trace_ = &trace;
  }
  Place& of(uint32_t signature) {
    Place& place = signature < kSmall ? small_[signature] : large_[signature];
    if (place.batch != batch_) {
      if (place.batch == 0) place.kernel = kernels_.of(*trace_, signature);
      place.batch = batch_;
      place.last_ns = 0;
    }
    return place;
  }

 private:
  static constexpr uint32_t kSmall = 1U << 14;
  const KernelNumbers& kernels_;
  const TraceState* trace_ = nullptr;
  uint32_t batch_ = 0;
  std::vector<Place> small_;
  std::unordered_map<uint32_t, Place> large_;
};

// Of one thread.
struct Sums {
  explicit Sums(const KernelNumbers& kernels) : durations(kernels.size()), places(kernels) {}
  Durations durations;
  Places places;
};

void add_batch(const TraceState& trace, const LaunchBatchReader& batch, Sums& sums) {
  sums.places.begin_batch(trace);
  batch.for_each_timed(trace.patterns, [&](uint32_t signature, int64_t longer, bool windowed) {
    Places::Place& place = sums.places.of(signature);
    const uint64_t ns = place.last_ns + static_cast<uint64_t>(longer);
    if (ns > kLongestKernelNs) return;
    place.last_ns = ns;
    if (!windowed) sums.durations.add(place.kernel, ns);
  });
}

void add_tally(const TraceState& trace, const KernelNumbers& kernels, TallyBatchReader& batch,
               Durations& durations) {
  TallyRow row;
  while (batch.next(row))
    if (row.timed > 0 && !row.windowed && has_possible_time(row))
      durations.add(kernels.of(trace, row.signature), row.timed, row.times);
}

void add_packet(const TraceState& trace, const KernelNumbers& kernels, const Packet& packet,
                Sums& sums) {
  using Field = trace_fields::TracePacketField;
  DamageLog logged_before;
  switch (static_cast<Field>(packet.body_field)) {
    case Field::launch_batch: {
      LaunchBatchReader batch;
      if (batch.open(packet.body, logged_before)) add_batch(trace, batch, sums);
      break;
    }
    case Field::tally_batch: {
      TallyBatchReader batch;
      if (batch.open(packet.body, logged_before)) add_tally(trace, kernels, batch, sums.durations);
      break;
    }
    case Field::kernel_durations: {
      trace::KernelDurations message;
      if (parse_message(message, packet.body))
        for_each_bucket(message, [&](uint32_t signature, uint32_t bucket, uint64_t launches) {
          sums.durations.add_bucket(kernels.of(trace, signature), bucket, launches);
        });
      break;
    }
    default:
      break;
  }
}

}  // namespace

void duration_pass(const TraceTables& tables, const Segments& segments, const Revisions& revisions,
                   std::vector<TraceFile>& files, unsigned jobs, Totals& totals) {
  const KernelNumbers kernels(tables);
  const Sums sums = add_up_packets(
      segments, revisions, files, jobs, [&] { return Sums(kernels); },
      [&](uint32_t trace, const Packet& packet, Sums& to) {
        add_packet(tables.traces[trace], kernels, packet, to);
      },
      [](Sums& to, const Sums& from) { to.durations.add(from.durations); });
  totals.medians_left_out = sums.durations.full();
  for (size_t kernel = 0; kernel < kernels.size(); ++kernel)
    totals.launch_times[kernels.name(kernel)] = sums.durations.of(kernel);
}

}  // namespace flopinj::reduce
