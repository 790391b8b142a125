// Consumers of the one decoding of launch batches: what is not a sum of rows looks at each launch
// while it is read.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "passes/rows/row_table.h"
#include "reader/launch_batch.h"
#include "reader/packet_reader.h"
#include "reader/tally_batch.h"

namespace flopinj::reduce {

// Launches of one batch that follow each other and are alike in the first three.
struct LaunchPiece {
  static constexpr size_t kMost = RowBlock::kRows;
  static constexpr uint64_t kNoTime = UINT64_MAX;
  bool graph = false, windowed = false;
  uint32_t step = 0;  // number of the training step; 0: none
  size_t size = 0;
  std::array<uint32_t, kMost> row;          // of the RowTable
  std::array<uint64_t, kMost> start_ns;     // on the trace's clock
  std::array<uint64_t, kMost> duration_ns;  // kNoTime: neither is known
  // Where `calls`: as LaunchBatch.called_before, 0 for launches that are not in it.
  bool calls = false;
  std::array<uint32_t, kMost> called_before;
  uint64_t clock_error_ns = 0;
  // What the threads of some of them did before, in their order.
  struct Pause {
    uint64_t at = 0;                       // index of the launch
    uint32_t path = 0;                     // of the trace
    uint64_t since_ns = 0, length_ns = 0;  // from its end to the call
  };
  std::vector<Pause> pauses;
};

// One per reading thread. Launches and tallies are of rows.trace().
class LaunchConsumer {
 public:
  LaunchConsumer() = default;
  LaunchConsumer(const LaunchConsumer&) = delete;
  LaunchConsumer& operator=(const LaunchConsumer&) = delete;
  virtual ~LaunchConsumer() = default;
  virtual void launches(const RowTable& rows, const LaunchPiece& piece) = 0;
  // After the launches of a batch.
  virtual void batch(uint32_t /*trace*/, const LaunchBatchReader&) {}
  virtual void tally(const RowTable&, uint32_t /*row*/, const TallyRow&) {}
  // Before the first launches of a segment, and after its last ones.
  virtual void begin_segment(size_t /*number*/) {}
  virtual void end_segment(const RowTable&) {}
  // After the last launches of these rows.
  virtual void end(const RowTable&) {}
  // A packet of another kind. Damage in it was logged before.
  virtual void packet(uint32_t /*trace*/, const Packet&) {}
  // False once no more launches are asked for.
  virtual bool goes_on() const { return true; }
};

// Several that are shown the same launches; null: none.
class Consumers final : public LaunchConsumer {
 public:
  Consumers(std::initializer_list<LaunchConsumer*> each) {
    for (LaunchConsumer* one : each)
      if (one != nullptr) each_.push_back(one);
  }
  void launches(const RowTable& rows, const LaunchPiece& piece) override {
    for (LaunchConsumer* one : each_) one->launches(rows, piece);
  }
  void batch(uint32_t trace, const LaunchBatchReader& batch) override {
    for (LaunchConsumer* one : each_) one->batch(trace, batch);
  }
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override {
    for (LaunchConsumer* one : each_) one->tally(rows, row, tally);
  }
  void begin_segment(size_t number) override {
    for (LaunchConsumer* one : each_) one->begin_segment(number);
  }
  void end_segment(const RowTable& rows) override {
    for (LaunchConsumer* one : each_) one->end_segment(rows);
  }
  void end(const RowTable& rows) override {
    for (LaunchConsumer* one : each_) one->end(rows);
  }
  void packet(uint32_t trace, const Packet& packet) override {
    for (LaunchConsumer* one : each_) one->packet(trace, packet);
  }

 private:
  std::vector<LaunchConsumer*> each_;  // must outlive this
};

}  // namespace flopinj::reduce
