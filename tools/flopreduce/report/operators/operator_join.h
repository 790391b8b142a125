// Which forward operators a backward range's launches belong to, by the sequence numbers that
// passes/sequence/sequence_pass.h joined.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "phases/operator_calls.h"
#include "phases/operators.h"
#include "report/report.h"

namespace flopinj::reduce {

class OperatorJoin {
 public:
  using Share = std::pair<uint32_t, uint64_t>;               // forward path, launches
  using Calls = std::pair<uint32_t, OperatorCalls::Joined>;  // backward path, what it has

  // `calls` must outlive the join.
  OperatorJoin(const OperatorCalls& calls, const OperatorMap& operators);
  // Whether a forward path is of a function that has one node for several operators inside.
  bool shares_node(uint32_t forward) const { return calls_.functions.contains(forward); }
  // Nothing where no number of the path was joined.
  const std::vector<Share>* forwards_of(uint32_t backward) const;
  const std::vector<Calls>* backwards_of(uint32_t forward) const;
  // Calls visit(path) with each forward path that a backward one belongs to.
  template <class Visit>
  void for_each_forward(Visit&& visit) const {
    for (const auto& [path, backwards] : backwards_) visit(path);
  }
  // Calls visit(path, part) with the forward paths that launches of a backward path belong to; of
  // any other path with itself.
  template <class Visit>
  void for_each_home(uint32_t path, const std::string& phase, Visit&& visit) const {
    const auto* forwards = phase == "backward" ? forwards_of(path) : nullptr;
    if (forwards == nullptr) return visit(path, Part{});
    for_each_share(*forwards, alike(path), visit);
  }
  // Whether the forward operators of a backward path do the same, each call of them.
  bool alike(uint32_t backward) const { return !unlike_.contains(backward); }
  template <class Visit>
  static void for_each_share(const std::vector<Share>& shares, bool alike, Visit&& visit) {
    Part part{0, 0, 0, alike};
    for (const auto& [path, launches] : shares) add_saturating(part.all, launches);
    for (const auto& [path, launches] : shares) {
      part.to = launches > part.all - part.from ? part.all : part.from + launches;
      visit(path, part);
      part.from = part.to;
    }
  }

 private:
  const OperatorCalls& calls_;
  std::unordered_map<uint32_t, std::vector<Share>> forwards_;
  std::unordered_map<uint32_t, std::vector<Calls>> backwards_;
  std::unordered_set<uint32_t> unlike_;  // backward paths
};

}  // namespace flopinj::reduce
