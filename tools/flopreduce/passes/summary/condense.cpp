#include "passes/summary/condense.h"

#include <algorithm>
#include <tuple>

#include "flop_trace_fields.h"
#include "passes/definitions.h"
#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/sequence/sequence_pass.h"
#include "passes/summary/recording.h"
#include "reader/message.h"
#include "support/text.h"
#include "support/wide.h"

namespace flopinj::reduce {
namespace {

// Parts of one trace in the order in which they were written; of copies the longest first, then the
// one with the least damage. Nothing here depends on the inputs' order or names.
auto order_of_parts(const Found& found) {
  return std::tuple(found.summary, found.first_sequence, UINT32_MAX - found.last_sequence,
                    found.damage, found.hash);
}

bool same_packets(const Found& a, const Found& b) {
  return order_of_parts(a) == order_of_parts(b) && a.whole == b.whole && a.order == b.order;
}

std::string words(const DamageLog& damage) {
  std::string text;
  for (size_t k = 0; k < kDamageKinds; ++k) {
    const auto& kind = damage_text(static_cast<Damage>(k));
    const uint64_t count = damage.count(static_cast<Damage>(k));
    if (count == 0 || !kind.partial) continue;
    text += (text.empty() ? "" : ", ") + to_grouped(count) + " " + kind.meaning;
  }
  return text;
}

// Of recordings of one session the one with the most launches counts; of these the one that has
// ended, and the least damage. Nothing here depends on the inputs' order.
bool is_worth_less(const Recording& a, const Recording& b) {
  const auto worth = [](const Recording& r) {
    return std::tuple(r.launches, r.ended, UINT64_MAX - r.damage, std::string_view(r.bytes));
  };
  return worth(a) < worth(b);
}

using PacketField = trace_fields::TracePacketField;
using Bodies = std::vector<std::pair<PacketField, std::string>>;

void define(TraceTables& tables, const Bodies& bodies, DamageLog& of_patterns) {
  DamageLog told_by_readers;  // of the summary, which has no patterns to find damaged again
  DefinitionPass pass(tables, &of_patterns);
  Packet packet;
  for (const auto& [field, body] : bodies) {
    packet.body_field = static_cast<uint32_t>(field);
    packet.body = protozero::data_view(body.data(), body.size());
    pass.packet(0, packet, told_by_readers);
  }
}

// A ledger, of which nothing matters here but its devices.
std::string only_devices(const Packet& packet) {
  trace::Ledger ledger, devices;
  if (parse_message(ledger, packet.body))
    for (const auto& row : ledger.device()) devices.add_device()->set_device(row.device());
  return devices.SerializeAsString();
}

}  // namespace

// What it takes to say which launches belong to which operator, step and device. Ranks of a job
// have the same definitions, byte for byte: of the next one only the steps are read.
struct Merge::Defined {
  Bodies bodies;
  DamageLog damage;  // in patterns
  TraceTables tables;
  std::optional<KernelNumbers> kernels;
  std::optional<PhaseMap> phases;
  std::optional<OperatorMap> operators;

  Defined(Bodies of, const PhaseRules& rules, KnownMatches& matches, KnownOperators& known)
      : bodies(std::move(of)) {
    tables.traces.emplace_back();
    define(tables, bodies, damage);
    tables.join();
    kernels.emplace(tables.signatures);
    phases.emplace(rules, tables, &matches);
    operators.emplace(tables, *phases, &known);
  }
};

Merge::Merge() = default;
Merge::~Merge() = default;

void Merge::add(std::unique_ptr<Input> input) {
  if (add(*input)) owned_.push_back(std::move(input));
}

bool Merge::add(Input& input) {
  const size_t before = found_.size();
  const auto index = static_cast<uint32_t>(inputs_.size());
  const std::string wrong = find_recordings(index, input, found_);
  if (!wrong.empty()) errors_.push_back(printable(input.name()) + ": " + wrong);
  if (found_.size() == before) return false;
  inputs_.push_back(&input);
  return true;
}

std::map<uint64_t, const Input*> Merge::sources() const {
  std::map<uint64_t, const Input*> sources;
  for (const Chosen& chosen : chosen_) {
    const Found& found = chosen.parts.front();
    sources[found.session] = found.summary ? inputs_[found.at.input] : nullptr;
  }
  return sources;
}

const std::string& Merge::name(const Found& found) const { return inputs_[found.at.input]->name(); }

std::string Merge::name_of(const Found& found) const { return printable(name(found)); }

// What simgpu made and what hardware made have no sum. Where there are both, what hardware made is
// meant, in whatever order they come.
void Merge::leave_out_simulated() {
  const auto is_real = [](const Found& f) { return f.has_header && !f.simulated; };
  const auto real = std::find_if(found_.begin(), found_.end(), is_real);
  if (real == found_.end()) return;
  const std::string other = name_of(*real);
  std::map<uint32_t, uint64_t> left_out;  // by input
  std::erase_if(found_, [&](const Found& f) {
    const bool simulated = f.has_header && f.simulated;
    if (simulated) ++left_out[f.at.input];
    return simulated;
  });
  for (const auto& [input, recordings] : left_out)
    errors_.push_back(printable(inputs_[input]->name()) + ": left out: " +
                      (recordings > 1 ? to_grouped(recordings) + " recordings of it were"
                                      : std::string("it was")) +
                      " recorded on the simulated GPU, " + other +
                      " on a real GPU; give traces of one kind");
}

// Of parts of one recording, in the order in which they were written: packets that came before are
// left out. Reads them twice, and once more where ranges name operators.
Recording Merge::condensed(std::span<const Found> parts, DamageLog& damage) {
  open_.at(*inputs_[parts.front().at.input]);  // one file is opened once, many one after another
  Revisions revisions;
  Segments segments;
  Bodies definitions, steps;
  uint32_t last_sequence = 0;
  for (const Found& part : parts) {
    const auto& [index, begin, end] = part.at;
    Input& input = *inputs_[index];
    PacketReader reader(input, damage, Batches::kSkip, begin, end);
    Packet packet;
    while (reader.next(packet)) {
      segments.note(index, input, 0, last_sequence, packet);
      if (!follows(last_sequence, packet, damage)) continue;
      if (!revisions.newest_so_far(0, index, packet, damage)) continue;
      const auto field = static_cast<PacketField>(packet.body_field);
      const std::string_view body(packet.body.data(), packet.body.size());
      if (field == PacketField::interned || field == PacketField::device ||
          field == PacketField::metric_group)
        definitions.emplace_back(field, body);
      else if (field == PacketField::ledger)
        definitions.emplace_back(field, only_devices(packet));
      else if (field == PacketField::steps || field == PacketField::step_sums)
        steps.emplace_back(field, body);
    }
    if (input.read_failed()) damage.add(Damage::kTornTail);
  }
  segments.end();
  if (!defined_ || defined_->bodies != definitions) {
    defined_.reset();
    operators_.make_room();
    defined_ = std::make_unique<Defined>(std::move(definitions), rules_, matches_, operators_);
  }
  damage.add(defined_->damage);
  TraceTables& tables = defined_->tables;
  tables.traces[0].steps = {};
  if (!steps.empty()) define(tables, steps, damage);
  PhaseMap& phases = *defined_->phases;
  phases.use_again({});
  const OperatorMap& operators = *defined_->operators;
  ForwardNumbers numbers;
  StepNames names;
  // What sequence numbers tell, which are not in a summary themselves. By the built-in rules: a
  // user's come later, and may only say otherwise what is recomputed.
  if (operators.any()) {
    SequencePass pass(tables, rules_, phases, operators);
    pass.read(segments);
    names = pass.take().steps;
    phases.use_again(pass.take_again());
    numbers = pass.take_numbers(true);
  }
  const NumberSource source{tables, operators, numbers};
  SharedTables shared(tables, phases, RowsBy::kSummary);
  shared.use_numbers(source);
  shared.use_step_names(names);
  Condenser condenser(shared, *defined_->kernels, phases, revisions, damage);
  for (const Segment& segment : segments.all()) condenser.segment(segment);
  return condenser.take();
}

// Their place among others, and whether they were seen before, follows from what is in them.
void Merge::name_nameless() {
  for (size_t i = 0; i < found_.size(); ++i) {
    if (found_[i].session != 0) continue;
    DamageLog ignored;
    const Recording recording = condensed(std::span(found_).subspan(i, 1), ignored);
    found_[i].session = recording.session;
    found_[i].order = recording.order;
  }
}

// Which of these, which are of one session, the summary has.
void Merge::choose_among(std::span<Found> found) {
  std::vector<std::span<const Found>> candidates;
  // A part of a trace that has no packet after the parts before it adds nothing: it is a copy.
  size_t parts = 0;
  uint32_t last_sequence = 0;
  size_t at = 0;
  for (; at < found.size() && !found[at].summary; ++at) {
    if (found[at].last_sequence <= last_sequence) continue;
    last_sequence = found[at].last_sequence;
    std::swap(found[parts++], found[at]);
  }
  if (parts > 0) candidates.push_back(found.first(parts));
  for (; at < found.size(); ++at)
    if (candidates.empty() || !same_packets(found[at - 1], found[at]))
      candidates.push_back(found.subspan(at, 1));
  if (candidates.size() == 1 && candidates.front().size() == 1) {
    chosen_.push_back({candidates.front().front().order, candidates.front()});
    return;
  }
  Recording best;
  std::span<const Found> parts_of_best;
  for (const auto& candidate : candidates) {
    DamageLog ignored;
    Recording recording = condensed(candidate, ignored);
    if (!parts_of_best.empty() && !is_worth_less(best, recording)) continue;
    best = std::move(recording);
    parts_of_best = candidate;
  }
  chosen_.push_back({std::move(best.order), parts_of_best});
}

void Merge::choose() {
  if (too_many()) return;
  leave_out_simulated();
  name_nameless();
  if (only_) std::erase_if(found_, [&](const Found& f) { return !only_->contains(f.session); });
  std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
    return a.session != b.session ? a.session < b.session : order_of_parts(a) < order_of_parts(b);
  });
  for (size_t i = 0; i < found_.size();) {
    size_t end = i + 1;
    while (end < found_.size() && found_[end].session == found_[i].session) ++end;
    choose_among(std::span(found_).subspan(i, end - i));
    i = end;
  }
  std::sort(chosen_.begin(), chosen_.end(),
            [](const Chosen& a, const Chosen& b) { return a.order < b.order; });
}

// False where its input can no longer be read.
bool Merge::copy(const Found& found, const std::function<void(std::string_view)>& to) {
  Input& input = *inputs_[found.at.input];
  open_.at(input);
  bytes_.resize(static_cast<size_t>(found.at.end - found.at.begin));
  auto* to_bytes = reinterpret_cast<uint8_t*>(bytes_.data());
  if (input.read_at(found.at.begin, to_bytes, bytes_.size()) != bytes_.size()) return false;
  to(bytes_);
  return true;
}

void Merge::write(const std::function<void(std::string_view)>& to) {
  constexpr size_t kWriteBytes = 64U << 10;  // at once: recordings of ranks are small
  std::string waiting;
  const auto write = [&](std::string_view bytes) {
    waiting += bytes;
    if (waiting.size() < kWriteBytes) return;
    to(waiting);
    waiting.clear();
  };
  std::set<uint32_t> gone;
  for (const Chosen& chosen : chosen_) {
    const Found& found = chosen.parts.front();
    if (chosen.parts.size() == 1 && found.whole) {
      if (!copy(found, write) && gone.insert(found.at.input).second)
        errors_.push_back(name_of(found) + ": cannot be read any more");
      continue;
    }
    DamageLog damage;
    write(condensed(chosen.parts, damage).bytes);
    if (damage.partial()) damaged_.push_back(name_of(found) + ": " + words(damage));
  }
  to(waiting);
  open_.close();
}

std::map<uint64_t, const Input*> most_complete(const std::vector<Input*>& inputs) {
  Merge merge;
  for (Input* input : inputs) merge.add(*input);
  merge.choose();
  return merge.sources();
}

}  // namespace flopinj::reduce
