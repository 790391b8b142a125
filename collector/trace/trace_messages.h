// What makes a packet of its body (sequence number, check sum, frame), and the parts of bodies that
// are written in more than one place: as a packet of its own and as a revision, or for several
// columns. Private to the trace writer.
#pragma once
#include <collector/trace/trace_writer.h>
#include <collector/trace/utf8.h>
#include <flop_trace_fields.h>
#include <proto/crc32c.h>

#include <algorithm>
#include <cstdint>
#include <protozero/pbf_builder.hpp>
#include <protozero/varint.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

namespace f = trace_fields;
using PacketBuilder = protozero::pbf_builder<f::TracePacketField>;

// Completes `body`, whose fields are written, and appends it with its frame to `framed`.
inline void seal_packet(std::string& body, uint32_t sequence, std::string& framed) {
  PacketBuilder(body).add_uint32(f::TracePacketField::sequence, sequence);
  const uint32_t check = crc32c(body.data(), body.size());
  PacketBuilder(body).add_fixed32(f::TracePacketField::crc32c, check);
  protozero::pbf_builder<f::TraceField>(framed).add_bytes(f::TraceField::packet, body);
}

template <class Builder, class Field, class T>
void add_runs(Builder& builder, Field field, const Runs<T>& runs) {
  std::vector<uint64_t> flat;
  flat.reserve(runs.pairs.size() * 2);
  for (const auto& [value, count] : runs.pairs) {
    flat.push_back(value);
    flat.push_back(count);
  }
  builder.add_packed_uint64(field, flat.begin(), flat.end());  // the same bytes as packed uint32
}

template <class Builder, class Field>
void add_text(Builder& builder, Field field, std::string_view text) {
  builder.add_string(field, to_utf8(text, kMaxTextBytes));
}

// One column of a list of rows.
template <class Builder, class Field, class Row, class Get>
void add_column(Builder& builder, Field field, std::span<const Row> rows, Get&& get) {
  std::vector<uint64_t> column;
  column.reserve(rows.size());
  for (const Row& row : rows) column.push_back(get(row));
  builder.add_packed_uint64(field, column.begin(), column.end());
}

template <class Builder, class Field>
void add_tally(Builder& to, Field field, std::span<const TallyRow> rows, uint64_t begin_ns,
               uint64_t end_ns) {
  using F = f::TallyBatchField;
  protozero::pbf_builder<F> b(to, field);
  b.add_uint64(F::begin_ns, begin_ns);
  b.add_uint64(F::end_ns, end_ns);
  add_column(b, F::thread, rows, [](const TallyRow& r) { return r.thread.value; });
  add_column(b, F::stream, rows, [](const TallyRow& r) { return r.stream.value; });
  add_column(b, F::signature, rows, [](const TallyRow& r) { return r.signature.value; });
  add_column(b, F::range_path, rows, [](const TallyRow& r) { return r.path.value; });
  add_column(b, F::launches, rows, [](const TallyRow& r) { return r.launches; });
  add_column(b, F::timed, rows, [](const TallyRow& r) { return r.timed; });
  add_column(b, F::gpu_time_ns, rows, [](const TallyRow& r) { return r.gpu_time_ns; });
  const auto any = [&](auto&& get) { return std::any_of(rows.begin(), rows.end(), get); };
  if (any([](const TallyRow& r) { return r.graph_launches != 0; }))
    add_column(b, F::graph_launches, rows, [](const TallyRow& r) { return r.graph_launches; });
  if (any([](const TallyRow& r) { return r.calls != 0; }))
    add_column(b, F::calls, rows, [](const TallyRow& r) { return r.calls; });
  if (any([](const TallyRow& r) { return r.windowed; }))
    add_column(b, F::windowed, rows, [](const TallyRow& r) { return uint64_t{r.windowed}; });
  if (any([](const TallyRow& r) { return r.in_step; }))
    add_column(b, F::in_step, rows, [](const TallyRow& r) { return uint64_t{r.in_step}; });
  const auto knows_times = [](const TallyRow& r) { return r.shortest_ns <= r.longest_ns; };
  if (!any(knows_times)) return;
  add_column(b, F::shortest_below, rows, [&](const TallyRow& r) {
    return knows_times(r) ? r.gpu_time_ns / r.timed - r.shortest_ns + 1 : 0;
  });
  add_column(b, F::longest_above, rows, [&](const TallyRow& r) {
    return knows_times(r) ? r.longest_ns - r.gpu_time_ns / r.timed + 1 : 0;
  });
}

inline constexpr size_t kNumberBytes = 30;  // of a row of RangeNumbers, at most
template <class Builder, class Field>
void add_numbers(Builder& to, Field field, std::span<const RangeNumber> all) {
  static_assert(RangeNumbers::kMost * kNumberBytes < kMaxPacketBytes);
  using F = f::RangeNumbersField;
  protozero::pbf_builder<F> b(to, field);
  add_column(b, F::range_path, all, [](const RangeNumber& n) { return n.path.value; });
  add_column(b, F::name, all, [](const RangeNumber& n) { return n.name.value; });
  add_column(b, F::times, all, [](const RangeNumber& n) { return n.times; });
  add_column(b, F::total, all, [](const RangeNumber& n) { return n.total; });
}

template <class Builder, class Field>
void add_ledger(Builder& to, Field field, const LedgerSnapshot& ledger) {
  using F = f::LedgerField;
  using D = f::LedgerPerDeviceField;
  using R = f::LedgerReasonField;
  protozero::pbf_builder<F> l(to, field);
  for (const auto& device : ledger.devices) {
    protozero::pbf_builder<D> d(l, F::device);
    d.add_uint32(D::device, device.device.value);
    d.add_uint64(D::launches, device.launches);
    d.add_uint64(D::recorded, device.recorded);
    d.add_uint64(D::dropped, device.dropped);
  }
  const auto add_reasons = [&l](F reasons_field, const auto& reasons) {
    for (const auto& [reason, count] : reasons) {
      protozero::pbf_builder<R> r(l, reasons_field);
      add_text(r, R::reason, reason);
      r.add_uint64(R::count, count);
    }
  };
  add_reasons(F::dropped, ledger.dropped);
  add_reasons(F::duplicate, ledger.duplicates);
  add_reasons(F::unseen, ledger.unseen);
  l.add_uint64(F::windows_opened, ledger.windows_opened);
  l.add_uint64(F::windows_discarded, ledger.windows_discarded);
  l.add_uint64(F::activity_records, ledger.activity_records);
  l.add_uint64(F::activity_unmatched, ledger.activity_unmatched);
  l.add_uint64(F::activity_lost, ledger.activity_lost);
  l.add_uint64(F::names_cut, ledger.names_cut);
  l.add_uint64(F::names_generalised, ledger.names_generalised);
  l.add_uint64(F::ranges_overflowed, ledger.ranges_overflowed);
  if (ledger.passed_over != 0) l.add_uint64(F::passed_over, ledger.passed_over);
  l.add_uint64(F::covered_launches, ledger.covered_launches);
  l.add_uint64(F::covered_gpu_time_ns, ledger.covered_gpu_time_ns);
  l.add_uint64(F::timed_gpu_time_ns, ledger.timed_gpu_time_ns);
  if (!ledger.measuring_stopped.empty())
    add_text(l, F::measuring_stopped, ledger.measuring_stopped);
}

inline constexpr size_t kEnergyBytes = 60;  // of a device, without words
template <class Builder, class Field>
void add_energy(Builder& to, Field field, std::span<const DeviceEnergy> devices) {
  using D = f::EnergyPerDeviceField;
  protozero::pbf_builder<f::EnergyField> e(to, field);
  for (const DeviceEnergy& device : devices) {
    protozero::pbf_builder<D> d(e, f::EnergyField::device);
    d.add_uint32(D::device, device.device.value);
    if (!device.unavailable.empty()) {
      add_text(d, D::unavailable, device.unavailable);
      continue;
    }
    d.add_uint64(D::begin_ns, device.begin_ns);
    d.add_uint64(D::end_ns, device.end_ns);
    d.add_uint64(D::millijoules, device.millijoules);
    d.add_uint64(D::updates, device.updates);
  }
}

inline constexpr size_t kCopySumBytes = 50;  // of a row of CopySums, at most
template <class Builder, class Field>
void add_copy_sums(Builder& to, Field field, std::span<const CopySum> sums) {
  using F = f::CopySumsField;
  protozero::pbf_builder<F> b(to, field);
  add_column(b, F::device, sums, [](const CopySum& s) { return s.device.value; });
  add_column(b, F::kind, sums, [](const CopySum& s) { return static_cast<uint64_t>(s.kind); });
  add_column(b, F::copies, sums, [](const CopySum& s) { return s.copies; });
  add_column(b, F::bytes, sums, [](const CopySum& s) { return s.bytes; });
  add_column(b, F::pageable_bytes, sums, [](const CopySum& s) { return s.pageable_bytes; });
  add_column(b, F::total_ns, sums, [](const CopySum& s) { return s.total_ns; });
}

template <class Builder, class Field>
void add_overhead(Builder& to, Field field, const OverheadSnapshot& cost) {
  using F = f::SelfOverheadField;
  protozero::pbf_builder<F> o(to, field);
  o.add_uint64(F::launch_callbacks, cost.launch_callbacks);
  o.add_uint64(F::launch_callback_ns, cost.launch_callback_ns);
  o.add_uint64(F::window_ns, cost.window_ns);
  o.add_uint64(F::window_count, cost.window_count);
  o.add_uint64(F::startup_ns, cost.startup_ns);
  o.add_uint64(F::helper_cpu_ns, cost.helper_cpu_ns);
  o.add_uint64(F::bytes_written, cost.bytes_written);
  o.add_uint64(F::wall_ns, cost.wall_ns);
  o.add_uint64(F::real_wall_ns, cost.real_wall_ns);
}

}  // namespace flopinj
