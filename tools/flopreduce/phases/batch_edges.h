// Launches without sequence numbers at the ends of batches, and the numbered ones before and after
// them on their thread and stream, which are in other batches. So it says nothing of a launch in
// which batch it was written.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "phases/operators.h"
#include "tables/id_map.h"

namespace flopinj::reduce {

class BatchEdges {
 public:
  // Batches with such launches. Of later ones nothing is known beyond the batch, and what is at
  // their ends is as if the recording began and ended there.
  static constexpr size_t kMost = 1U << 20;
  static constexpr size_t kMostRules = 16;

  struct Numbered {
    uint64_t number = 0;  // plus 1, as in the trace; 0: there is none
    uint32_t path = kNoIndex;
  };
  struct Gap {
    Numbered before, after;
    // Rules around those among its launches that may have weights among their operands.
    std::vector<uint32_t> rules_of_weights;
    bool products = false;  // there are others, and no range decides for their phase
  };
  // Of a batch: the gaps that its first and last launches are in; null where these have numbers.
  struct Ends {
    const Gap* first = nullptr;
    const Gap* last = nullptr;
  };

  // What a thread launches on a stream, while its batches are added in order.
  class Lane {
   public:
    // `packet`: the batch's number in its trace. Then its launches, each one of two kinds.
    void begin(uint32_t packet) {
      packet_ = packet;
      first_ = true;
      unnumbered_ = false;
    }
    // `rule`: OperatorMap::rule_around() its path.
    void unnumbered(Multiplies multiplies, uint32_t rule) {
      unnumbered_ = true;
      products_ = products_ || (multiplies == Multiplies::kProducts && rule == kNoIndex);
      if (multiplies == Multiplies::kWeights && rules_.size() < kMostRules &&
          std::ranges::find(rules_, rule) == rules_.end())
        rules_.push_back(rule);
    }
    void numbered(BatchEdges& edges, uint32_t trace, const Numbered& launch) {
      const bool leads = first_ && unnumbered_;
      if (gap_ == kNoIndex && leads) gap_ = edges.new_gap(before_);
      if (gap_ != kNoIndex) {
        edges.gaps_[gap_].after = launch;
        set_rules(edges);
        if (leads) edges.at(trace, packet_).first = gap_;
      }
      gap_ = kNoIndex;
      rules_.clear();
      products_ = false;
      first_ = unnumbered_ = false;
      before_ = launch;
    }
    void end(BatchEdges& edges, uint32_t trace) {
      if (!unnumbered_) return;
      if (gap_ == kNoIndex) gap_ = edges.new_gap(before_);
      if (gap_ == kNoIndex) return;
      set_rules(edges);
      Edge& edge = edges.at(trace, packet_);
      edge.last = gap_;
      if (first_) edge.first = gap_;
    }

   private:
    void set_rules(BatchEdges& edges) const {
      edges.gaps_[gap_].rules_of_weights = rules_;
      edges.gaps_[gap_].products = products_;
    }

    Numbered before_;
    uint32_t gap_ = kNoIndex;  // that began in a batch before, or at the end of this one
    uint32_t packet_ = 0;
    bool first_ = true;        // no numbered launch yet in the batch
    bool unnumbered_ = false;  // one or more since the last numbered one, in the batch
    std::vector<uint32_t> rules_;
    bool products_ = false;
  };

  Ends of(uint32_t trace, uint32_t packet) const {
    if (trace >= traces_.size()) return {};
    const auto found = std::ranges::lower_bound(traces_[trace], packet, {}, &Edge::packet);
    if (found == traces_[trace].end() || found->packet != packet) return {};
    const auto gap = [&](uint32_t at) { return at == kNoIndex ? nullptr : &gaps_[at]; };
    return {gap(found->first), gap(found->last)};
  }

 private:
  struct Edge {
    uint32_t packet = 0, first = kNoIndex, last = kNoIndex;  // of gaps_
  };
  uint32_t new_gap(const Numbered& before) {
    if (gaps_.size() >= kMost) return kNoIndex;
    gaps_.push_back({.before = before, .after = {}, .rules_of_weights = {}});
    return static_cast<uint32_t>(gaps_.size() - 1);
  }
  // Of the batch that is being added.
  Edge& at(uint32_t trace, uint32_t packet) {
    if (traces_.size() <= trace) traces_.resize(trace + size_t{1});
    auto& edges = traces_[trace];
    if (edges.empty() || edges.back().packet != packet) edges.push_back({packet});
    return edges.back();
  }

  std::vector<Gap> gaps_;
  std::vector<std::vector<Edge>> traces_;  // by packet
};

}  // namespace flopinj::reduce
