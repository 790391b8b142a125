// When devices were busy and when they idled: rows for people, all of it for programs.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Some time of all devices together, and its share of the wall time.
struct TimeRow {
  const char* name;
  Figure ns, wall_share;
};

// Kernels are as recorded, and took longer while counters were read.
bool slowed(const Report& report) {
  return report.time.kernel_ns && *report.time.kernel_ns > report.total.time.ns;
}

std::vector<TimeRow> time_rows(const Report& report) {
  const TimeReport& time = report.time;
  std::vector<TimeRow> rows;
  if (time.devices.empty()) return rows;
  const bool comparable = time.wall_ns && !report.clocks_differ();
  const auto share = [&](const Figure& ns, const std::optional<u128>& wall) {
    return comparable ? ns / Figure::exact(wall) : Figure();
  };
  const auto row = [&](const char* name, const Figure& ns) {
    rows.push_back({name, ns, share(ns, time.wall_ns)});
  };
  const auto marked = [&](const std::optional<u128>& ns, Mark where_incomplete) {
    return Figure::exact(ns).with(mark_if(!time.complete, where_incomplete));
  };
  if (report.total.time_known()) row("GPU time: sum of kernels", gpu_time_of(report.total));
  if (slowed(report))
    row("the same as recorded, slowed by measuring", marked(time.kernel_ns, Mark::kAtLeast));
  row("busy: some kernel runs", marked(time.busy_ns, Mark::kAtLeast));
  row("idle between kernels", marked(time.idle_ns, Mark::kAtMost));
  if (time.before_ns) row("before the first kernel", marked(time.before_ns, Mark::kAtMost));
  if (time.after_ns) row("after the last kernel", marked(time.after_ns, Mark::kAtMost));
  row("wall", Figure::exact(time.wall_ns));
  // Of the processes' wall time, whatever number of devices each has.
  const Figure own = Figure::exact(time.own_ns);
  rows.push_back({report.simulated_clock ? "profiler overhead, in real time" : "profiler overhead",
                  own, share(own, time.own_wall_ns)});
  return rows;
}

Columns<TimeRow> time_columns() {
  Columns<TimeRow> c;
  c.text("what", "time", &TimeRow::name, "of all devices; a process's wall time once for each");
  c.figure("ns", "", Kind::kNanoseconds, &TimeRow::ns).main();
  c.figure("wall_share", "share of wall", Kind::kShare, &TimeRow::wall_share, "share of wall time");
  return c;
}

const TableSource kTimeTable =
    TableSource("time", "busy and idle time, and the profiler's", time_columns, time_rows)
        .titled("Time");

Section busy_time_section(const Report& report) {
  const TimeReport& time = report.time;
  if (time.devices.empty()) return {};
  Section s = kTimeTable.section(report);
  if (slowed(report))
    s.below.emplace_back(
        "  Busy time is as recorded too; GPU time has the mean of a kernel's other launches for "
        "launches that were slowed.",
        Tone::kDim);
  if (time.devices.size() > 1)
    s.below.emplace_back("  Sums over " + std::to_string(time.devices.size()) +
                         " devices; wall time counts for each.");
  uint64_t placed = 0, unplaced = 0, late = 0;
  for (const auto& d : time.devices) {
    add_saturating(placed, d.placed);
    add_saturating(unplaced, d.unplaced);
    add_saturating(late, d.late);
  }
  if (unplaced > 0)
    s.below.emplace_back("  In GPU time only, without a start and an end: " + to_grouped(unplaced) +
                         " of " + to_grouped(u128{placed} + unplaced) + " launches.");
  if (late > 0)
    s.below.emplace_back("  Written too late to be joined with the rest: " + to_grouped(late) +
                         " kernels.");
  return s;
}

// "1 us", "10 us": where a decade of gaps begins.
std::string decade_text(size_t decade) {
  static constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  const size_t unit = std::min<size_t>(decade / 3, kUnits.size() - 1);
  return "1" + std::string(decade - 3 * unit, '0') + " " + kUnits[unit];
}

// Gaps of one decade of length: of all devices, or of one.
struct IdleRow {
  size_t decade;
  uint64_t at_least_ns;
  BusyTime::Decade idle;
  const TimeReport::Device* device = nullptr;
};

std::vector<IdleRow> idle_rows_of(const std::array<BusyTime::Decade, BusyTime::kDecades>& idle,
                                  const TimeReport::Device* device) {
  std::vector<IdleRow> rows;
  uint64_t at_least = 1;
  for (size_t i = 0; i < idle.size(); ++i, at_least *= 10)
    if (idle[i].gaps > 0) rows.push_back({i, at_least, idle[i], device});
  return rows;
}

std::vector<IdleRow> idle_rows(const Report& report) {
  std::array<BusyTime::Decade, BusyTime::kDecades> sum{};
  for (const auto& device : report.time.devices)
    for (size_t i = 0; i < sum.size(); ++i) {
      add_saturating(sum[i].gaps, device.idle[i].gaps);
      add_saturating(sum[i].ns, device.idle[i].ns);
    }
  return idle_rows_of(sum, nullptr);
}

std::vector<IdleRow> device_idle_rows(const Report& report) {
  std::vector<IdleRow> rows;
  for (const auto& device : report.time.devices)
    for (const IdleRow& row : idle_rows_of(device.idle, &device)) rows.push_back(row);
  return rows;
}

void add_gaps(Columns<IdleRow>& c) {
  c.count("gaps", "gaps", through(&IdleRow::idle, &BusyTime::Decade::gaps),
          "times in which no kernel ran")
      .main();
  c.figure("ns", "in all", Kind::kNanoseconds,
           exactly(through(&IdleRow::idle, &BusyTime::Decade::ns)));
}

Columns<IdleRow> idle_columns() {
  Columns<IdleRow> c;
  c.text("at_least", "idle for at least",
         [](const IdleRow& row) { return decade_text(row.decade); });
  add_gaps(c);
  c.for_programs();
  c.exact("at_least_ns", "at least", Kind::kNanoseconds, &IdleRow::at_least_ns,
          "and less than ten times as long");
  return c;
}

// Which device, of which process.
template <typename Row, typename F>
void add_device(Columns<Row>& c, F device) {
  c.count(said::kProcessNumber,
          [device](const Row& row) { return std::invoke(device, row).trace; });
  c.count(said::kOrdinal, [device](const Row& row) {
    const uint32_t id = std::invoke(device, row).id;
    return id > 0 ? std::optional(id - 1) : std::nullopt;
  });
}

Columns<IdleRow> device_idle_columns() {
  Columns<IdleRow> c;
  add_device(
      c, [](const IdleRow& row) -> const auto& { return *row.device; });
  c.exact("at_least_ns", "at least", Kind::kNanoseconds, &IdleRow::at_least_ns,
          "and less than ten times as long");
  add_gaps(c);
  return c;
}

const TableSource kIdleTable =
    TableSource("idle_gaps", "gaps between kernels by length", idle_columns, idle_rows)
        .titled("Idle gaps");
const TableSource kDeviceIdleTable("device_idle_gaps", "the same by device", device_idle_columns,
                                   device_idle_rows);

Section idle_section(const Report& report) {
  std::vector<const TimeReport::Gap*> largest;
  for (const auto& device : report.time.devices)
    for (const auto& gap : device.largest) largest.push_back(&gap);
  if (largest.empty()) return {};
  Section s = kIdleTable.section(report);
  constexpr size_t kShown = 3;
  std::ranges::stable_sort(largest, std::greater<>(), &TimeReport::Gap::length_ns);
  for (size_t i = 0; i < std::min(kShown, largest.size()); ++i)
    s.below.emplace_back("  " + to_human_time(largest[i]->length_ns) + " at " +
                         to_human_time(largest[i]->begin_ns) + ": after " +
                         shorten(printable(largest[i]->before), 36) + ", before " +
                         shorten(printable(largest[i]->after), 36));
  return s;
}

// A time of a device as recorded: launches are missing where they have no start and end, or came
// too late.
template <typename Get>
auto recorded(Get get, Mark where_incomplete) {
  return [get, where_incomplete](const TimeReport::Device& d) {
    return Figure::exact(d.*get).with(mark_if(d.unplaced > 0 || d.late > 0, where_incomplete));
  };
}

Columns<TimeReport::Device> device_time_columns() {
  using Device = TimeReport::Device;
  Columns<Device> c;
  add_device(c, std::identity());
  c.text("name", "name", &Device::name);
  c.count("launches_placed", "placed", &Device::placed, "launches with a start and an end");
  c.count("launches_unplaced", "unplaced", &Device::unplaced,
          "launches without: in none of these times");
  c.figure(
      "kernel_sum_ns", "kernels as recorded", Kind::kNanoseconds,
      recorded(&Device::kernel_ns, Mark::kAtLeast),
      "sum of the kernels' times as recorded, launches included that were slowed while counters "
      "were read; gpu_time_ns has the mean of their kernel's other launches for those");
  c.figure("busy_ns", "busy", Kind::kNanoseconds, recorded(&Device::busy_ns, Mark::kAtLeast),
           "time in which some kernel ran");
  c.figure("idle_ns", "idle", Kind::kNanoseconds, recorded(&Device::idle_ns, Mark::kAtMost),
           "time between the first and the last kernel in which none ran");
  c.figure("before_first_kernel_ns", "before", Kind::kNanoseconds,
           recorded(&Device::before_ns, Mark::kAtMost), "of the wall time");
  c.figure("after_last_kernel_ns", "after", Kind::kNanoseconds,
           recorded(&Device::after_ns, Mark::kAtMost), "of the wall time");
  c.figure(said::kWall, exactly(&Device::wall_ns));
  c.exact(
      "begin_ns", "begin", Kind::kNanoseconds,
      [](const Device& d) { return d.placed > 0 ? std::optional(d.begin_ns) : std::nullopt; },
      "when the first kernel began, on the trace's clock");
  c.count("late", "late", &Device::late,
          "parts of kernels that were written too late, and may be missing from busy_ns");
  c.exact("late_ns", "late", Kind::kNanoseconds, &Device::late_ns, "their time");
  return c;
}

using GapRow = Of<TimeReport::Device, TimeReport::Gap>;
Columns<GapRow> gap_columns() {
  using Gap = TimeReport::Gap;
  Columns<GapRow> c;
  add_device(
      c, [](const GapRow& row) -> const auto& { return row.of; });
  c.figure("begin_ns", "begin", Kind::kNanoseconds, exactly(of_one(&Gap::begin_ns)),
           "after the device's first kernel began");
  c.figure("length_ns", "length", Kind::kNanoseconds, exactly(of_one(&Gap::length_ns)));
  c.text("before", "kernel before", of_one(&Gap::before));
  c.text("after", "kernel after", of_one(&Gap::after));
  return c;
}

struct FlopBin {
  const TimeReport::Device& of;
  const TimeReport::Series& series;
  size_t bin;
};
std::vector<FlopBin> flop_bins(const Report& report) {
  std::vector<FlopBin> rows;
  for (const auto& device : report.time.devices)
    for (const auto& series : device.flop)
      for (size_t i = 0; i < series.flop.size(); ++i) rows.push_back({device, series, i});
  return rows;
}

Columns<FlopBin> flop_bin_columns() {
  Columns<FlopBin> c;
  add_device(
      c, [](const FlopBin& row) -> const auto& { return row.of; });
  c.text("phase", "phase", [](const FlopBin& row) { return row.series.phase; });
  c.figure("begin_ns", "begin", Kind::kNanoseconds, exactly([](const FlopBin& row) {
             return row.series.begin_ns + row.bin * row.series.bin_ns;
           }),
           "on the trace's clock");
  c.figure("bin_ns", "bin", Kind::kNanoseconds,
           exactly([](const FlopBin& row) { return row.series.bin_ns; }), "how long a bin is");
  c.figure(said::kFlop, [](const FlopBin& row) {
    return Figure(row.series.flop[row.bin], mark_if(row.series.at_least, Mark::kAtLeast));
  });
  return c;
}

constexpr auto kDevices = [](const Report& report) -> const auto& { return report.time.devices; };

const TableSource kDeviceTimeTable("device_time", "the same by device", device_time_columns,
                                   kDevices);
const TableSource kGapTable("largest_gaps", "the longest gaps, and what is beside them",
                            gap_columns, each_of(kDevices, &TimeReport::Device::largest));
const TableSource kFlopBinTable("flop_over_time", "FLOP by phase in bins of time", flop_bin_columns,
                                flop_bins);

}  // namespace

const Subject kBusyTime = {{&kTimeTable, &kDeviceTimeTable, &kGapTable, &kFlopBinTable},
                           busy_time_section};
const Subject kIdleGaps = {{&kIdleTable, &kDeviceIdleTable}, idle_section};

}  // namespace flopinj::reduce
