// A device's time line as sums, from which "where the peak went" is made: for each set of rows of
// which kernels ran at once how long they did, and gaps by the row of the kernel after them. A set
// of one row holds nearly all launches of most recordings. AtOnceLine makes it of launches; a
// summary keeps it as a message.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/rows/timeline.h"

namespace flopinj::reduce {

struct AtOnce {
  static constexpr uint64_t kLaunch = uint64_t{1} << 32;  // parts of a launch are counted in it
  static constexpr size_t kMostRows = 16;                 // of a set

  struct Part {
    uint32_t row = 0;
    uint64_t launches = 0;  // in kLaunch
    bool operator==(const Part&) const = default;
  };
  struct Set {
    uint64_t ns = 0;
    size_t begin = 0, end = 0;  // of `parts`, by rising rows
    bool operator==(const Set&) const = default;
  };
  struct Gap {
    uint32_t row = 0;
    LostLine line{};
    uint64_t ns = 0, beside_ns = 0;
    bool operator==(const Gap&) const = default;
  };
  uint32_t all_rows = 0;  // of the recording
  std::vector<Set> sets;  // by their first rows
  std::vector<Part> parts;
  std::vector<Gap> gaps;   // by row
  uint64_t spread_ns = 0;  // in which more kernels ran than sets have: each counts as if alone
  uint64_t edge_copies_ns = 0;
  bool lost_copies = false;
  std::map<uint64_t, uint64_t> host_ns;  // Timeline::host_ns(), by the recording's ids
  bool operator==(const AtOnce&) const = default;

  uint64_t ns() const;  // of sets and gaps, which of() and a time line keep below 2^64
  // Nothing where the message has figures that cannot be.
  static std::optional<AtOnce> of(const trace::AtOnce& message);
  trace::AtOnce message(uint32_t device) const;
};

class AtOnceLine : public Timeline<AtOnceLine> {
 public:
  static constexpr uint64_t kLaunch = AtOnce::kLaunch;
  // Of several rows: kernels of more rows than a set has, or in more sets, are counted as if each
  // had run alone.
  static constexpr size_t kMostSets = 4096;

  // In the order of their beginnings.
  void launch(const Launch& launch);
  // After the last launch. `rows`: numbers in the summary, by Launch::row. Nothing without
  // launches.
  std::optional<AtOnce> take(std::span<const uint32_t> rows, uint32_t all_rows);

 private:
  friend class Timeline<AtOnceLine>;
  using Key = std::vector<uint32_t>;  // rows in order
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Set {
    uint64_t ns = 0;
    std::vector<uint64_t> launches;  // in kLaunch, by row
  };
  using Done = uint64_t;  // of a launch's kLaunch
  // Of launches that are counted as if each had run alone: past the most sets or rows, and those
  // that take no time.
  struct Spread {
    uint64_t ns = 0, launches = 0;  // the latter in kLaunch
  };
  Spread& spread(uint32_t row) {
    touch(row);
    if (spread_.size() <= row) spread_.resize(row + size_t{1});
    return spread_[row];
  }
  void stretch(uint64_t to);
  void stretch_of_two(uint64_t to);
  void enter_step(uint32_t) {}
  bool counts() const { return true; }
  bool within(uint64_t) const { return true; }
  bool is_plain(const Launch&) const { return true; }
  bool is_idle_beside(const Launch&) const { return false; }
  void ran_beside(const Launch&, uint64_t, uint64_t) {}
  Set* set_of(uint32_t row, uint32_t higher_row);
  Set* set_of_running();
  Set* set_of_key();
  std::vector<std::pair<Key, Set>> numbered_sets(std::span<const uint32_t> rows);
  void as_if_alone(uint64_t to);

  std::vector<Spread> spread_;  // by row
  std::unordered_map<Key, Set, Hash> sets_;
  // The last sets of two rows, by the rows: kernels of two streams meet again and again.
  struct Pair {
    uint64_t rows = UINT64_MAX;
    Set* set = nullptr;
  };
  std::array<Pair, 256> pairs_{};
  uint64_t spread_ns_ = 0;
  Key key_;                      // of the stretch at hand, and the places of its launches
  std::vector<uint32_t> order_;  // in running()
};

}  // namespace flopinj::reduce
