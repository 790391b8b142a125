// When devices were busy and when they idled: rows for people, all of it for programs.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

Cell ns_cell(const std::optional<u128>& ns, Mark mark = Mark::kNone) {
  return ns ? Cell(*ns, mark) : Cell::none();
}

Section busy_time_section(const Report& report) {
  const TimeReport& time = report.time;
  if (time.devices.empty()) return {};
  Table table{"time",
              {{"what", "time"},
               {"ns", "", Kind::kNanoseconds, Worth::kMain},
               {"wall_share", "share of wall", Kind::kShare}}};
  const Mark mark = time.complete ? Mark::kNone : Mark::kAtLeast;
  // A simulated GPU's time is modelled, the wall time is the CPU's: no share.
  const bool comparable = time.wall_ns && !report.simulated.value_or(false);
  const auto row = [&](const char* name, const std::optional<u128>& ns, Mark m,
                       const std::optional<u128>& wall) {
    table.rows.push_back(
        {name, ns_cell(ns, m), ns && wall ? share_cell(*ns, *wall) : Cell::none()});
  };
  const auto wall = comparable ? time.wall_ns : std::nullopt;
  const Work& total = report.total;
  const bool slowed = time.kernel_ns && *time.kernel_ns > total.time.ns;
  const Mark at_most = time.complete ? Mark::kNone : Mark::kAtMost;
  if (total.time_known())
    table.rows.push_back({"GPU time: sum of kernels", time_cell(total),
                          wall ? share_cell(total.time.ns, *wall) : Cell::none()});
  if (slowed) row("the same as recorded, slowed by measuring", time.kernel_ns, mark, wall);
  row("busy: some kernel runs", time.busy_ns, mark, wall);
  row("idle between kernels", time.idle_ns, at_most, wall);
  if (time.before_ns) row("before the first kernel", time.before_ns, at_most, wall);
  if (time.after_ns) row("after the last kernel", time.after_ns, at_most, wall);
  row("wall", time.wall_ns, Mark::kNone, wall);
  // Of the processes' wall time, whatever number of devices each has.
  row("profiler overhead", time.own_ns, Mark::kNone, comparable ? time.own_wall_ns : std::nullopt);
  Section s{"Time", {}, std::move(table), {}};
  if (slowed)
    s.below.emplace_back(
        "  Busy time is as recorded too; GPU time has the mean of a kernel's other launches for "
        "launches that were slowed.",
        Tone::kDim);
  if (time.devices.size() > 1)
    s.below.emplace_back("  Sums over " + std::to_string(time.devices.size()) +
                         " devices; wall time counts for each.");
  uint64_t placed = 0;
  uint64_t unplaced = 0;
  uint64_t late = 0;
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

Section idle_section(const Report& report) {
  std::array<BusyTime::Decade, BusyTime::kDecades> sum{};
  std::vector<const TimeReport::Gap*> largest;
  for (const auto& device : report.time.devices) {
    for (size_t i = 0; i < sum.size(); ++i) {
      add_saturating(sum[i].gaps, device.idle[i].gaps);
      add_saturating(sum[i].ns, device.idle[i].ns);
    }
    for (const auto& gap : device.largest) largest.push_back(&gap);
  }
  if (largest.empty()) return {};
  Table table{"idle_gaps",
              {{"at_least", "idle for at least"},
               {"gaps", "gaps", Kind::kCount, Worth::kMain},
               {"ns", "in all", Kind::kNanoseconds}}};
  for (size_t i = 0; i < sum.size(); ++i)
    if (sum[i].gaps > 0) table.rows.push_back({decade_text(i), sum[i].gaps, sum[i].ns});
  Section s{"Idle gaps", {}, std::move(table), {}};
  constexpr size_t kShown = 3;
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto* a, const auto* b) { return a->length_ns > b->length_ns; });
  for (size_t i = 0; i < std::min(kShown, largest.size()); ++i)
    s.below.emplace_back("  " + to_human_time(largest[i]->length_ns) + " at " +
                         to_human_time(largest[i]->begin_ns) + ": after " +
                         shorten(printable(largest[i]->before), 36) + ", before " +
                         shorten(printable(largest[i]->after), 36));
  return s;
}

void gap_fields(Fields& f, const TimeReport::Gap& gap) {
  f("begin_ns", gap.begin_ns, "after the device's first kernel began");
  f("length_ns", gap.length_ns);
  f("before", printable(gap.before));
  f("after", printable(gap.after));
}

void series_fields(Fields& f, const TimeReport::Series& series) {
  f("phase", printable(series.phase));
  f("begin_ns", series.begin_ns, "on the trace's clock");
  f("bin_ns", series.bin_ns);
  f.flops("flop", series.flop, "bin by bin");
  f("at_least", series.at_least, "launches without a FLOP count or a time are missing from flop");
}

struct IdleDecade {
  uint64_t at_least_ns = 1;
  BusyTime::Decade decade;
};

std::vector<IdleDecade> idle_decades(const TimeReport::Device& device) {
  std::vector<IdleDecade> decades;
  uint64_t at_least = 1;
  for (const auto& decade : device.idle) {
    if (decade.gaps > 0) decades.push_back({at_least, decade});
    at_least *= 10;
  }
  return decades;
}

// Of a device, or of all.
void times_fields(Fields& f, const auto& time) {
  f("kernel_sum_ns", time.kernel_ns,
    "of the kernels' times as recorded, launches included that were slowed while counters were "
    "read; total.gpu_time_ns has the mean of their kernel's other launches for those");
  f("busy_ns", time.busy_ns, "union of the kernels' times, as recorded");
  f("idle_ns", time.idle_ns, "between the first kernel and the last");
  f("before_first_kernel_ns", time.before_ns, "of the wall time");
  f("after_last_kernel_ns", time.after_ns, "of the wall time");
  f("wall_ns", time.wall_ns);
}

void device_time_fields(Fields& f, const TimeReport::Device& d) {
  f("trace", d.trace, "index into traces");
  f("ordinal", when(d.id > 0, d.id - 1));
  f("launches_placed", d.placed, "with a start and an end");
  f("launches_unplaced", d.unplaced, "without: in none of these times");
  times_fields(f, d);
  f("begin_ns", when(d.placed > 0, d.begin_ns), "of the first kernel, on the trace's clock");
  f("late", d.late, "parts of kernels that may be missing from busy_ns");
  f("late_ns", d.late_ns);
  f.list("idle_gaps", idle_decades(d), "by decade of their length",
         [](Fields& gaps, const IdleDecade& idle) {
           gaps("at_least_ns", idle.at_least_ns);
           gaps("gaps", idle.decade.gaps);
           gaps("ns", idle.decade.ns);
         });
  f.list("largest_gaps", d.largest, "longest first", gap_fields);
  f.list("flop_over_time", d.flop, "of phases that have any", series_fields);
}

void busy_time_fields(Fields& f, const Report& report) {
  f.object("time",
           "of launches whose start and end are known; null where no launch's are. Sums over "
           "devices, a process's wall time once for each",
           [&](Fields& time) {
             times_fields(time, report.time);
             time("own_ns", report.time.own_ns, "what the profiler took of the programs' threads");
             time("complete", report.time.complete, "false: launches are missing from these times");
             time.list("devices", report.time.devices, "", device_time_fields);
           });
}

Cell ordinal(const TimeReport::Device& d) {
  return d.id > 0 ? Cell(uint64_t{d.id} - 1) : Cell::none();
}

Table device_time_table(const TimeReport& time) {
  Table table{"device_time",
              {{"trace", "process", Kind::kCount},
               {"ordinal", "device", Kind::kCount},
               {"name", "name"},
               {"launches_placed", "placed", Kind::kCount},
               {"launches_unplaced", "unplaced", Kind::kCount},
               {"kernel_sum_ns", "kernels as recorded", Kind::kNanoseconds},
               {"busy_ns", "busy", Kind::kNanoseconds},
               {"idle_ns", "idle", Kind::kNanoseconds},
               {"before_first_kernel_ns", "before", Kind::kNanoseconds},
               {"after_last_kernel_ns", "after", Kind::kNanoseconds},
               {"wall_ns", "wall", Kind::kNanoseconds}}};
  const auto cell = [](const auto& ns) { return ns ? Cell(*ns) : Cell::none(); };
  for (const auto& d : time.devices)
    table.rows.push_back({uint64_t{d.trace}, ordinal(d), d.name, d.placed, d.unplaced,
                          cell(d.kernel_ns), cell(d.busy_ns), cell(d.idle_ns), cell(d.before_ns),
                          cell(d.after_ns), cell(d.wall_ns)});
  return table;
}

Table gap_table(const TimeReport& time) {
  Table table{"largest_gaps",
              {{"trace", "process", Kind::kCount},
               {"ordinal", "device", Kind::kCount},
               {"begin_ns", "begin", Kind::kNanoseconds},
               {"length_ns", "length", Kind::kNanoseconds},
               {"before", "kernel before"},
               {"after", "kernel after"}}};
  for (const auto& d : time.devices)
    for (const auto& gap : d.largest)
      table.rows.push_back(
          {uint64_t{d.trace}, ordinal(d), gap.begin_ns, gap.length_ns, gap.before, gap.after});
  return table;
}

Table flop_table(const TimeReport& time) {
  Table table{"flop_over_time",
              {{"trace", "process", Kind::kCount},
               {"ordinal", "device", Kind::kCount},
               {"phase", "phase"},
               {"begin_ns", "begin", Kind::kNanoseconds},
               {"bin_ns", "bin", Kind::kNanoseconds},
               {"flop", "FLOP", Kind::kFlop}}};
  for (const auto& d : time.devices)
    for (const auto& series : d.flop)
      for (size_t i = 0; i < series.flop.size(); ++i)
        table.rows.push_back(
            {uint64_t{d.trace}, ordinal(d), series.phase, series.begin_ns + i * series.bin_ns,
             series.bin_ns, Cell(series.flop[i], series.at_least ? Mark::kAtLeast : Mark::kNone)});
  return table;
}

std::vector<Table> busy_time_tables(const Report& report) {
  return {device_time_table(report.time), gap_table(report.time), flop_table(report.time)};
}

}  // namespace

const Subject kBusyTime = {busy_time_section, busy_time_fields, busy_time_tables};
const Subject kIdleGaps = {idle_section, nullptr};

}  // namespace flopinj::reduce
