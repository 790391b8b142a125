#include "passes/sequence/sequence_pass.h"

#include <algorithm>
#include <map>

#include "flop_trace_fields.h"
#include "reader/message.h"
#include "reader/tally_batch.h"
#include "support/wide.h"

namespace flopinj::reduce {
namespace {

uint64_t all_of(uint64_t launches, uint64_t times) {
  const u128 all = u128{launches} * times;
  return all > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(all);
}

bool has_number(const LaunchCall& call) { return call.sequence != 0 && !call.graph; }

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
  for (uint32_t path = PathTable::kLost + 1; path < tables.paths.size(); ++path) {
    if (const uint32_t function = operators.program_function_of(path); function != 0)
      program_functions_.insert(function);
    if (operators.node_of(path) == nullptr && is_layer(path))
      layers_.insert(tables.paths[path].name);
  }
  calls_.recorded = std::ranges::all_of(tables.traces, &TraceState::records_calls);
}

void SequencePass::read(const Segments& segments) {
  OpenInput open;
  for (const Segment& segment : segments.all()) {
    open.at(*segment.input);
    for_each_new_packet(segment, [&](const Packet& packet) {
      if (!packet.damaged) this->packet(segment.trace, packet);
      return true;
    });
  }
}

void SequencePass::packet(uint32_t trace, const Packet& packet) {
  using Field = trace_fields::TracePacketField;
  if (trace != trace_) end_trace();
  trace_ = trace;
  const auto field = static_cast<Field>(packet.body_field);
  if (field == Field::sequence_groups) return groups(packet);
  if (field == Field::tally_batch && tables_.traces[trace].has_summary) return note_again(packet);
  if (field != Field::launch_batch) return;
  DamageLog told;
  LaunchBatchReader batch;
  if (!batch.open(packet.body, told, packet.sequence)) return;
  const TraceState& state = tables_.traces[trace];
  batch.leave_out(state.skipped_steps, state.patterns);
  if (batch.size() == 0) return;
  Places::Lane* const lane = places_.lane(batch.thread(), batch.stream());
  if (lane != nullptr && std::exchange(lane->known.fresh, false)) {
    lane->known.passes.trace = trace;
    const uint32_t device = device_of(batch.stream());
    if (device != kNoIndex) lane->known.window = window(device);
  }
  if (!pattern_calls_) pattern_calls_.emplace(state.patterns);
  const auto calls = batch.calls(*pattern_calls_, calls_at_hand_);
  if (!state.steps.steps().empty()) note_step_names(batch, calls);
  if (lane != nullptr) {
    note_edges(lane->known, packet.sequence, calls);
    return launches(*lane, calls);
  }
  for (const LaunchCall& call : calls) uncounted({batch.thread(), batch.stream()}, call);
}

uint32_t SequencePass::thread_name(uint32_t id) const {
  const uint32_t name = id == 0 ? kNoIndex : tables_.traces[trace_].threads.get(id);
  return name == kNoIndex ? NamePool::kEmpty : name;
}

// Whatever the phase, operators outside of nodes may have gradients, and what runs inside of nodes
// is theirs, but for operators that checkpointing runs again, and work of hooks.
SequencePass::Part SequencePass::part_of(uint32_t path, uint32_t thread) const {
  const AutogradNode* node = operators_.node_of(path);
  if (node == nullptr) return Part::kOperator;
  if (node->of_a_leaf) return Part::kNone;
  // The number is not the node's.
  if (operators_.own_number_of(path) != kNoIndex) return Part::kAgain;
  const auto& rule = rules_.rules()[phases_.rule_of(path, thread_name(thread))];
  if (rule.inside == PhaseRules::Inside::kHook) return Part::kNone;
  if (rule.phase == "recompute") return Part::kAgain;
  return operators_.program_function_of(path) != 0 ? Part::kInFunction : Part::kInNode;
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

// Of a new place.
void SequencePass::look_up(OnPlace& on, const LaunchPlace& place) {
  on.path = path_of(place.path);
  on.part = Part::kOutside;
  if (on.path == kNoIndex) return;
  on.part = part_of(on.path, place.thread);
  on.node = operators_.outermost_node_of(on.path);
  on.own = operators_.own_number_of(on.path);
  on.of = part_of_node(on.path);
  if (const AutogradNode* const node = operators_.node_of(on.path); node == nullptr)
    on.program_function = operators_.program_function_of(on.path);
  else if (on.own == kNoIndex && program_functions_.contains(node->function))
    on.program_function = node->function;
  // Nodes inside of others are of a backward pass of their own, of what ran again.
  on.in_pass = on.part == Part::kInNode && operators_.node_of(on.path)->inside == PathTable::kRoot;
  any_node_ = any_node_ || on.part == Part::kInNode || on.part == Part::kAgain;
  if (on.part == Part::kOperator && phases_.number_matters(on.path, thread_name(place.thread)))
    open_.emplace(trace_, place.thread);
}

OwnNumbers::Of SequencePass::part_of_node(uint32_t path) const {
  const AutogradNode* const node = operators_.node_of(path);
  if (node != nullptr && node->inside != PathTable::kRoot) return OwnNumbers::Of::kEvaluated;
  if (operators_.program_function_of(path) != 0) return OwnNumbers::Of::kFunction;
  for (uint32_t at = path; at > PathTable::kLost && operators_.node_of(at) == node;
       at = tables_.paths[at].parent)
    if (is_layer(at) && layers_.contains(tables_.paths[at].name)) return OwnNumbers::Of::kLayer;
  return OwnNumbers::Of::kNode;
}

bool SequencePass::is_layer(uint32_t path) const {
  const OperatorName* const name = operators_.name_of(path);
  return name == nullptr || name->kind == OperatorKind::kModule;
}

// Without a number, or of too many places.
void SequencePass::uncounted(const LaunchPlace& lane, const LaunchCall& call) {
  const uint32_t path = path_of(call.path);
  if (path == kNoIndex) return;
  unknown_[path] = true;
  if (has_number(call) && part_of(path, lane.thread) == Part::kInNode)
    lose(path, Lost::kOutOfWindow, call.launches);
}

// Of a launch; function 0: it is in none.
void SequencePass::note_program_call(OnLane& lane, uint32_t function, uint64_t number) {
  const bool same = std::exchange(lane.program_function, function) == function;
  if (function == 0) return;
  const auto [last, fresh] = lane.program_calls.try_emplace(function, number);
  if (!fresh && last->second == number && !same) program_nodes_.several(trace_, function, number);
  last->second = number;
}

void SequencePass::note_step_names(const LaunchBatchReader& batch,
                                   std::span<const LaunchCall> calls) {
  auto call = calls.begin();
  size_t left = call->launches;
  batch.for_each_stretch([&](const LaunchBatchReader::Stretch& alike) {
    bool named = false;
    for (size_t launches = alike.end - alike.begin; launches > 0;) {
      const uint32_t path = path_of(call->path);
      named = named || (path != kNoIndex && operators_.operator_of(path) != kNoIndex);
      const size_t some = std::min(launches, left);
      launches -= some;
      left -= some;
      if (left == 0 && ++call != calls.end()) left = call->launches;
    }
    if (alike.step != 0 && alike.step < StepTable::kMost)
      calls_.steps.note(trace_, alike.step, named);
  });
}

void SequencePass::note_edges(OnLane& lane, uint32_t packet, std::span<const LaunchCall> calls) {
  lane.edges.begin(packet);
  for (const LaunchCall& call : calls) {
    const uint32_t path =
        call.path == 0 ? PathTable::kRoot : tables_.traces[trace_].paths.get(call.path);
    if (has_number(call)) {
      lane.edges.numbered(edges_, trace_, {call.sequence, path});
      continue;
    }
    auto multiplies = Multiplies::kNothing;
    if (!call.graph && path != kNoIndex) {
      const auto [known, fresh] = multiplies_.try_emplace(path);
      if (fresh) known->second = operators_.multiplies(path);
      multiplies = known->second;
    }
    lane.edges.unnumbered(
        multiplies, multiplies == Multiplies::kNothing ? kNoIndex : operators_.rule_around(path));
  }
  lane.edges.end(edges_, trace_);
}

// Once behind the last operators with a number, outside of nodes.
void SequencePass::without_number(Places::Lane& of, const LaunchCall& call) {
  OnLane& lane = of.known;
  if (lane.operators == 0 || lane.without || lane.window == nullptr) return;
  const uint32_t path = path_of(call.path);
  if (path != kNoIndex && operators_.node_of(path) != nullptr) return;
  lane.without = true;
  const uint32_t number = places_.number(of, SequenceGroups::kWithout);
  if (number == Places::kNone) return;
  OnPlace& on = places_[number];
  on.part = Part::kWithout;
  lane.window->add(
      lane.operators, {number, 0, 0}, on.first, nullptr, [](Passes&) {},
      [&](const Window::Complete& done) { complete(*lane.window, done); });
}

void SequencePass::launches(Places::Lane& of, std::span<const LaunchCall> calls) {
  OnLane& lane = of.known;
  for (const LaunchCall& call : calls) {
    const uint32_t number = has_number(call) ? places_.number(of, call.path) : Places::kNone;
    if (number == Places::kNone) {
      note_program_call(lane, 0, 0);
      if (call.sequence == 0 && !call.graph) without_number(of, call);
      uncounted({of.thread, of.stream}, call);
      continue;
    }
    OnPlace& on = places_[number];
    if (on.part == Part::kNotLookedUp) look_up(on, places_.place(number));
    if (on.part == Part::kOutside || on.part == Part::kWithout) continue;
    if (on.part == Part::kOperator)
      note_program_call(lane, on.program_function, call.sequence);
    else if (on.program_function != 0)
      program_nodes_.add(trace_, on.program_function, call.sequence);
    if (on.part == Part::kOperator) {
      own_numbers_.outside(lane.own);
      lane.operators = call.sequence;
      lane.without = false;
    } else if (on.part != Part::kNone) {  // adding to a leaf's gradient is no forward work
      own_numbers_.launch(lane.own, on.node, on.own, on.path, on.of, call.sequence);
    }
    if (on.part == Part::kInFunction) add_saturating(in_functions_[on.path], call.launches);
    const auto note_pass = [&](Passes& passes) {
      if (on.in_pass) passes.add({backward_passes_.node(lane.passes, call.sequence), of.stream});
    };
    auto added = SequenceNumbers::Added::kLate;
    if (lane.window != nullptr)
      added = lane.window->add(call.sequence, {number, call.launches, call.calls}, on.first,
                               nullptr, note_pass,
                               [&](const Window::Complete& done) { complete(*lane.window, done); });
    if (added == SequenceNumbers::Added::kYes) continue;
    if (on.last != call.sequence) add_saturating(calls_.calls[on.path], uint64_t{1});
    on.last = call.sequence;
    if (on.part == Part::kInNode) lose(on.path, Lost::kOutOfWindow, call.launches);
  }
}

std::vector<SequencePass::Member> SequencePass::members(const SequenceNumbers::Group& group) {
  std::vector<Member> all;
  for (const SequenceNumbers::Launches& l : group) {
    const LaunchPlace& place = places_.place(l.place);
    const OnPlace& on = places_[l.place];
    all.push_back({on.part, {on.path, place.thread, place.stream}, l.count, l.calls});
  }
  return all;
}

SequencePass::Group SequencePass::named(std::span<const Member> members) {
  Group all;
  for (const Member& member : members) add(all, member);
  return all;
}

// A summary has the launches of one number together, and how many numbers had the same ones.
void SequencePass::groups(const Packet& packet) {
  trace::SequenceGroups message;
  if (!parse_message(message, packet.body)) return;
  for (const uint32_t id : message.path_without())
    if (const uint32_t path = path_of(id); path != kNoIndex) unknown_[path] = true;
  for_each_group(message,
                 [&](uint64_t times, const SequenceGroup& of_one) { group(times, of_one); });
}

// A summary's rows say which launches ran again.
void SequencePass::note_again(const Packet& packet) {
  DamageLog told;
  TallyBatchReader batch;
  if (!batch.open(packet.body, told)) return;
  TallyRow row;
  while (batch.next(row))
    if (row.number_tells == NumberTells::kAgain)
      if (const uint32_t path = path_of(row.range_path); path != kNoIndex) told_again_.insert(path);
}

void SequencePass::count_calls(std::span<const Member> members, uint64_t times) {
  std::set<std::pair<uint32_t, uint32_t>> called;  // (thread, path): once, on however many streams
  for (const Member& m : members)
    if (m.of.path != kNoIndex && called.emplace(m.of.thread, m.of.path).second)
      add_saturating(calls_.calls[m.of.path], times);
}

void SequencePass::group(uint64_t times, const SequenceGroup& group) {
  std::vector<Member> all;
  std::map<uint32_t, std::vector<Member>> of_device;
  for (const NumberedLaunches& l : group) {
    const uint32_t path = path_of(l.path);
    const bool without = l.path == SequenceGroups::kWithout;
    if (path == kNoIndex && !without) continue;
    const Part part = without ? Part::kWithout : part_of(path, l.thread);
    all.push_back({part, {path, l.thread, l.stream}, l.launches, l.calls});
    const Member& member = all.back();
    if (part == Part::kInFunction) add_saturating(in_functions_[path], all_of(l.launches, times));
    if (const uint32_t device = device_of(l.stream); device != kNoIndex)
      of_device[device].push_back(member);
    else if (part == Part::kInNode)
      lose(path, Lost::kOutOfWindow, all_of(l.launches, times));
  }
  count_calls(all, times);
  for (const auto& [device, its] : of_device) join_group(named(its), times);
}

void SequencePass::add(Group& group, const Member& member) {
  const Part part = member.part;
  const Operator& of = member.of;
  if (part == Part::kNone || part == Part::kOutside || part == Part::kInFunction) return;
  const auto on_lane = [&](const Operator& o) {
    return o.thread == of.thread && o.stream == of.stream;
  };
  if (part == Part::kWithout) {
    if (std::ranges::any_of(group.operators, on_lane)) group.without.push_back(of);
    return;
  }
  if (part != Part::kOperator) {
    const bool again = part == Part::kAgain;
    for (InNode& known : group.in_nodes) {
      if (known.path != of.path || known.again != again) continue;
      add_saturating(known.launches, member.launches);
      add_saturating(known.calls, member.calls);
      return;
    }
    if (group.in_nodes.size() < kMaxInNode)
      group.in_nodes.push_back({of.path, again, member.launches, member.calls});
    else if (!again)
      lose(of.path, Lost::kOutOfWindow, member.launches);
    return;
  }
  auto& list = group.operators;
  // An operator that comes again is the last one now.
  list.erase_if([&](const Operator& o) { return on_lane(o) && o.path == of.path; });
  if (static_cast<size_t>(std::ranges::count_if(list, on_lane)) == kMaxOperators) {
    const Operator first = *std::ranges::find_if(list, on_lane);
    list.erase_if([&](const Operator& o) { return on_lane(o) && o.path == first.path; });
    group.crowded = true;
  }
  list.push_back(of);
  group.without.erase_if(on_lane);
}

// Of several nodes with the number, that of the lowest path.
BackwardPasses::Own SequencePass::own_of(const Window& window, uint32_t of) {
  const Group group = named(members(window.group(of)));
  Home home;
  const AutogradNode* its = nullptr;
  uint32_t lowest = kNoIndex;
  for (const InNode& l : group.in_nodes) {
    const AutogradNode& node = *operators_.node_of(l.path);
    if (l.again || node.inside != PathTable::kRoot || l.path >= lowest) continue;
    const Home found = among_operators(group, node);
    if (found.path == kNoIndex) continue;
    home = found;
    its = &node;
    lowest = l.path;
  }
  if (its == nullptr) return {.known = true};
  const uint32_t at = operators_.operator_of(home.path);
  uint64_t calls = 0;
  for (const SequenceNumbers::Launches& of_call : window.group(of))
    if (const uint32_t path = places_[of_call.place].path;
        path != kNoIndex && operators_.operator_of(path) == at)
      calls += of_call.calls;
  return {home.thread, at, operators_.function_of(home.path, *its), true, calls > 1};
}

void SequencePass::join_group(const Group& group, uint64_t times) {
  std::vector<uint32_t> again;  // paths that are forward of others here
  std::set<uint32_t> homes;
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
      join(l, home.path, times);
    if (home.path != kNoIndex && homes.insert(home.path).second)
      add_saturating(calls_.differentiated[home.path], times);
    if (home.several) calls_.functions.insert(home.path);
  }
}

SequencePass::Home SequencePass::home_of(const Group& group, const InNode& launches) const {
  const AutogradNode& node = *operators_.node_of(launches.path);
  if (node.inside != PathTable::kRoot)
    if (const uint32_t path = inside_of_its_node(group, node); path != kNoIndex) return {path};
  return among_operators(group, node);
}

// A node that is named for no function is that of any operator that may have a gradient; of a
// library's function, where it is a library's.
bool SequencePass::may_own(const Operator& of, const AutogradNode& node) const {
  if (node.function != 0) return operators_.function_of(of.path, node) != kNoIndex;
  return node.of_library ? operators_.of_library(of.path) : !operators_.without_gradient(of.path);
}

// The last one that may own the node. Nothing says in what order threads ran, nor streams: of
// several streams the last ones of each have to be of one operator, or of one function.
SequencePass::Home SequencePass::among_operators(const Group& group,
                                                 const AutogradNode& node) const {
  if (group.operators.empty()) return {kNoIndex, Lost::kWithoutForward};
  FewList<Operator, 2> last;  // of each stream
  for (const Operator& o : group.operators) {
    if (!may_own(o, node)) continue;
    if (!last.empty() && last.front().thread != o.thread) return {kNoIndex, Lost::kAmbiguous};
    last.erase_if([&](const Operator& l) { return l.stream == o.stream; });
    last.push_back(o);
  }
  if (last.empty()) return {kNoIndex, group.crowded ? Lost::kOutOfWindow : Lost::kOtherOperator};
  uint32_t of = 0;
  for (const Operator& o : last) of = std::max(of, operators_.operator_of(o.path));
  const uint32_t function = operators_.function_of(last.front().path, node);
  const uint32_t thread = last.front().thread;
  const auto same = [&](const Operator& o) { return operators_.operator_of(o.path) == of; };
  const auto beside = [&](const Operator& o) {
    return function != kNoIndex && operators_.function_of(o.path, node) == function;
  };
  if (!std::ranges::all_of(last, same) && !std::ranges::all_of(last, beside))
    return {kNoIndex, Lost::kAmbiguous};
  const auto behind = [&](const Operator& w) { return w.thread == thread; };
  if (node.function == 0 && std::ranges::any_of(group.without, behind))
    return {kNoIndex, Lost::kOtherOperator};
  // Of the operator's paths always the same one.
  uint32_t path = kNoIndex;
  bool several = false;
  for (const Operator& o : group.operators) {
    if (!may_own(o, node)) continue;
    if (same(o)) path = std::min(path, o.path);
    several = several || (!same(o) && beside(o));
  }
  // Paths have higher numbers than what is around them: operators inside of the function share its
  // node.
  if (several && function < of) return {function, Lost::kNone, true, thread};
  return {path, Lost::kNone, false, thread};
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

void SequencePass::join(const InNode& backward, uint32_t forward, uint64_t times) {
  const uint64_t launches = all_of(backward.launches, times);
  const uint64_t key = OperatorCalls::key(backward.path, forward);
  auto found = calls_.joined.find(key);
  if (found == calls_.joined.end()) {
    if (calls_.joined.size() >= kMaxJoined)
      return lose(backward.path, Lost::kOutOfWindow, launches);
    found = calls_.joined.try_emplace(key).first;
  }
  add_saturating(found->second.launches, launches);
  add_saturating(found->second.numbers, times);
  add_saturating(found->second.calls, all_of(backward.calls, times));
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
  numbers.set_edges(std::move(edges_));
  numbers.program_nodes = std::move(program_nodes_);
  // Transforms of torch.func number what they run by themselves.
  if (none_joined_)
    for (const auto& [trace, thread] : open_) numbers.add(trace, thread);
  return numbers;
}

SequencePass::Window* SequencePass::window(uint32_t device) {
  const auto found = windows_.find(device);
  if (found != windows_.end()) return &found->second;
  return windows_.size() < kMaxWindows ? &windows_[device] : nullptr;
}

void SequencePass::end_trace() {
  for (auto& entry : windows_) {
    Window& window = entry.second;
    window.end([&](const Window::Complete& number) { complete(window, number); });
    for (uint32_t group = 1; group < window.groups(); ++group) {
      if (window.times(group) == 0) continue;
      const std::vector<Member> all = members(window.group(group));
      count_calls(all, window.times(group));
      join_group(named(all), window.times(group));
    }
  }
  windows_.clear();
  pattern_calls_.reset();
  places_.end([&](Places::Lane& lane) { own_numbers_.outside(lane.known.own); });
}

OperatorCalls SequencePass::take() {
  end_trace();
  calls_.steps.finish([this](uint32_t trace, uint32_t step) {
    return tables_.traces[trace].steps.steps().contains(step);
  });
  for (size_t i = 0; i < unknown_.size(); ++i)
    if (unknown_[i]) calls_.calls[i] = 0;
  again_ = own_numbers_.take(tables_.paths.size());
  std::erase_if(calls_.joined, [&](const auto& entry) {
    return !again_.empty() && again_[OperatorCalls::backward_of(entry.first)];
  });
  for (const auto& [path, launches] : in_functions_) {
    if (operators_.calls_as_forward(path)) {
      again_.resize(tables_.paths.size());
      again_[path] = true;
    } else if ((again_.empty() || !again_[path]) && !told_again_.contains(path)) {
      lose(path, Lost::kOtherOperator, launches);
    }
  }
  none_joined_ = any_node_ && calls_.joined.empty();
  return std::move(calls_);
}

}  // namespace flopinj::reduce
