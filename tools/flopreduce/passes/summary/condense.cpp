#include "passes/summary/condense.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "passes/router.h"
#include "passes/summary/one_recording.h"
#include "passes/summary/recording.h"
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
struct Worth {
  uint64_t launches = 0;
  bool ended = false;
  uint64_t sound = 0;
  std::string bytes;
  auto operator<=>(const Worth&) const = default;
};

Worth worth_of(Recording& recording) {
  return {recording.launches(), recording.ended(), UINT64_MAX - recording.damage(),
          recording.bytes()};
}

}  // namespace

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
    const Found& found = found_[chosen.first];
    sources[found.session] = found.summary ? inputs_[found.at.input] : nullptr;
  }
  return sources;
}

std::string Merge::name_of(const Found& found) const {
  return printable(inputs_[found.at.input]->name());
}

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

Recording Merge::condensed(size_t first, size_t count) {
  DamageLog ignored;
  return condense_recording(std::span(found_).subspan(first, count), inputs_, rules_, known_,
                            ignored);
}

// Their place among others, and whether they were seen before, follows from what is in them.
void Merge::name_nameless() {
  for (size_t i = 0; i < found_.size(); ++i) {
    if (found_[i].session != 0) continue;
    const Recording recording = condensed(i, 1);
    found_[i].session = recording.session();
    found_[i].order = recording.order();
  }
}

// Of found_, which are of one session.
void Merge::choose_among(size_t first, size_t end) {
  struct Candidate {
    size_t first = 0, count = 0;
  };
  std::vector<Candidate> candidates;
  // A part of a trace that has no packet after the parts before it adds nothing: it is a copy.
  size_t parts = 0;
  uint32_t last_sequence = 0;
  size_t at = first;
  for (; at < end && !found_[at].summary; ++at) {
    if (found_[at].last_sequence <= last_sequence) continue;
    last_sequence = found_[at].last_sequence;
    std::swap(found_[first + parts++], found_[at]);
  }
  if (parts > 0) candidates.push_back({first, parts});
  for (; at < end; ++at)
    if (candidates.empty() || !same_packets(found_[at - 1], found_[at]))
      candidates.push_back({at, 1});
  Candidate best = candidates.front();
  if (candidates.size() == 1 && best.count == 1) {
    chosen_.push_back({found_[best.first].order, best.first, best.count});
    return;
  }
  std::optional<Worth> most;
  TraceOrder order;
  for (const Candidate& candidate : candidates) {
    Recording recording = condensed(candidate.first, candidate.count);
    Worth worth = worth_of(recording);
    if (most && !(*most < worth)) continue;
    most = std::move(worth);
    best = candidate;
    order = recording.order();
  }
  chosen_.push_back({std::move(order), best.first, best.count});
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
    choose_among(i, end);
    i = end;
  }
  std::sort(chosen_.begin(), chosen_.end(),
            [](const Chosen& a, const Chosen& b) { return a.order < b.order; });
}

// False where its input can no longer be read.
bool Merge::copy(const Found& found, const std::function<void(std::string_view)>& to) {
  Input& input = *inputs_[found.at.input];
  if (input_read_ != found.at.input) {
    reading_.reset();
    reading_ = std::make_unique<Input::Reading>(input);
    input_read_ = found.at.input;
  }
  bytes_.resize(static_cast<size_t>(found.at.end - found.at.begin));
  auto* to_bytes = reinterpret_cast<uint8_t*>(bytes_.data());
  if (input.read_at(found.at.begin, to_bytes, bytes_.size()) != bytes_.size()) return false;
  to(bytes_);
  return true;
}

void Merge::write(const std::function<void(std::string_view)>& to) {
  std::set<uint32_t> gone;
  for (const Chosen& chosen : chosen_) {
    const Found& found = found_[chosen.first];
    if (chosen.count == 1 && found.whole) {
      if (!copy(found, to) && gone.insert(found.at.input).second)
        errors_.push_back(name_of(found) + ": cannot be read any more");
      continue;
    }
    DamageLog damage;
    const auto parts = std::span(found_).subspan(chosen.first, chosen.count);
    to(condense_recording(parts, inputs_, rules_, known_, damage).bytes());
    if (damage.partial()) damaged_.push_back(name_of(found) + ": " + words(damage));
  }
  reading_.reset();
  input_read_ = UINT32_MAX;
}

std::map<uint64_t, const Input*> most_complete(const std::vector<Input*>& inputs) {
  Merge merge;
  for (Input* input : inputs) merge.add(*input);
  merge.choose();
  return merge.sources();
}

}  // namespace flopinj::reduce
