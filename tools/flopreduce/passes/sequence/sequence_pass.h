// Before pass two, only where ranges name operators: which forward operator a launch of backward
// belongs to, and what ran forward where no range says so.
//
// PyTorch counts the nodes of autograd's graph, per thread. Every operator carries the number that
// the next node will get, also one that makes none: `aten::add_, seq = 7` (a counter of batches)
// before `aten::batch_norm, seq = 7`. So a number has several operators, and its node says by name
// which of them is its own (phases/operators.h); where the name does not say, it is the last one
// that may have a gradient, since a number is given out once. It is unknown where something without
// a number ran behind it: a library's function may have had the node, and no number of its own.
// Nodes run on another thread, and either may come first in a trace. So each device of a trace has
// a SequenceWindow of the operators' and the nodes' launches, and what shares a number is joined.
// Batches of threads and streams come in any order, which says nothing: of several, the last ones
// of each count.
//
// A node evaluated inside of another belongs to an operator that ran inside of that one too: a
// reentrant checkpoint runs forward again and then backward.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "passes/packets/segments.h"
#include "passes/sequence/backward_passes.h"
#include "passes/sequence/launch_places.h"
#include "passes/sequence/own_numbers.h"
#include "passes/sequence/sequence_groups.h"
#include "passes/sequence/sequence_window.h"
#include "phases/batch_edges.h"
#include "phases/operator_calls.h"
#include "phases/operators.h"
#include "phases/phases.h"
#include "reader/launch_batch.h"
#include "support/few_list.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class SequencePass {
 public:
  static constexpr size_t kMaxWindows = 16;  // devices of a trace; about 4 MiB each
  static constexpr size_t kMaxJoined = 1U << 20;
  static constexpr size_t kMaxOperators = 8;  // of a number on a thread and stream: the last ones
  static constexpr size_t kMaxInNode =
      256;  // range paths with launches of a number inside of nodes

  // All must outlive the pass.
  SequencePass(const TraceTables& tables, const PhaseRules& rules, PhaseMap& phases,
               const OperatorMap& operators);
  // Looks at launch batches, and at a summary's groups, of one trace after another. The passes
  // before logged damage.
  void read(const Segments& segments);
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
  };
  // One inside of a node.
  struct InNode {
    uint32_t path = 0;
    bool again = false;  // an operator that is computed again, by its phase
    uint64_t launches = 0, calls = 0;
  };
  // A backward pass, as a stream's launches show it.
  struct InPass {
    uint32_t pass = BackwardPasses::kNone;
    uint32_t stream = UINT32_MAX;
  };
  // Those of a number: of the streams with the lowest numbers, in whatever order they come.
  struct Passes {
    std::array<InPass, 2> all{};
    void add(InPass in) {
      if (in.pass == BackwardPasses::kNone) return;
      for (InPass& known : all) {
        if (known.pass == in.pass) return;
        if (in.stream < known.stream) std::swap(known, in);
      }
    }
  };
  // A group knows the node that all of its launches have in common.
  using Window = SequenceWindow<Passes, BackwardPasses::Own>;
  // What a range path makes of its launches.
  enum class Part : uint8_t {
    kNotLookedUp,
    kOperator,
    kInNode,
    kInFunction,  // in one of the program's inside of a node: the number is not the node's
    kAgain,
    kNone,
    kOutside,
    kWithout  // no number: SequenceGroups::kWithout
  };
  // Launches that share a number, of a trace's places or as a summary names them.
  struct Member {
    Part part = Part::kNone;
    Operator of;  // path kNoIndex: something without a number
    uint64_t launches = 0, calls = 0;
  };
  // What has one number on one device.
  struct Group {
    FewList<Operator, 2> operators;  // of a thread and stream, in the order of their last launches
    // Threads and streams where something without a number ran behind these; no paths.
    FewList<Operator, 1> without;
    FewList<InNode, 2> in_nodes;
    bool crowded = false;  // there were more operators
  };
  struct OnPlace {
    SequenceNumbers::Next first;
    uint32_t path = kNoIndex;
    uint64_t last = 0;           // sequence number of the last launch that no window has
    uint32_t node = 0, own = 0;  // of the path: what OwnNumbers::launch() asks for
    OwnNumbers::Of of = OwnNumbers::Of::kNode;  // likewise
    uint32_t program_function = 0;  // OperatorMap::program_function_of(), or that of its node
    Part part = Part::kNotLookedUp;
    bool in_pass = false;  // in a node that no other one evaluates
  };
  // On a lane of places.
  struct OnLane {
    bool fresh = true;
    Window* window = nullptr;  // nullptr where there is none for this device
    BackwardPasses::Lane passes;
    OwnNumbers::Lane own;
    BatchEdges::Lane edges;
    uint64_t operators = 0;  // number of the last operators
    bool without = false;    // something without a number ran behind them
    // Of a program's function, whose call runs; 0: none. And the last number of each.
    uint32_t program_function = 0;
    std::unordered_map<uint32_t, uint64_t> program_calls = {};
  };
  using Places = LaunchPlaces<OnPlace, OnLane>;
  // The forward operator of a launch, or why there is none.
  enum class Lost : uint8_t { kNone, kWithoutForward, kOtherOperator, kAmbiguous, kOutOfWindow };
  struct Home {
    uint32_t path = kNoIndex;
    Lost lost = Lost::kNone;
    bool several = false;  // the path is of a function that ran several operators
    uint32_t thread = 0;   // of an operator outside of nodes
  };

  void packet(uint32_t trace, const Packet& packet);
  uint32_t thread_name(uint32_t id) const;
  Part part_of(uint32_t path, uint32_t thread) const;
  void launches(Places::Lane& lane, std::span<const LaunchCall> calls);
  void note_program_call(OnLane& lane, uint32_t function, uint64_t number);
  void note_step_names(const LaunchBatchReader& batch, std::span<const LaunchCall> calls);
  void note_edges(OnLane& lane, uint32_t packet, std::span<const LaunchCall> calls);
  void without_number(Places::Lane& lane, const LaunchCall& call);
  void uncounted(const LaunchPlace& lane, const LaunchCall& call);
  void look_up(OnPlace& on, const LaunchPlace& place);
  OwnNumbers::Of part_of_node(uint32_t path) const;
  bool is_layer(uint32_t path) const;
  uint32_t path_of(uint32_t id) const;  // kNoIndex where it is no range
  uint32_t device_of(uint32_t stream) const;
  void groups(const Packet& packet);
  void note_again(const Packet& packet);
  void group(uint64_t times, const SequenceGroup& group);
  std::vector<Member> members(const SequenceNumbers::Group& group);
  void count_calls(std::span<const Member> members, uint64_t times);
  void add(Group& group, const Member& member);
  Group named(std::span<const Member> members);
  void complete(Window& window, const Window::Complete& number) {
    if (number.known.all.front().pass == BackwardPasses::kNone) return;
    BackwardPasses::Own& own = window.known(number.group);
    if (!own.known) own = own_of(window, number.group);
    for (const InPass& in : number.known.all)
      backward_passes_.joined(in.pass, number.sequence, own);
  }
  // Joins a group `times` times.
  void join_group(const Group& group, uint64_t times);
  Home home_of(const Group& group, const InNode& launches) const;
  Home among_operators(const Group& group, const AutogradNode& node) const;
  bool may_own(const Operator& of, const AutogradNode& node) const;
  uint32_t inside_of_its_node(const Group& group, const AutogradNode& node) const;
  void join(const InNode& backward, uint32_t forward, uint64_t times);
  // Of the node of a group that no other node evaluates.
  [[gnu::noinline]] BackwardPasses::Own own_of(const Window& window, uint32_t of);
  void lose(uint32_t backward, Lost lost, uint64_t launches);
  Window* window(uint32_t device);
  void end_trace();

  const TraceTables& tables_;
  const PhaseRules& rules_;
  PhaseMap& phases_;
  const OperatorMap& operators_;
  uint32_t trace_ = kNoIndex;
  OperatorCalls calls_;
  BackwardPasses backward_passes_;
  OwnNumbers own_numbers_;
  std::vector<bool> again_;
  std::unordered_map<uint32_t, uint64_t> in_functions_;  // launches, by path
  std::unordered_set<uint32_t> told_again_;              // paths, by a summary
  std::unordered_set<uint32_t> program_functions_;       // AutogradNode::function
  std::unordered_set<uint32_t> layers_;                  // names of such ranges outside of nodes
  ForwardNumbers::NodeNumbers program_nodes_;
  std::set<std::pair<uint32_t, uint32_t>> open_;  // traces' threads where numbers matter
  bool any_node_ = false;                         // backward work has numbers
  bool none_joined_ = false;                      // and none is an operator's
  std::vector<bool> unknown_;                     // by path: calls cannot be counted
  std::vector<LaunchCall> calls_at_hand_;
  BatchEdges edges_;
  std::unordered_map<uint32_t, Multiplies> multiplies_;  // by path: OperatorMap::multiplies()
  // Of the trace at hand.
  std::optional<PatternCalls> pattern_calls_;
  Places places_;
  std::unordered_map<uint32_t, Window> windows_;  // by device
};

}  // namespace flopinj::reduce
