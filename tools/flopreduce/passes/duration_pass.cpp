#include "passes/duration_pass.h"

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

// Of one thread.
struct Sums {
  explicit Sums(size_t kernels) : durations(kernels) {}
  Durations durations;
  LaunchList list;
};

void add_batch(const TraceState& trace, const KernelNumbers& kernels,
               const LaunchBatchReader& batch, Sums& sums) {
  if (!batch.has_times()) return;
  DamageLog logged_before;
  LaunchList& list = sums.list;
  batch.read(trace.patterns, list);
  batch.read_times(list, logged_before);
  for (size_t i = 0; i < list.size; ++i)
    if (list.is(i, LaunchList::kTimed) && !list.is(i, LaunchList::kWindowed))
      sums.durations.add(kernels.of(trace, list.signature[i]), list.duration_ns[i]);
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
      if (batch.open(packet.body, logged_before)) add_batch(trace, kernels, batch, sums);
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
      segments, revisions, files, jobs, [&] { return Sums(kernels.size()); },
      [&](uint32_t trace, const Packet& packet, Sums& to) {
        add_packet(tables.traces[trace], kernels, packet, to);
      },
      [](Sums& to, const Sums& from) { to.durations.add(from.durations); });
  totals.medians_left_out = sums.durations.full();
  for (size_t kernel = 0; kernel < kernels.size(); ++kernel)
    totals.launch_times[kernels.name(kernel)] = sums.durations.of(kernel);
}

}  // namespace flopinj::reduce
