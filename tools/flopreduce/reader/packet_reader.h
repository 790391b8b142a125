// Packets of one input, one after another: framing, check sums, and the way back after damage
// (proto/FORMAT.md).
#pragma once
#include <cstdint>
#include <protozero/data_view.hpp>
#include <vector>

#include "reader/damage.h"
#include "reader/input.h"

namespace flopinj::reduce {

inline constexpr uint32_t kMaxPacketBytes = 4U << 20;

struct Packet {
  uint32_t sequence = 0;
  uint32_t body_field =
      0;  // field number of TracePacket's oneof; 0 for a packet of a newer minor version
  protozero::data_view body;  // valid until the next call
  uint64_t offset = 0;        // of the frame in the input
};

class PacketReader {
 public:
  // `input` and `damage` must outlive the reader. Only framing damage is logged here.
  PacketReader(Input& input, DamageLog& damage);
  // False at the end of the input.
  bool next(Packet& packet);

 private:
  struct Frame {
    const uint8_t* packet = nullptr;  // without its check sum field
    uint32_t packet_size = 0;
    uint64_t end = 0;  // offset of the byte after the frame
  };
  bool frame_at(uint64_t offset, Frame& frame, bool searching);
  bool find_frame(Frame& frame);
  bool parse(const Frame& frame, Packet& packet);
  // The bytes [offset, offset + size) or nullptr when the input ends before.
  const uint8_t* view(uint64_t offset, size_t size);

  Input& input_;
  DamageLog& damage_;
  std::vector<uint8_t> window_;
  uint64_t window_begin_ = 0;
  size_t window_size_ = 0;
  uint64_t offset_ = 0;
  uint64_t search_budget_;  // bytes of check sums still allowed while searching
  bool any_packet_ = false;
};

}  // namespace flopinj::reduce
