// Copies and fills of memory, by device and direction.
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Columns<CopyReport> copy_columns() {
  Columns<CopyReport> c;
  c.count(said::kProcessNumber, &CopyReport::trace);
  c.count(said::kRank, [](const CopyReport& row, const Report& report) {
    return report.traces[row.trace].rank();
  });
  c.count(said::kOrdinal, [](const CopyReport& row) {
    return row.device > 0 ? std::optional(row.device - 1) : std::nullopt;
  });
  c.text(
      "direction", "direction", [](const CopyReport& row) { return row.direction; },
      "host to device, device to host, within device, between devices, host to host, fill, other");
  c.count("copies", "copies", &CopyReport::copies);
  c.exact("bytes", "bytes", Kind::kBytes, &CopyReport::bytes);
  c.exact("pageable_bytes", "pageable", Kind::kBytes, &CopyReport::pageable_bytes,
          "of them, from or to memory of the host's that is not pinned");
  c.exact("ns", "time", Kind::kNanoseconds, &CopyReport::ns,
          "sum of their times: those that ran at once count twice, unlike in idle_copies of lost");
  c.figure(
      "byte_per_s", "rate", Kind::kBandwidth,
      [](const CopyReport& row) {
        return row.ns == 0 ? Figure::unknown("they took no time")
                           : Figure::exact(1e9 * quotient(row.bytes, row.ns));
      },
      "bytes / time");
  return c;
}

const TableSource kCopyTable("copies", "copies and fills of memory by device and direction",
                             copy_columns, [](const Report& report) { return report.copies; });

}  // namespace

const Subject kCopies = {{&kCopyTable}};

}  // namespace flopinj::reduce
