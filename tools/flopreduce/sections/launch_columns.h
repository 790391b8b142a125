// Sets of columns that describe a group of launches. Any table of launches may have any of them
// (sections/launch_tables.cpp).
#pragma once
#include <optional>

#include "report/work_rows.h"
#include "sections/parts/columns.h"

namespace flopinj::reduce {

// A row of a table of launches.
struct LaunchRow {
  const WorkKeys* keys = nullptr;
  WorkGroup group;

  // Of a key that the table has: its place among the keys, the launches' id and what it is called.
  size_t place(const WorkKey& key) const;
  uint32_t id(const WorkKey& key) const { return group.ids[place(key)]; }
  std::optional<std::string> name(const WorkKey& key, const Report& report) const;
  bool has(const WorkKey& key) const;
  // The marks of a phase's FLOP, in a table by phase.
  Mark mark(const Report& report) const;
};

// Columns that belong together. A column that is there already is not added again.
using LaunchColumns = void (*)(Columns<LaunchRow>&);

namespace launches {

// Of a key that the table has.
void add_name(Columns<LaunchRow>&, const WorkKey& key);
template <const WorkKey& kKey>
void name(Columns<LaunchRow>& c) {
  add_name(c, kKey);
}

// Of any launches.
void flop(Columns<LaunchRow>&);
void flop_exact(Columns<LaunchRow>&);  // the main column, for people to the last digit, too
void share(Columns<LaunchRow>&);       // of the run's FLOP
void operations(Columns<LaunchRow>&);  // of an integer format
void operations_exact(Columns<LaunchRow>&);
void count(Columns<LaunchRow>&);
void count_share(Columns<LaunchRow>&);
// Of the launches, those with an exact count, with an estimate, and without a count.
void how_counted(Columns<LaunchRow>&);
void unmeasured(Columns<LaunchRow>&);
void gpu_time(Columns<LaunchRow>&);
void gpu_time_share(Columns<LaunchRow>&);
void each(Columns<LaunchRow>&);  // mean GPU time of a launch
void rate(Columns<LaunchRow>&);
void utilization(Columns<LaunchRow>&);
void roof_share(Columns<LaunchRow>&);
void rates(Columns<LaunchRow>&);  // these three
void intensity(Columns<LaunchRow>&);
void bandwidth(Columns<LaunchRow>&);
void dram_bytes(Columns<LaunchRow>&);
void bound_by(Columns<LaunchRow>&);
void nearer_roof(Columns<LaunchRow>&);
void roofs(Columns<LaunchRow>&);     // these five, and the share of the roof
void interval(Columns<LaunchRow>&);  // of 95 %, and how far it reaches
// How far the figures are known. These columns, and those behind them, are for programs.
void details(Columns<LaunchRow>&);

// Null where the launches are of several.
void kernel(Columns<LaunchRow>&);
void chip(Columns<LaunchRow>&);
void phase(Columns<LaunchRow>&);
void mangled(Columns<LaunchRow>&);
void stable_hash(Columns<LaunchRow>&);
// Of a kernel's launches, where a row has all of them (kernels.cpp).
inline constexpr const char* kMedian = "median_ns";
void durations(Columns<LaunchRow>&);
void note(Columns<LaunchRow>&);
void parameters(Columns<LaunchRow>&);
// Of a signature (signatures.cpp).
void shape(Columns<LaunchRow>&);
void readings(Columns<LaunchRow>&);
void reason(Columns<LaunchRow>&);  // why it has no count

// Columns that are added after this one are not for people.
void for_programs(Columns<LaunchRow>&);
// The last column of a set is of more worth to people than others, or of less.
template <LaunchColumns kSet>
void main(Columns<LaunchRow>& c) {
  kSet(c);
  c.main();
}
template <LaunchColumns kSet>
void detail(Columns<LaunchRow>& c) {
  kSet(c);
  c.detail();
}

// A getter of a property that all launches of a row share; nothing where they differ in it.
template <typename T, typename F>
auto of_common(const WorkKey& key, std::vector<T> Report::*list, F get) {
  return [&key, list, get](const LaunchRow& row, const Report& report) {
    const auto id = row.group.in_common(key, report);
    using Value = std::remove_cvref_t<decltype(std::invoke(get, (report.*list)[0]))>;
    return id ? std::optional<Value>(std::invoke(get, (report.*list)[*id])) : std::nullopt;
  };
}

}  // namespace launches
}  // namespace flopinj::reduce
