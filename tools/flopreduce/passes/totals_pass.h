// Pass two: launches and tallies, streamed through tables of bounded size.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/phases.h"
#include "model/totals.h"
#include "reader/damage.h"
#include "reader/launch_batch.h"
#include "reader/packet_reader.h"
#include "reader/tally_batch.h"

namespace flopinj::reduce {

class TotalsPass {
 public:
  static constexpr size_t kMaxRows = 1U << 20;  // per input and in total

  // The model must be joined, and must outlive the pass.
  TotalsPass(const Model& model, PhaseMap& phases) : model_(model), phases_(phases) {}
  void packet(uint32_t trace, const Packet& packet, DamageLog& damage);
  // Folds what was counted since the last call into the totals. Call at the end of each input.
  void end_input(DamageLog& damage);
  // In a fixed order.
  Totals take();

 private:
  // Launches of one thread in one range on one stream go to rows that differ in the signature
  // alone.
  struct Context {
    uint32_t path = 0, rule = 0, device = 0;
    bool lost = false;  // some id of it was never defined
  };
  struct LocalRow {
    uint32_t context = 0, signature = 0;
    Counts counts;
  };
  struct Cached {
    uint64_t key = UINT64_MAX;
    uint32_t row = 0;
  };

  void use_trace(uint32_t trace);
  void launch_batch(const Packet& packet, DamageLog& damage);
  void tally_batch(const Packet& packet, DamageLog& damage);
  uint32_t context(uint32_t thread, uint32_t stream, uint32_t path);
  // The row of a signature id in a context; nullptr when the table is full.
  LocalRow* row(uint32_t context, uint32_t signature_id);

  const Model& model_;
  PhaseMap& phases_;
  uint32_t trace_ = kNoIndex;
  LastDurations last_durations_;

  struct ContextKey {
    uint64_t thread_stream = 0;
    uint32_t path = 0;
    bool operator==(const ContextKey&) const = default;
  };
  struct ContextHash {
    size_t operator()(const ContextKey& k) const;
  };
  std::unordered_map<ContextKey, uint32_t, ContextHash> context_index_;  // ids of one trace
  std::vector<Context> contexts_;
  std::unordered_map<uint64_t, uint32_t> row_index_;
  std::vector<LocalRow> local_rows_;
  std::array<Cached, 4096> cache_{};

  struct RowKey {
    uint64_t signature_chip = 0, path_rule = 0;
    bool operator==(const RowKey&) const = default;
  };
  struct RowHash {
    size_t operator()(const RowKey& k) const;
  };
  std::unordered_map<RowKey, Counts, RowHash> rows_;
  // (signature, device) -> launches, and those of them from graph launches
  std::unordered_map<uint64_t, std::pair<uint64_t, uint64_t>> device_rows_;
  std::map<std::pair<uint32_t, uint32_t>, Counts> device_rules_;  // (device, rule)
};

}  // namespace flopinj::reduce
