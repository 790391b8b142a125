#include "reader/packet_reader.h"

#include <algorithm>
#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "crc32c.h"
#include "flop_trace_fields.h"
#include "reader/columns.h"

namespace flopinj::reduce {
namespace {

constexpr uint8_t kFrameTag = 0x0a;  // Trace.packet
constexpr uint8_t kCrcTag = 0x7d;    // TracePacket.crc32c
constexpr size_t kCrcFieldBytes = 5;
// Read at once: enough for the system calls not to matter, little enough for the nearest caches.
constexpr size_t kReadBytes = 256U << 10;
constexpr size_t kSkipBytes = 4U << 10;
constexpr size_t kJumpBytes = 256;       // where a batch ends: most of the time another one begins
constexpr size_t kFewBytes = 64U << 10;  // reading these costs less than calls to pass over some
// Damaged places cost a check sum over every plausible frame in them. In real data that is about
// four bytes for each byte searched; data made to be slow is stopped here.
constexpr uint64_t kSearchBase = 16U << 20;
constexpr uint64_t kSearchPerByte = 16;
// A file whose first bytes hold no packet is no trace.
constexpr uint64_t kSearchForFirst = 2U * kMaxPacketBytes;

bool is_batch_field(uint32_t field) {
  using Field = trace_fields::TracePacketField;
  return field == static_cast<uint32_t>(Field::launch_batch) ||
         field == static_cast<uint32_t>(Field::tally_batch);
}

// Reads a varint of at most five bytes. False where there is none.
bool read_varint32(const uint8_t*& at, const uint8_t* end, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 35 && at != end; shift += 7) {
    const uint8_t byte = *at++;
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

bool Packet::is_batch() const { return is_batch_field(body_field); }

void append_packet(std::string& bytes, uint32_t field, std::string_view body, uint32_t sequence) {
  using Field = trace_fields::TracePacketField;
  std::string packet;
  protozero::pbf_writer writer(packet);
  if (field != 0) writer.add_bytes(field, body.data(), body.size());
  writer.add_uint32(static_cast<protozero::pbf_tag_type>(Field::sequence), sequence);
  const uint32_t sum = crc32c(packet.data(), packet.size());
  writer.add_fixed32(static_cast<protozero::pbf_tag_type>(Field::crc32c), sum);
  protozero::pbf_writer(bytes).add_bytes(
      static_cast<protozero::pbf_tag_type>(trace_fields::TraceField::packet), packet);
}

PacketReader::PacketReader(Input& input, DamageLog& damage, Batches batches, uint64_t begin,
                           uint64_t end, uint32_t last_sequence)
    : input_(input),
      reading_(input),
      damage_(damage),
      batches_(batches),
      offset_(begin),
      end_(std::min(end, input.size())),
      last_sequence_(last_sequence),
      search_budget_(kSearchBase + kSearchPerByte * input.size()),
      any_packet_(begin > 0) {}

const uint8_t* PacketReader::view(uint64_t offset, size_t size) {
  if (offset + size > input_.size()) return nullptr;
  if (const uint8_t* const memory = input_.memory()) return memory + offset;
  if (offset < window_begin_ || offset + size > window_begin_ + window_size_) {
    // A recording of a summary is read by itself: no more than it and what a packet takes.
    const uint64_t left = end_ > offset ? end_ - offset : 0;
    const bool skips = batches_ == Batches::kSkip && left > kFewBytes;
    const bool jumps = skips && offset > window_begin_ + window_size_;
    const uint64_t at_once = std::min<uint64_t>(jumps   ? kJumpBytes
                                                : skips ? kSkipBytes
                                                        : kReadBytes,
                                                left);
    const size_t wanted =
        std::max(size, static_cast<size_t>(std::min(at_once, input_.size() - offset)));
    size_t kept = 0;
    if (offset >= window_begin_ && offset < window_begin_ + window_size_) {
      kept = static_cast<size_t>(window_begin_ + window_size_ - offset);
      std::memmove(window_.data(), window_.data() + (offset - window_begin_), kept);
    }
    if (window_.size() < wanted + kReadAhead) window_.resize(wanted + kReadAhead);
    window_begin_ = offset;
    window_size_ = kept;
    if (kept < wanted)
      window_size_ += input_.read_at(offset + kept, window_.data() + kept, wanted - kept);
    if (window_size_ < size) return nullptr;
  }
  return window_.data() + (offset - window_begin_);
}

// What has the form of a frame, its check sum not looked at yet.
bool PacketReader::frame_at(uint64_t offset, Frame& frame) {
  const uint64_t left = input_.size() - offset;
  const auto head_size = static_cast<size_t>(std::min<uint64_t>(left, 5));
  const uint8_t* head = view(offset, head_size);
  if (head == nullptr || head[0] != kFrameTag) return false;
  const uint8_t* at = head + 1;
  uint64_t size = 0;
  if (!read_varint32(at, head + head_size, size)) return false;
  const auto head_bytes = static_cast<uint64_t>(at - head);
  if (size < kCrcFieldBytes || size > kMaxPacketBytes || head_bytes + size > left) return false;
  frame.packet = offset + head_bytes;
  frame.packet_size = static_cast<uint32_t>(size - kCrcFieldBytes);
  frame.end = frame.packet + size;
  return true;
}

bool PacketReader::checked(const Frame& frame, uint64_t offset) {
  // From the frame's start, so that the window never has to move back while searching.
  const uint8_t* start = view(offset, static_cast<size_t>(frame.end - offset));
  if (start == nullptr) return false;
  const uint8_t* packet = start + (frame.packet - offset);
  if (packet[frame.packet_size] != kCrcTag) return false;
  uint32_t expected = 0;
  std::memcpy(&expected, packet + frame.packet_size + 1, sizeof expected);
  return crc32c(packet, frame.packet_size) == expected;
}

bool PacketReader::checked_while_searching(const Frame& frame, uint64_t offset) {
  const uint64_t cost = frame.packet_size;
  if (search_budget_ < cost) {
    search_budget_ = 0;
    return false;
  }
  search_budget_ -= cost;
  return checked(frame, offset);
}

// Takes a batch only by its form: body, sequence number and check sum, and nothing else.
bool PacketReader::read_batch(const Frame& frame, Packet& packet) {
  constexpr size_t kMostHead = 6;
  constexpr size_t kMostTail = 6 + kCrcFieldBytes;
  constexpr uint8_t kSequenceTag = 0x70;
  if (batches_ == Batches::kCheck) return false;
  const uint8_t* head = view(frame.packet, std::min<size_t>(frame.packet_size, kMostHead));
  if (head == nullptr || frame.packet_size < 4) return false;
  const uint32_t field = head[0] >> 3U;
  if ((head[0] & 7U) != 2 || !is_batch_field(field)) return false;
  const uint8_t* at = head + 1;
  uint64_t size = 0;
  if (!read_varint32(at, head + std::min<size_t>(frame.packet_size, kMostHead), size)) return false;
  const uint64_t body = frame.packet + static_cast<uint64_t>(at - head);
  const uint64_t tail_at = body + size;
  if (tail_at >= frame.end || frame.end - tail_at > kMostTail) return false;
  const uint8_t* tail = view(tail_at, static_cast<size_t>(frame.end - tail_at));
  if (tail == nullptr || *tail++ != kSequenceTag) return false;
  const uint8_t* const tail_end = tail - 1 + (frame.end - tail_at) - kCrcFieldBytes;
  uint64_t sequence = 0;
  if (frame.end - tail_at <= kCrcFieldBytes + 1 || !read_varint32(tail, tail_end, sequence) ||
      tail != tail_end || *tail != kCrcTag || sequence != uint64_t{last_sequence_} + 1 ||
      sequence > UINT32_MAX)
    return false;
  packet = Packet{};
  packet.sequence = static_cast<uint32_t>(sequence);
  packet.body_field = field;
  packet.offset = offset_;
  packet.end = frame.end;
  if (batches_ == Batches::kSkip) return true;
  packet.damaged = !checked(frame, offset_);
  const uint8_t* whole = view(offset_, static_cast<size_t>(frame.end - offset_));
  if (whole == nullptr) return false;
  packet.body = protozero::data_view(reinterpret_cast<const char*>(whole + (body - offset_)),
                                     static_cast<size_t>(size));
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
    if (frame_at(at, frame) && checked_while_searching(frame, at)) {
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
  packet.end = frame.end;
  const uint8_t* start = view(offset_, static_cast<size_t>(frame.end - offset_));
  if (start == nullptr) return false;
  try {
    protozero::pbf_reader reader(reinterpret_cast<const char*>(start + (frame.packet - offset_)),
                                 frame.packet_size);
    while (reader.next()) {
      const uint32_t tag = reader.tag();
      if (tag == static_cast<uint32_t>(Field::sequence) &&
          reader.wire_type() == protozero::pbf_wire_type::varint) {
        packet.sequence = reader.get_uint32();
      } else if ((tag <= static_cast<uint32_t>(Field::revised) ||
                  tag >= static_cast<uint32_t>(Field::summary)) &&
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
  while (offset_ < end_) {
    Frame frame;
    bool found = frame_at(offset_, frame);
    if (found && read_batch(frame, packet)) {
      any_packet_ = true;
      offset_ = frame.end;
      last_sequence_ = packet.sequence;
      return true;
    }
    found = found && checked(frame, offset_);
    if (!found && (!find_frame(frame) || offset_ >= end_)) return false;
    any_packet_ = true;
    const bool readable = parse(frame, packet);
    offset_ = frame.end;
    if (readable) {
      last_sequence_ = packet.sequence;
      return true;
    }
    damage_.add(Damage::kMalformedPacket);
  }
  return false;
}

}  // namespace flopinj::reduce
