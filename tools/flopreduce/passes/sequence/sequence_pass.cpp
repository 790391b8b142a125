#include "passes/sequence/sequence_pass.h"

#include <algorithm>
#include <map>
#include <set>

#include "flop_trace_fields.h"
#include "reader/launch_batch.h"
#include "reader/message.h"

namespace flopinj::reduce {
namespace {

uint64_t all_of(uint64_t launches, uint64_t times) {
  const u128 all = u128{launches} * times;
  return all > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(all);
}

}  // namespace

SequencePass::SequencePass(const TraceTables& tables, const PhaseRules& rules, PhaseMap& phases,
                           const OperatorMap& operators)
    : tables_(tables),
      rules_(rules),
      phases_(phases),
      operators_(operators),
      own_numbers_(operators),
      unknown_(tables.paths.size(), false) {
  calls_.calls.resize(tables.paths.size());
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
  const Where where{&thread_of(batch.thread()), batch.stream(),
                    device == kNoIndex ? nullptr : window(device),
                    backward_passes_.lane(trace, batch.thread(), batch.stream()),
                    own_numbers_.lane(trace, batch.thread(), batch.stream())};
  batch.read(tables_.traces[trace].patterns, list_);
  list_.for_each_call([&](uint32_t path_id, uint64_t sequence, bool graph, uint64_t count) {
    launches(where, path_id, graph ? 0 : sequence, count);
  });
}

SequencePass::Thread& SequencePass::thread_of(uint32_t id) {
  const auto found = threads_.find(id);
  if (found != threads_.end()) return found->second;
  const bool listed = threads_.size() < kMaxThreads;
  Thread& thread = listed ? threads_[id] : unlisted_;
  const uint32_t name = id == 0 ? NamePool::kEmpty : tables_.traces[trace_].threads.get(id);
  thread.id = id;
  thread.name = name == kNoIndex ? NamePool::kEmpty : name;
  if (listed) thread.pages.resize(tables_.paths.size() / kPage + 1);
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

// Whatever the phase, operators outside of nodes may have gradients, and what runs inside of nodes
// is theirs, but for operators that checkpointing runs again.
SequencePass::Part SequencePass::part_of(uint32_t path, uint32_t thread_name) {
  const AutogradNode* node = operators_.node_of(path);
  if (node == nullptr) return Part::kOperator;
  if (node->of_a_leaf) return Part::kNone;
  // The number is not the node's.
  if (operators_.own_number_of(path) != kNoIndex) return Part::kAgain;
  const std::string& phase = rules_.rules()[phases_.rule_of(path, thread_name)].phase;
  return phase == "recompute" ? Part::kAgain : Part::kInNode;
}

// kNoIndex where it is not known.
uint32_t SequencePass::device_of(uint32_t stream) const {
  const TraceState& state = tables_.traces[trace_];
  return stream == 0 ? state.unknown_device() : state.streams.get(stream);
}

uint32_t SequencePass::path_of(uint32_t id) const {
  const uint32_t path = id == 0 ? PathTable::kRoot : tables_.traces[trace_].paths.get(id);
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
  bool in_pass = on != nullptr && on->in_pass;
  if (part == Part::kNotLookedUp) {
    part = part_of(path, where.thread->name);
    // Nodes inside of others are of a backward pass of their own, of what ran again.
    in_pass = part == Part::kInNode && operators_.node_of(path)->inside == PathTable::kRoot;
    if (part == Part::kOperator && phases_.number_matters(path, where.thread->name))
      open_.emplace(trace_, where.thread->id);
    if (on != nullptr) on->part = part;
    if (on != nullptr) on->in_pass = in_pass;
  }
  if (where.own != nullptr) {
    if (part == Part::kOperator)
      own_numbers_.outside(*where.own);
    else
      own_numbers_.launch(*where.own, path);
  }
  if (part == Part::kNone) return;
  Slot* slot = where.slots == nullptr ? nullptr : &(*where.slots)[sequence % kWindow];
  if (slot == nullptr || slot->sequence > sequence) {
    if (part == Part::kInNode) lose(path, Lost::kOutOfWindow, count);
    return;
  }
  if (slot->sequence != sequence) {
    close(*slot);
    slot->sequence = sequence;
  }
  if (part == Part::kOperator) {
    add_operator(slot->group, {path, where.thread->id, where.stream});
    return;
  }
  add_in_node(slot->group, {path, part == Part::kAgain, count});
  if (!in_pass || where.lane == nullptr) return;
  const uint32_t pass = backward_passes_.node(*where.lane, sequence);
  if (slot->backward_pass == BackwardPasses::kNone) slot->backward_pass = pass;
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
  std::map<uint32_t, Group> groups;  // by device
  for (const NumberedLaunches& l : group) {
    const uint32_t path = path_of(l.path);
    if (path == kNoIndex) continue;
    const uint32_t device = device_of(l.stream);
    const Part part = part_of(path, thread_of(l.thread).name);
    if (part == Part::kNone) continue;
    if (device == kNoIndex) {
      if (part == Part::kInNode) lose(path, Lost::kOutOfWindow, all_of(l.launches, times));
      continue;
    }
    if (part == Part::kOperator)
      add_operator(groups[device], {path, l.thread, l.stream});
    else
      add_in_node(groups[device], {path, part == Part::kAgain, l.launches});
  }
  for (auto& [device, of_device] : groups) {
    waiting_ -= of_device.in_nodes.size();
    join_group(of_device, times);
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

void SequencePass::add_operator(Group& group, const Operator& added) {
  auto& list = group.operators;
  const auto same = [&](const Operator& o) {
    return o.path == added.path && o.thread == added.thread && o.stream == added.stream;
  };
  if (!list.empty() && same(list.back())) return;
  // An operator that comes again is the last one now.
  list.erase_if(same);
  if (list.size() == kMaxOperators) {
    list.pop_front();
    group.crowded = true;
  }
  list.push_back(added);
}

void SequencePass::add_in_node(Group& group, const InNode& added) {
  for (InNode& known : group.in_nodes) {
    if (known.path != added.path || known.again != added.again) continue;
    add_saturating(known.launches, added.launches);
    return;
  }
  if (group.in_nodes.size() == kMaxInNode || waiting_ == kMaxWaiting) {
    if (!added.again) lose(added.path, Lost::kOutOfWindow, added.launches);
    return;
  }
  ++waiting_;
  group.in_nodes.push_back(added);
}

// Most groups differ in their first entries; a group that does not is joined at once.
size_t SequencePass::Group::hash() const {
  const uint64_t of_operator = operators.empty() ? 0 : operators.front().path + 1;
  const uint64_t key = of_operator << 32 | in_nodes.front().path;
  return static_cast<size_t>((key + in_nodes.size()) * 0x9e3779b97f4a7c15U >> 40);
}

void SequencePass::close(Slot& slot) {
  Group& group = slot.group;
  waiting_ -= group.in_nodes.size();
  if (!group.in_nodes.empty()) {
    Repeated& known = repeated_[group.hash() % kRepeated];
    if (known.times > 0 && known.group == group) {
      ++known.times;
    } else {
      if (known.times > 0) join_group(known.group, known.times);
      std::swap(known.group, group);
      known.times = 1;
      known.own = own_of(known.group);
    }
    backward_passes_.joined(slot.backward_pass, slot.sequence, known.own);
  }
  slot.sequence = 0;
  slot.backward_pass = BackwardPasses::kNone;
  group.crowded = false;
  group.operators.clear();
  group.in_nodes.clear();
}

BackwardPasses::Own SequencePass::own_of(const Group& group) const {
  for (const InNode& l : group.in_nodes) {
    const AutogradNode& node = *operators_.node_of(l.path);
    if (l.again || node.inside != PathTable::kRoot) continue;
    const Home home = among_operators(group, node);
    if (home.path != kNoIndex)
      return {home.thread, operators_.operator_of(home.path),
              operators_.function_of(home.path, node)};
  }
  return {};
}

void SequencePass::join_group(const Group& group, uint64_t times) {
  std::vector<uint32_t> again;  // paths that are forward of others here
  for (const InNode& l : group.in_nodes) {
    const AutogradNode* node = operators_.node_of(l.path);
    if (l.again || node->inside == PathTable::kRoot) continue;
    if (const Home home = home_of(group, l); home.path != kNoIndex) again.push_back(home.path);
  }
  for (const InNode& l : group.in_nodes) {
    if (l.again || std::find(again.begin(), again.end(), l.path) != again.end()) continue;
    const Home home = home_of(group, l);
    if (home.path == kNoIndex)
      lose(l.path, home.lost, all_of(l.launches, times));
    else
      join(l.path, home.path, all_of(l.launches, times), times);
    if (home.several) calls_.functions.insert(home.path);
  }
}

SequencePass::Home SequencePass::home_of(const Group& group, const InNode& launches) const {
  const AutogradNode& node = *operators_.node_of(launches.path);
  if (node.inside != PathTable::kRoot)
    if (const uint32_t path = inside_of_its_node(group, node); path != kNoIndex) return {path};
  return among_operators(group, node);
}

SequencePass::Home SequencePass::among_operators(const Group& group,
                                                 const AutogradNode& node) const {
  if (group.operators.empty()) return {kNoIndex, Lost::kWithoutForward};
  const auto fits = [&](const Operator& o) {
    return node.function == 0 || operators_.function_of(o.path, node) != kNoIndex;
  };
  const Operator* last = nullptr;
  for (const Operator& o : group.operators)
    if (fits(o)) last = &o;
  if (last == nullptr) return {kNoIndex, group.crowded ? Lost::kOutOfWindow : Lost::kOtherOperator};
  const uint32_t function = operators_.function_of(last->path, node);
  // Of the operator's paths always the same one.
  const uint32_t of = operators_.operator_of(last->path);
  uint32_t path = last->path;
  bool several = false;
  for (const Operator& o : group.operators) {
    if (!fits(o)) continue;
    const bool same = operators_.operator_of(o.path) == of;
    const bool beside = !same && operators_.function_of(o.path, node) == function;
    // Nothing says in what order threads ran, nor streams.
    if (o.thread != last->thread || (!same && !beside && o.stream != last->stream))
      return {kNoIndex, Lost::kAmbiguous};
    if (same) path = std::min(path, o.path);
    several = several || beside;
  }
  // Paths have higher numbers than what is around them: operators inside of the function share its
  // node.
  if (several && function != kNoIndex && function < of)
    return {function, Lost::kNone, true, last->thread};
  return {path, Lost::kNone, false, last->thread};
}

// An operator with the number in the node that evaluates this one.
uint32_t SequencePass::inside_of_its_node(const Group& group, const AutogradNode& node) const {
  uint32_t path = kNoIndex;
  for (const InNode& l : group.in_nodes)
    if (operators_.node_of(l.path)->range == node.inside &&
        operators_.function_of(l.path, node) != kNoIndex)
      path = std::min(path, l.path);
  return path;
}

void SequencePass::join(uint32_t backward, uint32_t forward, uint64_t launches, uint64_t numbers) {
  const uint64_t key = OperatorCalls::key(backward, forward);
  auto found = calls_.joined.find(key);
  if (found == calls_.joined.end()) {
    if (calls_.joined.size() >= kMaxJoined) return lose(backward, Lost::kOutOfWindow, launches);
    found = calls_.joined.try_emplace(key).first;
  }
  add_saturating(found->second.launches, launches);
  add_saturating(found->second.numbers, numbers);
  add_saturating(calls_.joined_launches, launches);
}

void SequencePass::lose(uint32_t backward, Lost lost, uint64_t launches) {
  switch (lost) {
    case Lost::kNone:
      return;
    case Lost::kWithoutForward:
      add_saturating(calls_.without_forward, launches);
      break;
    case Lost::kOtherOperator:
      add_saturating(calls_.other_operator, launches);
      break;
    case Lost::kAmbiguous:
      add_saturating(calls_.ambiguous, launches);
      break;
    case Lost::kOutOfWindow:
      add_saturating(calls_.out_of_window, launches);
      break;
  }
  add_saturating(calls_.unjoined[backward], launches);  // as many as there are range paths at most
}

ForwardNumbers SequencePass::take_numbers(bool all) {
  ForwardNumbers numbers = backward_passes_.take();
  if (!all) numbers.keep(open_);
  return numbers;
}

SequencePass::Window* SequencePass::window(uint32_t device) {
  const auto found = windows_.find(device);
  if (found != windows_.end()) return &found->second;
  if (windows_.size() >= kMaxWindows) end_windows_of_others();
  if (windows_.size() >= kMaxWindows) return nullptr;
  return &windows_[device];
}

// Traces come one after another, as a rule; parts of one trace are read together.
void SequencePass::end_windows_of_others() {
  for (auto at = windows_.begin(); at != windows_.end();) {
    if (tables_.devices[at->first].trace == trace_) {
      ++at;
      continue;
    }
    at->second.for_each([this](Slot& slot) { close(slot); });
    at = windows_.erase(at);
  }
}

OperatorCalls SequencePass::take() {
  for (auto& [device, slots] : windows_) slots.for_each([this](Slot& slot) { close(slot); });
  repeated_.for_each([this](const Repeated& known) {
    if (known.times > 0) join_group(known.group, known.times);
  });
  for (size_t i = 0; i < unknown_.size(); ++i)
    if (unknown_[i]) calls_.calls[i] = 0;
  again_ = own_numbers_.take(tables_.paths.size());
  return std::move(calls_);
}

}  // namespace flopinj::reduce
