// The roofs of rows: peaks of the devices a row ran on, DRAM bytes of its signature's samples.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/formulas.h"
#include "model/model.h"
#include "model/totals.h"
#include "peaks/peaks.h"
#include "report/roof.h"
#include "report/utilization.h"

namespace flopinj::reduce {

class Roofs {
 public:
  // `formulas` must know all precisions of the rows.
  Roofs(const Model& model, const Totals& totals, const Formulas& formulas,
        std::vector<PeakOverride> overrides);

  // `flop` and `launches` of one row.
  Roof of(const Row& row, const Flop& flop, uint64_t launches) const;
  // The precision that takes most of the time at peak; empty where no peak is known.
  std::string slowest_precision(const Flop& flop) const;
  // What was used, one for each kind of device with launches.
  std::vector<DevicePeaksReport> devices() const { return devices_; }
  // Devices of overrides that fit none in the traces.
  const std::vector<std::string>& unused_overrides() const { return unused_; }

 private:
  // Of one kind of device (Model::chips).
  struct Chip {
    std::vector<double> flop_per_ns;  // by precision; 0: no peak
    double bytes_per_ns = 0;
  };
  void add_device(const Device& device, const DeviceFacts& facts, uint64_t launches,
                  const std::vector<PeakOverride>& overrides);

  const Model& model_;
  const Formulas& formulas_;
  std::vector<Chip> chips_;
  std::vector<DevicePeaksReport> devices_;
  std::vector<std::string> unused_;
  std::vector<uint32_t> byte_metrics_;  // NamePool
};

}  // namespace flopinj::reduce
