// Where the time of each device went, launch by launch: after the totals, since it needs what one
// launch of each signature is worth. One thread has all launches of a trace.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/collectives.h"
#include "passes/launch_worths.h"
#include "passes/rows/at_once.h"
#include "passes/rows/launch_consumer.h"
#include "passes/rows/nearly_in_order.h"
#include "passes/rows/time_split.h"

namespace flopinj::reduce {

class LostPass final : public LaunchConsumer {
 public:
  // What ran on one device.
  class OfDevice {
   public:
    explicit OfDevice(size_t kept) : in_order_(kept) {}
    // By key() of the path and the rule.
    std::unordered_map<uint64_t, LostTime> places;
    TimeSplit split;
    bool summed = false;  // it is a summary's, which says what ran at once
    bool collectives = false;

    static uint64_t key(uint32_t path, uint32_t rule) { return uint64_t{path} << 32 | rule; }
    void add(const LaunchInTime& launch) { in_order_.add(launch, *this); }
    void end();
    // Of NearlyInOrder.
    void launches(std::span<const LaunchInTime> in_order) { split.launches(in_order); }
    void late(const LaunchInTime& launch);

   private:
    NearlyInOrder in_order_;
  };
  // Of lines in summaries, what would be otherwise if launches of a row had their times one by one.
  struct Uneven {
    std::array<bool, kWorkClasses> classes{};  // some are faster than the roofs allow, and some not
    bool slowed = false;                       // some were not slowed by measuring
    bool spread = false;                       // too many kernels ran at once
  };

  using Devices = std::map<uint32_t, OfDevice>;  // of one trace: TraceTables::devices
  using Ended = std::function<void(uint32_t trace, const Devices&)>;

  // All must outlive this. Where the report says of when training steps are, by trace, nothing else
  // counts. Devices are handed to `ended` after their trace's last launches, and dropped; those of
  // traces in `revised`, of which more may come, at the end().
  LostPass(const TraceTables& tables, LaunchWorths& worths, const Report& report,
           std::set<uint32_t> revised, Ended ended)
      : tables_(tables),
        worths_(worths),
        steps_(report.steps),
        report_(report),
        revised_(std::move(revised)),
        ended_(std::move(ended)) {}
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void packet(uint32_t trace, const Packet& packet) override;
  void end(const RowTable& rows) override;
  // Of other traces.
  void add(LostPass& o);
  const Uneven& uneven() const { return uneven_; }
  void end();                                // of all traces
  u128 fp32_fs() const { return fp32_fs_; }  // at peak, of products in fp32
  Collectives& collectives() { return collectives_; }

 private:
  struct OfRow {
    LaunchWorths::Worth worth;
    OfDevice* device = nullptr;
    uint32_t in_split = 0;  // its number in the device's TimeSplit
  };
  // What most launches need of their row.
  struct Quick {
    bool known = false;  // and it is no communication
    uint32_t in_split = 0;
    uint64_t launches = 0;  // that are not in fp32_fs_ yet
  };
  OfDevice& device_at(uint32_t number);
  OfRow& row_of(const RowTable& rows, uint32_t row);
  void untimed(OfRow& row, uint64_t launches);
  void one_launch(const RowTable& rows, const LaunchPiece& piece, size_t i,
                  const LaunchPiece::Pause* pause);
  void quick_launches(const LaunchPiece& piece, OfDevice& device, size_t begin, size_t end);
  // The launch is of steps that count, as far as its place in the trace says it.
  bool counts(uint32_t trace, uint32_t step) const;
  void add_collective(const RowTable& rows, const LaunchPiece& piece, size_t i);
  // A row of a summary whose devices say what ran at once.
  struct SummaryRow {
    OfRow* of = nullptr;
    TallyRow tally;
    uint64_t placed_ns = 0, parts = 0;  // of its launches that have a place; in AtOnce::kLaunch
    uint64_t kernel_ns = 0;             // of placed_ns: without what measuring took
    uint64_t done = 0;                  // of parts, so far
  };
  void add_tally(OfRow& row, const TallyRow& tally);
  void add_at_once(uint32_t trace, const trace::AtOnce& message);
  void add_set(std::span<const AtOnceSums::Part> parts, uint64_t ns, TimeSplit& split);
  bool is_even(KernelClass of, std::span<const AtOnceSums::Part> parts) const;

  const TraceTables& tables_;
  LaunchWorths& worths_;
  const StepsReport& steps_;
  const Report& report_;
  std::set<uint32_t> revised_;
  Ended ended_;
  Collectives collectives_;
  std::map<uint32_t, Devices> devices_;  // by trace
  u128 fp32_fs_ = 0;
  // Of the trace at hand.
  std::vector<std::unique_ptr<OfRow>> rows_;  // null: not looked up yet
  std::vector<Quick> quick_;                  // by row, too
  std::vector<SummaryRow> summary_rows_;
  std::vector<trace::AtOnce> at_once_;
  Uneven uneven_;
};

}  // namespace flopinj::reduce
