#include "passes/sequence_pass.h"

#include <algorithm>

#include "flop_trace_fields.h"
#include "reader/launch_batch.h"

namespace flopinj::reduce {

SequencePass::SequencePass(const Model& model, const PhaseRules& rules, PhaseMap& phases,
                           const OperatorMap& operators)
    : model_(model),
      rules_(rules),
      phases_(phases),
      operators_(operators),
      unknown_(model.paths.size(), false) {
  calls_.calls.resize(model.paths.size());
}

void SequencePass::packet(uint32_t trace, const Packet& packet) {
  using Field = trace_fields::TracePacketField;
  if (static_cast<Field>(packet.body_field) != Field::launch_batch) return;
  if (trace != trace_) last_.clear();
  trace_ = trace;
  DamageLog told;
  LaunchBatchReader batch;
  if (!batch.open(packet.body, told)) return;
  const TraceState& state = model_.traces[trace];
  const uint32_t device =
      batch.stream() == 0 ? state.devices.get(1) : state.streams.get(batch.stream());
  const uint32_t thread_name =
      batch.thread() == 0 ? NamePool::kEmpty : state.threads.get(batch.thread());
  const Where where{batch.thread(), batch.stream(), device,
                    thread_name == kNoIndex ? NamePool::kEmpty : thread_name};
  batch.for_each_sequence(state.patterns,
                          [&](uint32_t path_id, uint64_t sequence, bool graph, uint64_t count) {
                            launches(where, path_id, graph ? 0 : sequence, count);
                          });
}

void SequencePass::launches(const Where& where, uint32_t path_id, uint64_t sequence,
                            uint64_t count) {
  const uint32_t path = path_id == 0 ? PathTable::kRoot : model_.traces[trace_].paths.get(path_id);
  if (path == kNoIndex || path <= PathTable::kLost) return;
  count_call(where, path, sequence);
  if (sequence == 0) return;
  const std::string& phase = rules_.rules()[phases_.rule_of(path, where.thread_name)].phase;
  const bool is_backward = phase == "backward";
  // Recomputed operators get new numbers, and belong to no backward operator of their own.
  if (!is_backward && phase != "forward" && phase != "loss" && phase != "other") return;
  std::vector<Slot>* slots = where.device == kNoIndex ? nullptr : window(where.device);
  Slot* slot = slots == nullptr ? nullptr : &(*slots)[sequence % kWindow];
  if (slot == nullptr || slot->sequence > sequence) {
    if (is_backward) add_saturating(calls_.out_of_window, count);
    return;
  }
  if (slot->sequence != sequence) {
    forget(*slot);
    slot->sequence = sequence;
  }
  if (is_backward)
    backward(*slot, path, count);
  else
    forward(*slot, where, path);
}

void SequencePass::count_call(const Where& where, uint32_t path, uint64_t sequence) {
  if (sequence == 0 || unknown_[path]) {
    unknown_[path] = true;
    return;
  }
  const uint64_t key = static_cast<uint64_t>(where.thread) << 32 | path;
  if (last_.size() >= kMaxCalls && !last_.contains(key)) {
    unknown_[path] = true;
    return;
  }
  uint64_t& last = last_[key];
  if (last != sequence) ++calls_.calls[path];
  last = sequence;
}

void SequencePass::forward(Slot& slot, const Where& where, uint32_t path) {
  if (slot.forward != 0) {
    // The first range of an operator stands for it; another thread's makes the number ambiguous.
    slot.ambiguous = slot.ambiguous || slot.thread != where.thread;
    return;
  }
  slot.forward = path;
  slot.thread = where.thread;
  for (Pending& waiting : slot.pending) {
    if (waiting.launches > 0) join(waiting.path, path, waiting.launches);
    waiting = {};
  }
}

void SequencePass::backward(Slot& slot, uint32_t path, uint64_t count) {
  if (slot.ambiguous) {
    add_saturating(calls_.ambiguous, count);
    return;
  }
  if (slot.forward != 0) {
    join(path, slot.forward, count);
    return;
  }
  for (Pending& waiting : slot.pending) {
    if (waiting.launches != 0 && waiting.path != path) continue;
    if (count > UINT32_MAX - waiting.launches) break;
    waiting.path = path;
    waiting.launches += static_cast<uint32_t>(count);
    return;
  }
  add_saturating(calls_.out_of_window, count);
}

void SequencePass::join(uint32_t backward, uint32_t forward, uint64_t count) {
  const uint64_t key = OperatorCalls::key(backward, forward);
  auto found = calls_.joined.find(key);
  if (found == calls_.joined.end()) {
    const std::string node = operators_.autograd_node(backward);
    if (!node.empty() && !operators_.is_function_of(forward, node)) {
      add_saturating(calls_.other_operator, count);
      return;
    }
    if (calls_.joined.size() >= kMaxJoined) {
      add_saturating(calls_.out_of_window, count);
      return;
    }
    found = calls_.joined.emplace(key, 0).first;
  }
  add_saturating(found->second, count);
  add_saturating(calls_.joined_launches, count);
}

void SequencePass::forget(Slot& slot) {
  for (const Pending& waiting : slot.pending)
    add_saturating(calls_.without_forward, waiting.launches);
  slot = {};
}

std::vector<SequencePass::Slot>* SequencePass::window(uint32_t device) {
  const auto found = windows_.find(device);
  if (found != windows_.end()) return &found->second;
  if (windows_.size() >= kMaxWindows) return nullptr;
  return &windows_.emplace(device, std::vector<Slot>(kWindow)).first->second;
}

OperatorCalls SequencePass::take() {
  for (auto& [device, slots] : windows_)
    for (Slot& slot : slots) forget(slot);
  for (size_t i = 0; i < unknown_.size(); ++i)
    if (unknown_[i]) calls_.calls[i] = 0;
  return std::move(calls_);
}

}  // namespace flopinj::reduce
