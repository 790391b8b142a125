// Where the time of each device went, launch by launch, with the totals or after them. One thread
// has all launches of a trace, or of a part of it.
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
#include "passes/lost_parts.h"
#include "passes/rows/at_once.h"
#include "passes/rows/launch_consumer.h"
#include "passes/rows/time_split.h"

namespace flopinj::reduce {

class LostPass final : public LaunchConsumer {
 public:
  // Of lines in summaries, what would be otherwise if launches of a row had their times one by one.
  struct Uneven {
    std::array<bool, kWorkClasses> classes{};  // some are faster than the roofs allow, and some not
    bool slowed = false;                       // some were not slowed by measuring
    bool spread = false;                       // too many kernels ran at once
  };

  using Devices = LostParts::Devices;
  using Ended = LostParts::Ended;

  // All must outlive this. Of traces that are not read in parts, devices are handed to `ended`
  // after the last launches, and dropped; those of traces in `revised`, of which more may come, at
  // the end().
  struct Reading {
    const TraceTables& tables;
    const LaunchGuesses& guesses;
    LostParts& parts;
    std::vector<bool> only;  // by trace; empty: all
    std::set<uint32_t> revised;
    Ended ended;
    bool collectives = true;  // are wanted, too, where there is more than one rank to compare
    // After the totals; else all null. Where there are windows, nothing else counts.
    const Totals* totals = nullptr;
    LaunchWorths* worths = nullptr;
    const std::map<size_t, StepsReport::Window>* windows = nullptr;
  };
  explicit LostPass(Reading reading);
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void packet(uint32_t trace, const Packet& packet) override;
  void begin_segment(size_t number) override;
  void end_segment(const RowTable& rows) override;
  void end(const RowTable& rows) override;
  // Of other traces, or of other parts.
  void add(LostPass& o);
  const Uneven& uneven() const { return uneven_; }
  void end();  // of all traces
  Collectives& collectives() { return collectives_; }

 private:
  struct OfRow {
    LaunchWorth worth;  // after the totals
    bool communicates = false;
    DeviceSplit* device = nullptr;
    uint32_t in_split = 0;  // its number in the device's TimeSplit
  };
  // What most launches need of their row.
  struct Quick {
    // Null: not looked up yet, or a collective that is compared.
    DeviceSplit* device = nullptr;
    uint32_t in_split = 0;
    uint64_t launches = 0;  // that count, and are not in DeviceSplit::counted() yet
  };
  DeviceSplit& device_at(uint32_t number);
  OfRow& row_of(const RowTable& rows, uint32_t row);
  size_t quick_launches(const LaunchPiece& piece, size_t begin, size_t end);
  void one_launch(const RowTable& rows, const LaunchPiece& piece, size_t i,
                  const LaunchPiece::Pause* pause);
  // The launch is of steps that count, as far as its place in the trace says it.
  bool counts(uint32_t trace, uint32_t step) const;
  // Whether the launches at hand go to a time line. Before the totals those do not that have to be
  // read after them in any case.
  bool is_kept(uint32_t trace) const {
    return of_.worths != nullptr ? of_.only.empty() || of_.only[trace]
                                 : parts_.in_parts(trace) && has_room_;
  }
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
  void add_at_once(uint32_t trace, const AtOnce& sums);
  void add_set(std::span<const AtOnce::Part> parts, uint64_t ns, TimeSplit& split);
  bool is_even(KernelClass of, std::span<const AtOnce::Part> parts) const;

  void forget_rows();

  const Reading of_;
  const TraceTables& tables_;
  LostParts& parts_;
  const bool compares_;  // collectives of ranks
  Collectives collectives_;
  std::map<uint32_t, Devices> devices_;  // by trace
  // Of the trace at hand, or the part of it.
  size_t segment_ = 0;
  bool has_room_ = true;                      // for its log
  std::vector<std::unique_ptr<OfRow>> rows_;  // null: not looked up yet
  std::vector<Quick> quick_;                  // by row, too
  std::vector<SummaryRow> summary_rows_;
  std::vector<AtOnce> at_once_;
  Uneven uneven_;
};

}  // namespace flopinj::reduce
