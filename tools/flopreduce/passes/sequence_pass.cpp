#include "passes/sequence_pass.h"

#include <algorithm>
#include <map>
#include <set>

#include "flop_trace_fields.h"
#include "reader/launch_batch.h"
#include "reader/message.h"

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
  if (trace != trace_) {
    threads_.clear();
    pages_ = 0;
  }
  trace_ = trace;
  const auto field = static_cast<Field>(packet.body_field);
  if (field == Field::sequence_groups) return groups(packet);
  if (field != Field::launch_batch) return;
  DamageLog told;
  LaunchBatchReader batch;
  if (!batch.open(packet.body, told)) return;
  const uint32_t device = device_of(batch.stream());
  const Where where{&thread_of(batch.thread()), device == kNoIndex ? nullptr : window(device)};
  batch.for_each_sequence(model_.traces[trace].patterns,
                          [&](uint32_t path_id, uint64_t sequence, bool graph, uint64_t count) {
                            launches(where, path_id, graph ? 0 : sequence, count);
                          });
}

SequencePass::Thread& SequencePass::thread_of(uint32_t id) {
  const auto found = threads_.find(id);
  if (found != threads_.end()) return found->second;
  const bool listed = threads_.size() < kMaxThreads;
  Thread& thread = listed ? threads_[id] : unlisted_;
  const uint32_t name = id == 0 ? NamePool::kEmpty : model_.traces[trace_].threads.get(id);
  thread.id = id;
  thread.name = name == kNoIndex ? NamePool::kEmpty : name;
  if (listed) thread.pages.resize(model_.paths.size() / kPage + 1);
  return thread;
}

// Nothing where there is no room for it.
SequencePass::OnPath* SequencePass::on_path(Thread& thread, uint32_t path) {
  if (thread.pages.empty()) return nullptr;
  auto& page = thread.pages[path / kPage];
  if (!page) {
    if (pages_ == kMaxPages) return nullptr;
    ++pages_;
    page = std::make_unique<std::array<OnPath, kPage>>();
  }
  return &(*page)[path % kPage];
}

SequencePass::Part SequencePass::part_of(uint32_t path, uint32_t thread_name) {
  const std::string& phase = rules_.rules()[phases_.rule_of(path, thread_name)].phase;
  if (phase == "backward") return Part::kBackward;
  // Recomputed operators get new numbers, and belong to no backward operator of their own.
  return phase == "forward" || phase == "loss" || phase == "other" ? Part::kForward : Part::kNone;
}

// kNoIndex where it is not known.
uint32_t SequencePass::device_of(uint32_t stream) const {
  const TraceState& state = model_.traces[trace_];
  return stream == 0 ? state.devices.get(1) : state.streams.get(stream);
}

uint32_t SequencePass::path_of(uint32_t id) const {
  const uint32_t path = id == 0 ? PathTable::kRoot : model_.traces[trace_].paths.get(id);
  return path == kNoIndex || path <= PathTable::kLost ? kNoIndex : path;
}

void SequencePass::launches(const Where& where, uint32_t path_id, uint64_t sequence,
                            uint64_t count) {
  const uint32_t path = path_of(path_id);
  if (path == kNoIndex) return;
  OnPath* const on = on_path(*where.thread, path);
  count_call(on, path, sequence);
  if (sequence == 0) return;
  Part part = on == nullptr ? Part::kNotLookedUp : on->part;
  if (part == Part::kNotLookedUp) part = part_of(path, where.thread->name);
  if (on != nullptr) on->part = part;
  if (part == Part::kNone) return;
  Slot* slot = where.slots == nullptr ? nullptr : &(*where.slots)[sequence % kWindow];
  if (slot == nullptr || slot->sequence > sequence) {
    if (part == Part::kBackward) add_saturating(calls_.out_of_window, count);
    return;
  }
  if (slot->sequence != sequence) {
    forget(*slot);
    slot->sequence = sequence;
  }
  if (part == Part::kBackward)
    backward(*slot, path, count);
  else
    forward(*slot, where, path);
}

// A summary has the launches of one number together, and how many numbers had the same ones.
void SequencePass::groups(const Packet& packet) {
  trace::SequenceGroups message;
  if (!parse_message(message, packet.body)) return;
  for (const uint32_t id : message.path_without())
    if (const uint32_t path = path_of(id); path != kNoIndex) unknown_[path] = true;
  for_each_group(message, [&](uint64_t times, const SequenceGroup& of_one) {
    count_group(times, of_one);
    group(times, of_one);
  });
}

void SequencePass::count_group(uint64_t times, const SequenceGroup& group) {
  std::set<std::pair<uint32_t, uint32_t>> called;  // (thread, path): once, on however many streams
  for (const NumberedLaunches& l : group)
    if (const uint32_t path = path_of(l.path);
        path != kNoIndex && called.emplace(l.thread, path).second)
      add_saturating(calls_.calls[path], times);
}

void SequencePass::group(uint64_t times, const SequenceGroup& group) {
  std::map<uint32_t, Slot> slots;  // by device
  for (const Part part : {Part::kForward, Part::kBackward})
    for (const NumberedLaunches& l : group) {
      const uint32_t path = path_of(l.path);
      Thread& thread = thread_of(l.thread);
      if (path == kNoIndex || part_of(path, thread.name) != part) continue;
      const uint32_t device = device_of(l.stream);
      Slot& slot = slots[device];
      if (part == Part::kForward) {
        if (device != kNoIndex) forward(slot, {&thread, nullptr}, path);
        continue;
      }
      const u128 all = u128{l.launches} * times;
      const uint64_t count = all > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(all);
      if (device == kNoIndex)
        add_saturating(calls_.out_of_window, count);
      else if (slot.ambiguous)
        add_saturating(calls_.ambiguous, count);
      else if (slot.forward == 0)
        add_saturating(calls_.without_forward, count);
      else
        join(path, slot.forward, count);
    }
}

void SequencePass::count_call(OnPath* on, uint32_t path, uint64_t sequence) {
  if (sequence == 0 || on == nullptr || unknown_[path]) {
    unknown_[path] = true;
    return;
  }
  if (on->last != sequence) ++calls_.calls[path];
  on->last = sequence;
}

void SequencePass::forward(Slot& slot, const Where& where, uint32_t path) {
  if (slot.forward != 0) {
    // The first range of an operator stands for it; another thread's makes the number ambiguous.
    slot.ambiguous = slot.ambiguous || slot.thread != where.thread->id;
    return;
  }
  slot.forward = path;
  slot.thread = where.thread->id;
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
    if (is_other_operator(backward, forward)) {
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

// An autograd node names the function that it belongs to.
bool SequencePass::is_other_operator(uint32_t backward, uint32_t forward) {
  const uint64_t key = OperatorCalls::key(backward, forward);
  if (other_operator_.contains(key)) return true;
  const std::string node = operators_.autograd_node(backward);
  if (node.empty() || operators_.is_function_of(forward, node)) return false;
  if (other_operator_.size() < kMaxJoined) other_operator_.insert(key);
  return true;
}

void SequencePass::forget(Slot& slot) {
  for (const Pending& waiting : slot.pending)
    add_saturating(calls_.without_forward, waiting.launches);
  slot = {};
}

std::vector<SequencePass::Slot>* SequencePass::window(uint32_t device) {
  const auto found = windows_.find(device);
  if (found != windows_.end()) return &found->second;
  if (windows_.size() >= kMaxWindows) end_windows_of_others();
  if (windows_.size() >= kMaxWindows) return nullptr;
  return &windows_.emplace(device, std::vector<Slot>(kWindow)).first->second;
}

// Traces come one after another, as a rule; parts of one trace are read together.
void SequencePass::end_windows_of_others() {
  for (auto at = windows_.begin(); at != windows_.end();) {
    if (model_.devices[at->first].trace == trace_) {
      ++at;
      continue;
    }
    for (Slot& slot : at->second) forget(slot);
    at = windows_.erase(at);
  }
}

OperatorCalls SequencePass::take() {
  for (auto& [device, slots] : windows_)
    for (Slot& slot : slots) forget(slot);
  for (size_t i = 0; i < unknown_.size(); ++i)
    if (unknown_[i]) calls_.calls[i] = 0;
  return std::move(calls_);
}

}  // namespace flopinj::reduce
