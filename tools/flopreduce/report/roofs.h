// The roofs of rows: peaks of the devices a row ran on, DRAM bytes of its signature's samples.
#pragma once
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "peaks/peaks.h"
#include "report/report.h"
#include "report/utilization.h"
#include "tables/formulas.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class Roofs {
 public:
  // `formulas` must know all precisions of the rows.
  Roofs(const TraceTables& tables, const Totals& totals, const Formulas& formulas,
        std::vector<PeakOverride> overrides);

  // `flop` and `launches` of one row. What ran without a known peak is kept for devices().
  Roof of(const Row& row, const Flop& flop, uint64_t launches);
  // What was used, one for each kind of device with launches.
  std::vector<DevicePeaksReport> devices() const;
  // Devices of overrides that fit none in the traces.
  const std::vector<std::string>& unused_overrides() const { return unused_; }

 private:
  // Of one kind of device (TraceTables::chips).
  struct Chip {
    std::vector<double> flop_per_ns;  // by precision; 0: no peak
    std::array<double, kIntegerFormats.size()> op_per_ns{};
    double bytes_per_ns = 0;
    std::set<std::string> no_peak_of;
  };
  void add_device(const Device& device, const DeviceFacts& facts, uint64_t launches,
                  const std::vector<PeakOverride>& overrides);

  const TraceTables& tables_;
  const Formulas& formulas_;
  std::vector<Chip> chips_;
  std::vector<DevicePeaksReport> devices_;
  std::vector<std::string> unused_;
  std::vector<uint32_t> byte_metrics_;  // NamePool
};

}  // namespace flopinj::reduce
