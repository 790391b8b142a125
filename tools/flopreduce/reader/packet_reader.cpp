#include "reader/packet_reader.h"

#include <algorithm>
#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "crc32c.h"
#include "flop_trace_fields.h"

namespace flopinj::reduce {
namespace {

constexpr uint8_t kFrameTag = 0x0a;  // Trace.packet
constexpr uint8_t kCrcTag = 0x7d;    // TracePacket.crc32c
constexpr size_t kCrcFieldBytes = 5;
constexpr size_t kWindowBytes = 2U * kMaxPacketBytes;
// Damaged places cost a check sum over every plausible frame in them. In real data that is about
// four bytes for each byte searched; data made to be slow is stopped here.
constexpr uint64_t kSearchBase = 16U << 20;
constexpr uint64_t kSearchPerByte = 16;
// A file whose first bytes hold no packet is no trace.
constexpr uint64_t kSearchForFirst = 2U * kMaxPacketBytes;

}  // namespace

PacketReader::PacketReader(Input& input, DamageLog& damage)
    : input_(input), damage_(damage), search_budget_(kSearchBase + kSearchPerByte * input.size()) {
  window_.resize(static_cast<size_t>(std::min<uint64_t>(kWindowBytes, input.size())));
}

const uint8_t* PacketReader::view(uint64_t offset, size_t size) {
  if (offset + size > input_.size()) return nullptr;
  if (offset < window_begin_ || offset + size > window_begin_ + window_size_) {
    size_t kept = 0;
    if (offset >= window_begin_ && offset < window_begin_ + window_size_) {
      kept = static_cast<size_t>(window_begin_ + window_size_ - offset);
      std::memmove(window_.data(), window_.data() + (offset - window_begin_), kept);
    }
    window_begin_ = offset;
    window_size_ =
        kept + input_.read_at(offset + kept, window_.data() + kept, window_.size() - kept);
    if (window_size_ < size) return nullptr;
  }
  return window_.data() + (offset - window_begin_);
}

// A frame is taken only when its check sum is right.
bool PacketReader::frame_at(uint64_t offset, Frame& frame, bool searching) {
  const uint64_t left = input_.size() - offset;
  const auto head_size = static_cast<size_t>(std::min<uint64_t>(left, 5));
  const uint8_t* head = view(offset, head_size);
  if (head == nullptr || head[0] != kFrameTag) return false;
  uint64_t size = 0;
  size_t at = 1;
  for (unsigned shift = 0;; shift += 7, ++at) {
    if (at == head_size) return false;
    size |= static_cast<uint64_t>(head[at] & 0x7FU) << shift;
    if (head[at] < 0x80) break;
  }
  ++at;
  if (size < kCrcFieldBytes || size > kMaxPacketBytes || at + size > left) return false;
  // From the frame's start, so that the window never has to move back while searching.
  const uint8_t* start = view(offset, at + static_cast<size_t>(size));
  if (start == nullptr) return false;
  const uint8_t* packet = start + at;
  const size_t checked = static_cast<size_t>(size) - kCrcFieldBytes;
  if (packet[checked] != kCrcTag) return false;
  if (searching) {
    if (search_budget_ < checked) {
      search_budget_ = 0;
      return false;
    }
    search_budget_ -= checked;
  }
  uint32_t expected = 0;
  std::memcpy(&expected, packet + checked + 1, sizeof expected);
  if (crc32c(packet, checked) != expected) return false;
  frame = {packet, static_cast<uint32_t>(checked), offset + at + size};
  return true;
}

// Moves offset_ to the next frame. Nothing right up to the end of the input is a torn tail.
bool PacketReader::find_frame(Frame& frame) {
  const uint64_t size = input_.size();
  const uint64_t from = offset_;
  uint64_t limit = size;
  if (!any_packet_) limit = std::min(size, kSearchForFirst);
  for (uint64_t at = from + 1; at < limit && search_budget_ > 0;) {
    const auto block_size = static_cast<size_t>(std::min<uint64_t>(limit - at, 1U << 16));
    const uint8_t* block = view(at, block_size);
    if (block == nullptr) break;
    const void* hit = std::memchr(block, kFrameTag, block_size);
    if (hit == nullptr) {
      at += block_size;
      continue;
    }
    at += static_cast<uint64_t>(static_cast<const uint8_t*>(hit) - block);
    if (frame_at(at, frame, true)) {
      damage_.add(Damage::kBadFrame);
      damage_.add(Damage::kSkippedBytes, at - from);
      offset_ = at;
      return true;
    }
    ++at;
  }
  damage_.add(search_budget_ == 0 || limit < size ? Damage::kGaveUp : Damage::kTornTail,
              size - from);
  offset_ = size;
  return false;
}

bool PacketReader::parse(const Frame& frame, Packet& packet) {
  using Field = trace_fields::TracePacketField;
  packet = Packet{};
  packet.offset = offset_;
  try {
    protozero::pbf_reader reader(reinterpret_cast<const char*>(frame.packet), frame.packet_size);
    while (reader.next()) {
      const uint32_t tag = reader.tag();
      if (tag == static_cast<uint32_t>(Field::sequence) &&
          reader.wire_type() == protozero::pbf_wire_type::varint) {
        packet.sequence = reader.get_uint32();
      } else if ((tag <= static_cast<uint32_t>(Field::revised) ||
                  tag == static_cast<uint32_t>(Field::summary)) &&
                 reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
        packet.body_field = tag;
        packet.body = reader.get_view();
      } else {
        reader.skip();
      }
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return packet.sequence != 0;
}

bool PacketReader::next(Packet& packet) {
  while (offset_ < input_.size()) {
    Frame frame;
    if (!frame_at(offset_, frame, false) && !find_frame(frame)) return false;
    any_packet_ = true;
    const bool readable = parse(frame, packet);
    offset_ = frame.end;
    if (readable) return true;
    damage_.add(Damage::kMalformedPacket);
  }
  return false;
}

}  // namespace flopinj::reduce
