// Before pass two, only where ranges name operators: which forward operator a launch of backward
// belongs to, and what ran forward where no range says so.
//
// PyTorch counts the nodes of autograd's graph, per thread. Every operator carries the number that
// the next node will get, also one that makes none: `aten::add_, seq = 7` (a counter of batches)
// before `aten::batch_norm, seq = 7`. So a number has several operators, and its node says by name
// which of them is its own (phases/operators.h); where the name does not say, it is the last one,
// since a number is given out once. Nodes run on another thread, and either may come first in a
// trace. So for each device of a trace a window of the last numbers is kept, with the operators and
// the nodes' launches of each; they are joined when a number leaves it. A number is looked up by
// its remainder, and what is in its place with a smaller number falls out of the window.
//
// A node evaluated inside of another belongs to an operator that ran inside of that one too: a
// reentrant checkpoint runs forward again and then backward.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/sequence/backward_passes.h"
#include "passes/sequence/own_numbers.h"
#include "passes/sequence/sequence_groups.h"
#include "phases/operator_calls.h"
#include "phases/operators.h"
#include "phases/phases.h"
#include "reader/launch_batch.h"
#include "reader/packet_reader.h"
#include "support/few_list.h"
#include "support/paged.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class SequencePass {
 public:
  static constexpr size_t kWindow = 1U << 16;  // numbers; a step of a large model takes thousands
  static constexpr size_t kMaxWindows = 16;    // devices of a trace; about 12 MiB each
  static constexpr size_t kMaxThreads = 1U << 16;  // of a trace
  static constexpr size_t kMaxPages = 1U << 15;    // of kPage paths of a thread; 1 KiB each
  static constexpr size_t kMaxJoined = 1U << 20;
  static constexpr size_t kMaxOperators = 8;  // of a number: the last ones
  static constexpr size_t kMaxInNode =
      256;  // range paths with launches of a number inside of nodes
  static constexpr size_t kMaxWaiting = 1U << 20;  // of these in all windows

  // All must outlive the pass.
  SequencePass(const TraceTables& tables, const PhaseRules& rules, PhaseMap& phases,
               const OperatorMap& operators);
  // Looks at launch batches, and at a summary's groups. The passes before logged damage.
  void packet(uint32_t trace, const Packet& packet);
  OperatorCalls take();
  // Of operators inside of nodes, by path: OwnNumbers::take(). After take().
  std::vector<bool> take_again() { return std::move(again_); }
  // What numbers tell of launches, after take(). `all`: also of threads where ranges decide for all
  // operators, so that numbers do not matter by the rules at hand.
  ForwardNumbers take_numbers(bool all);

 private:
  // A range path outside of all nodes.
  struct Operator {
    uint32_t path = 0, thread = 0, stream = 0;
    bool operator==(const Operator&) const = default;
  };
  // One inside of a node.
  struct InNode {
    uint32_t path = 0;
    bool again = false;  // an operator that is computed again, by its phase
    uint64_t launches = 0;
    bool operator==(const InNode&) const = default;
  };
  // What has one number.
  struct Group {
    FewList<Operator, 2> operators;  // in the order of their last launches
    FewList<InNode, 2> in_nodes;
    bool crowded = false;  // there were more operators
    bool operator==(const Group&) const = default;
    size_t hash() const;  // where there are launches in nodes
  };
  struct Slot {
    uint64_t sequence = 0;                           // plus 1; 0: free
    uint32_t backward_pass = BackwardPasses::kNone;  // of a node that no other one evaluates
    Group group;
  };
  // Training steps repeat the groups of the step before: equal ones are counted, and joined once.
  struct Repeated {
    Group group;
    uint64_t times = 0;
    BackwardPasses::Own own;  // what the group's node is of
  };
  static constexpr size_t kRepeated = 1U << 12;
  static constexpr size_t kPage = 64;
  using Window = Paged<Slot, kWindow, kPage>;  // a short recording uses few of its pages
  // What a range path makes of its launches.
  enum class Part : uint8_t { kNotLookedUp, kOperator, kInNode, kAgain, kNone };
  struct OnPath {
    uint64_t last = 0;  // sequence number of the last launch
    Part part = Part::kNotLookedUp;
    bool in_pass = false;  // in a node that no other one evaluates
  };
  // A thread of the current trace: its paths in pages, since most threads have few of all paths.
  struct Thread {
    uint32_t id = 0, name = 0;
    std::vector<std::unique_ptr<std::array<OnPath, kPage>>> pages;
  };
  struct Where {
    Thread* thread = nullptr;
    uint32_t stream = 0;
    Window* slots = nullptr;               // nullptr where there are none for this device
    BackwardPasses::Lane* lane = nullptr;  // the same for too many threads and streams
    OwnNumbers::Lane* own = nullptr;       // the same
  };
  // The forward operator of a launch, or why there is none.
  enum class Lost : uint8_t { kNone, kWithoutForward, kOtherOperator, kAmbiguous, kOutOfWindow };
  struct Home {
    uint32_t path = kNoIndex;
    Lost lost = Lost::kNone;
    bool several = false;  // the path is of a function that ran several operators
    uint32_t thread = 0;   // of an operator outside of nodes
  };

  Thread& thread_of(uint32_t id);
  OnPath* on_path(Thread& thread, uint32_t path);
  Part part_of(uint32_t path, uint32_t thread_name);
  void launches(const Where& where, uint32_t path_id, uint64_t sequence, uint64_t count);
  void count_call(OnPath* on, uint32_t path, uint64_t sequence);
  uint32_t path_of(uint32_t id) const;  // kNoIndex where it is no range
  uint32_t device_of(uint32_t stream) const;
  void groups(const Packet& packet);
  void group(uint64_t times, const SequenceGroup& group);
  void count_group(uint64_t times, const SequenceGroup& group);
  static void add_operator(Group& group, const Operator& added);
  void add_in_node(Group& group, const InNode& added);
  // Frees a slot: its group is complete.
  void close(Slot& slot);
  // Joins a group `times` times.
  void join_group(const Group& group, uint64_t times);
  Home home_of(const Group& group, const InNode& launches) const;
  Home among_operators(const Group& group, const AutogradNode& node) const;
  uint32_t inside_of_its_node(const Group& group, const AutogradNode& node) const;
  void join(uint32_t backward, uint32_t forward, uint64_t launches, uint64_t numbers);
  // Of the node of a group that no other node evaluates.
  BackwardPasses::Own own_of(const Group& group) const;
  void lose(uint32_t backward, Lost lost, uint64_t launches);
  Window* window(uint32_t device);
  void end_windows_of_others();

  const TraceTables& tables_;
  const PhaseRules& rules_;
  PhaseMap& phases_;
  const OperatorMap& operators_;
  LaunchList list_;
  uint32_t trace_ = kNoIndex;
  OperatorCalls calls_;
  BackwardPasses backward_passes_;
  OwnNumbers own_numbers_;
  std::vector<bool> again_;
  std::set<std::pair<uint32_t, uint32_t>> open_;  // traces' threads where numbers matter
  std::vector<bool> unknown_;                     // by path: calls cannot be counted
  std::unordered_map<uint32_t, Thread> threads_;
  size_t pages_ = 0;
  Thread unlisted_;                               // of threads beyond kMaxThreads
  std::unordered_map<uint32_t, Window> windows_;  // by device
  size_t waiting_ = 0;                            // in_nodes of all slots
  Paged<Repeated, kRepeated, kPage> repeated_;    // by Group::hash()
};

}  // namespace flopinj::reduce
