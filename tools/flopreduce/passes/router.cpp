#include "passes/router.h"

#include <algorithm>

#include "flop_trace_fields.h"
#include "reader/message.h"

namespace flopinj::reduce {
namespace {

constexpr uint32_t kMaxSessionsInInput = 64;  // each takes memory

}  // namespace

void Router::start(uint32_t input) {
  input_ = input;
  current_ = kNoIndex;
  sessions_in_input_ = 0;
  refused_ = false;
}

// Session 0 means that the header is lost or gives none: then a file is a trace of its own.
uint32_t Router::find_or_add(uint64_t session) {
  for (uint32_t i = 0; i < model_.traces.size(); ++i) {
    auto& trace = model_.traces[i];
    const bool seen_here =
        std::find(trace.inputs.begin(), trace.inputs.end(), input_) != trace.inputs.end();
    if (trace.session == session && (session != 0 || seen_here)) {
      if (!seen_here) trace.inputs.push_back(input_);
      return i;
    }
  }
  auto& trace = model_.traces.emplace_back();
  trace.session = session;
  trace.inputs.push_back(input_);
  return static_cast<uint32_t>(model_.traces.size() - 1);
}

uint32_t Router::trace_for_header(const Packet& packet, DamageLog& damage) {
  trace::Header header;
  refused_ = !parse_message(header, packet.body) || header.format_major() != kFormatMajor;
  if (refused_) {
    damage.add(Damage::kMalformedPacket);
    return kNoIndex;
  }
  if (current_ != kNoIndex && model_.traces[current_].session == header.session_id())
    return current_;
  if (++sessions_in_input_ > kMaxSessionsInInput) {
    refused_ = true;
    damage.add(Damage::kTableFull);
    return kNoIndex;
  }
  return find_or_add(header.session_id());
}

uint32_t Router::route(const Packet& packet, DamageLog& damage) {
  if (packet.body_field == static_cast<uint32_t>(trace_fields::TracePacketField::header))
    current_ = trace_for_header(packet, damage);
  else if (current_ == kNoIndex && !refused_)
    current_ = find_or_add(0);
  if (current_ == kNoIndex) return kNoIndex;
  TraceState& trace = model_.traces[current_];
  sequence_before_ = trace.last_sequence;
  if (packet.sequence <= trace.last_sequence) {
    damage.add(Damage::kRepeatedPackets);
    return kNoIndex;
  }
  damage.add(Damage::kLostPackets, packet.sequence - trace.last_sequence - 1);
  trace.last_sequence = packet.sequence;
  return current_;
}

}  // namespace flopinj::reduce
