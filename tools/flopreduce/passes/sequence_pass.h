// Pass three, only where ranges name operators: the sequence numbers of launches.
//
// PyTorch counts forward operators per thread, and the backward node of an operator carries its number.
// Forward and backward run on different threads, and either may come first in a trace. So for each
// device of a trace a window of the last numbers is kept; a number is looked up by its remainder, and
// what is in its place with a smaller number falls out of the window.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/model.h"
#include "model/operator_calls.h"
#include "model/operators.h"
#include "model/phases.h"
#include "passes/sequence_groups.h"
#include "reader/packet_reader.h"

namespace flopinj::reduce {

class SequencePass {
 public:
  static constexpr size_t kWindow = 1U << 16;  // numbers; a step of a large model takes thousands
  static constexpr size_t kMaxWindows = 16;    // devices of a trace; about 3 MiB each
  static constexpr size_t kMaxThreads = 1U << 16;  // of a trace
  static constexpr size_t kMaxPages = 1U << 15;    // of kPage paths of a thread; 1 KiB each
  static constexpr size_t kMaxJoined = 1U << 20;

  // All must outlive the pass.
  SequencePass(const Model& model, const PhaseRules& rules, PhaseMap& phases,
               const OperatorMap& operators);
  // Looks at launch batches, and at what a summary keeps of them, alone. Damage was told by the passes before.
  void packet(uint32_t trace, const Packet& packet);
  OperatorCalls take();

 private:
  struct Pending {
    uint32_t path = 0;
    uint32_t launches = 0;  // 0: free
  };
  struct Slot {
    uint64_t sequence = 0;  // plus 1; 0: free
    uint32_t forward = 0;   // path; 0: none yet
    uint32_t thread = 0;    // of the forward path
    bool ambiguous = false;
    // Backward launches whose forward has not come: by range, and the node of a linear layer has three.
    std::array<Pending, 4> pending{};
  };
  // What a range path's phase makes of its launches.
  enum class Part : uint8_t { kNotLookedUp, kForward, kBackward, kNone };
  struct OnPath {
    uint64_t last = 0;  // sequence number of the last launch
    Part part = Part::kNotLookedUp;
  };
  static constexpr size_t kPage = 64;
  // A thread of the current trace: its paths in pages, since most threads have few of all paths.
  struct Thread {
    uint32_t id = 0, name = 0;
    std::vector<std::unique_ptr<std::array<OnPath, kPage>>> pages;
  };
  struct Where {
    Thread* thread = nullptr;
    std::vector<Slot>* slots = nullptr;  // nullptr where there are none for this device
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
  void forward(Slot& slot, const Where& where, uint32_t path);
  void backward(Slot& slot, uint32_t path, uint64_t count);
  void join(uint32_t backward, uint32_t forward, uint64_t count);
  bool is_other_operator(uint32_t backward, uint32_t forward);
  void forget(Slot& slot);
  std::vector<Slot>* window(uint32_t device);
  void end_windows_of_others();

  const Model& model_;
  const PhaseRules& rules_;
  PhaseMap& phases_;
  const OperatorMap& operators_;
  uint32_t trace_ = kNoIndex;
  OperatorCalls calls_;
  std::vector<bool> unknown_;  // by path: calls cannot be counted
  std::unordered_map<uint32_t, Thread> threads_;
  size_t pages_ = 0;
  Thread unlisted_;  // stands for threads beyond kMaxThreads
  std::unordered_map<uint32_t, std::vector<Slot>> windows_;  // by device
  std::unordered_set<uint64_t>
      other_operator_;  // OperatorCalls::key() of what does not belong together
};

}  // namespace flopinj::reduce
