#include "passes/router.h"

#include <algorithm>

#include "flop_trace_fields.h"
#include "passes/packets/segments.h"
#include "reader/message.h"

namespace flopinj::reduce {

std::string other_version(uint32_t format_major) {
  return "has format version " + std::to_string(format_major) + ", this flopinj reads version " +
         std::to_string(kFormatMajor) + ": use the flopinj that came with the recorder";
}

void Router::start(uint32_t input) {
  input_ = input;
  current_ = kNoIndex;
  sessions_in_input_ = 0;
  nameless_ = last_in_input_ = 0;
  refused_ = repeated_ = in_summary_ = false;
  left_out_ = 0;
}

// Session 0 means that the header is lost or gives none: then a file is a trace of its own.
uint32_t Router::find_or_add(uint64_t session) {
  const auto next = static_cast<uint32_t>(tables_.traces.size());
  const auto [found, is_new] =
      session != 0 ? by_session_.try_emplace(session, next)
                   : without_session_.try_emplace(uint64_t{input_} << 32 | nameless_, next);
  if (is_new) tables_.traces.emplace_back().session = session;
  auto& inputs = tables_.traces[found->second].inputs;
  if (std::find(inputs.begin(), inputs.end(), input_) == inputs.end()) inputs.push_back(input_);
  return found->second;
}

// A recording in a summary is whole: where it was seen before, it is left out.
bool Router::known_elsewhere(const trace::Header& header) {
  if (chosen_ != nullptr)
    if (const auto copy = chosen_->find(header.session_id()); copy != chosen_->end())
      return header.summary() ? copy->second != input_ : copy->second.has_value();
  const auto known = by_session_.find(header.session_id());
  if (known == by_session_.end()) return false;
  const TraceState& t = tables_.traces[known->second];
  const bool again = (header.summary() || t.from_summary) &&
                     std::find(t.inputs.begin(), t.inputs.end(), input_) == t.inputs.end();
  if (!again) return false;
  copies_.insert(input_);
  copies_.insert(t.inputs.begin(), t.inputs.end());
  return true;
}

uint32_t Router::trace_for_header(const Packet& packet, DamageLog& damage) {
  trace::Header header;
  refused_ = !parse_message(header, packet.body) || header.format_major() != kFormatMajor;
  if (refused_) {
    damage.add(Damage::kMalformedPacket);
    return kNoIndex;
  }
  if (simulated_ && header.simulated() != *simulated_ && !stands_for_lost(header)) {
    refused_ = true;
    ++left_out_;
    return kNoIndex;
  }
  in_summary_ = header.summary();
  if (current_ != kNoIndex && tables_.traces[current_].session == header.session_id())
    return current_;
  if (known_elsewhere(header)) {
    repeated_ = true;
    return kNoIndex;
  }
  if (++sessions_in_input_ > kMostInSummary) {
    refused_ = true;
    damage.add(Damage::kTableFull);
    return kNoIndex;
  }
  const uint32_t trace = find_or_add(header.session_id());
  tables_.traces[trace].from_summary = header.summary();
  return trace;
}

// In a summary numbers start again with each recording, and nothing of a recording follows its end:
// the header of what this packet belongs to is damaged.
bool Router::header_is_lost(const Packet& packet) const {
  if (in_summary_ && !refused_ && packet.sequence <= last_in_input_) return true;
  if (current_ == kNoIndex) return false;
  const TraceState& trace = tables_.traces[current_];
  return trace.has_end && packet.sequence > trace.last_sequence;
}

uint32_t Router::route(const Packet& packet, DamageLog& damage) {
  if (packet.body_field == static_cast<uint32_t>(trace_fields::TracePacketField::header)) {
    repeated_ = in_summary_ = false;
    current_ = trace_for_header(packet, damage);
  } else if (header_is_lost(packet)) {
    repeated_ = in_summary_ = false;
    refused_ = ++sessions_in_input_ > kMostInSummary;
    if (refused_) damage.add(Damage::kTableFull);
    ++nameless_;
    current_ = refused_ ? kNoIndex : find_or_add(0);
  }
  last_in_input_ = packet.sequence;
  if (current_ == kNoIndex && !refused_ && !repeated_) current_ = find_or_add(0);
  if (repeated_) damage.add(Damage::kRepeatedPackets);
  if (current_ == kNoIndex) return kNoIndex;
  TraceState& trace = tables_.traces[current_];
  sequence_before_ = trace.last_sequence;
  return follows(trace.last_sequence, packet, damage) ? current_ : kNoIndex;
}

}  // namespace flopinj::reduce
