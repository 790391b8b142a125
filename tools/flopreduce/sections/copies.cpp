// Copies and fills of memory: for people by direction, for programs by device, too.
#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

void add_amounts(Columns<CopyReport>& c) {
  c.text(
      "direction", "direction", [](const CopyReport& row) { return row.direction; },
      "host to device, device to host, within device, between devices, host to host, fill, other");
  c.count("copies", "copies", &CopyReport::copies);
  c.exact("bytes", "bytes", Kind::kBytes, &CopyReport::bytes);
  c.exact("pageable_bytes", "pageable", Kind::kBytes, &CopyReport::pageable_bytes,
          "of them, from or to memory of the host's that is not pinned");
  c.exact("ns", "time", Kind::kNanoseconds, &CopyReport::ns,
          "sum of their times: those that ran at once count twice, unlike where the peak went");
  c.figure(
      "byte_per_s", "rate", Kind::kBandwidth,
      [](const CopyReport& row) {
        return row.ns == 0 ? Figure::unknown("they took no time")
                           : Figure::exact(1e9 * quotient(row.bytes, row.ns));
      },
      "bytes / time");
}

Columns<CopyReport> copy_columns() {
  Columns<CopyReport> c;
  c.count(said::kProcessNumber, &CopyReport::trace);
  c.count(said::kRank, [](const CopyReport& row, const Report& report) {
    return report.traces[row.trace].rank();
  });
  c.count(said::kOrdinal, [](const CopyReport& row) {
    return row.device > 0 ? std::optional(row.device - 1) : std::nullopt;
  });
  add_amounts(c);
  return c;
}

Columns<CopyReport> direction_columns() {
  Columns<CopyReport> c;
  add_amounts(c);
  return c;
}

// Of all devices together, most time first.
std::vector<CopyReport> copies_by_direction(const Report& report) {
  std::vector<CopyReport> sums;
  for (const CopyReport& row : report.copies) {
    auto sum = std::ranges::find(sums, std::string_view(row.direction), &CopyReport::direction);
    if (sum == sums.end()) sum = sums.insert(sums.end(), {.direction = row.direction});
    add_saturating(sum->copies, row.copies);
    add_saturating(sum->bytes, row.bytes);
    add_saturating(sum->pageable_bytes, row.pageable_bytes);
    add_saturating(sum->ns, row.ns);
  }
  std::ranges::stable_sort(sums, std::greater<>(), &CopyReport::ns);
  return sums;
}

const TableSource kCopyTable("copies", "copies and fills of memory by device and direction",
                             copy_columns, [](const Report& report) { return report.copies; });

Section copies_section(const Report& report) {
  if (report.copies.empty()) return {};
  return TableSource("copies", "copies and fills of memory by direction", direction_columns,
                     copies_by_direction)
      .titled("Copies and fills of memory")
      .section(report);
}

}  // namespace

const Subject kCopies = {{&kCopyTable}, copies_section};

}  // namespace flopinj::reduce
