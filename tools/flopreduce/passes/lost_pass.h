// Where the time of each device went, launch by launch: in a pass of its own on one thread, since
// it needs what one launch of each signature is worth.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "passes/collectives.h"
#include "passes/launch_worths.h"
#include "passes/rows/launch_consumer.h"
#include "passes/rows/time_split.h"

namespace flopinj::reduce {

class LostPass final : public LaunchConsumer {
 public:
  // What ran on one device. Kernels come nearly in the order of time: the newest are kept until all
  // that overlap them must have come, as of BusyTrack.
  class OfDevice {
   public:
    explicit OfDevice(size_t kept) : kept_(kept) {}
    // By key() of the path and the rule.
    std::unordered_map<uint64_t, LostTime> places;
    TimeSplit split;

    static uint64_t key(uint32_t path, uint32_t rule) { return uint64_t{path} << 32 | rule; }
    void add(const TimeSplit::Launch& launch);
    void end();

   private:
    void fold(size_t count);
    void sort_batches();
    size_t kept_;
    std::vector<TimeSplit::Launch> newest_, beside_;  // the latter while batches are merged
    uint64_t last_begin_ns_ = 0;                      // of launches that are no longer kept
  };

  // All must outlive this. Where the report says of when training steps are, by trace, nothing else
  // counts.
  LostPass(const TraceTables& tables, LaunchWorths& worths, const Report& report)
      : tables_(tables), worths_(worths), steps_(report.steps), report_(report) {}
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void end(const RowTable& rows) override;
  const std::map<uint32_t, OfDevice>& devices() const { return devices_; }
  u128 fp32_fs() const { return fp32_fs_; }  // at peak, of products in fp32
  Collectives& collectives() { return collectives_; }

 private:
  struct OfRow {
    LaunchWorths::Worth worth;
    OfDevice* device = nullptr;
    LostTime* place = nullptr;
  };
  OfRow& row_of(const RowTable& rows, uint32_t row);
  void untimed(OfRow& row, uint64_t launches);
  // The launch is of steps that count, as far as its place in the trace says it.
  bool counts(uint32_t trace, uint32_t step) const;
  void add_collective(const RowTable& rows, const LaunchPiece& piece, size_t i);
  uint32_t add_pause(OfDevice& device, uint32_t trace, const TimeSplit::Launch& launch,
                     const LaunchPiece::Pause& pause) const;

  const TraceTables& tables_;
  LaunchWorths& worths_;
  const StepsReport& steps_;
  const Report& report_;
  Collectives collectives_;
  std::map<uint32_t, OfDevice> devices_;  // TraceTables::devices
  u128 fp32_fs_ = 0;
  std::vector<std::unique_ptr<OfRow>> rows_;  // of the trace at hand; null: not looked up yet
};

}  // namespace flopinj::reduce
