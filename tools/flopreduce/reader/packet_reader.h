// Packets of one input, one after another: framing, check sums, and the way back after damage
// (proto/FORMAT.md).
#pragma once
#include <cstdint>
#include <protozero/data_view.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reader/damage.h"
#include "reader/input.h"

namespace flopinj::reduce {

inline constexpr uint32_t kMaxPacketBytes = 4U << 20;

struct Packet {
  uint32_t sequence = 0;
  uint32_t body_field =
      0;  // field number of TracePacket's oneof; 0 for a packet of a newer minor version
  protozero::data_view body;  // valid until the next call; kReadAhead bytes after it are readable
  uint64_t offset = 0;        // of the frame in the input
  uint64_t end = 0;           // of the byte after it
  bool damaged = false;       // of a batch that is read: its check sum is wrong

  bool is_batch() const;  // of launches, or a tally that is not revised
};

// Adds a packet as the format has it, its check sum included; without a body where `field` is 0.
void append_packet(std::string& bytes, uint32_t field, std::string_view body, uint32_t sequence);

// Batches are nearly all of a trace, and nothing but their place in the file is needed of them at
// first: they are passed over unread, and their check sums are made when they are read. Both kinds
// of reader come to the same packets: a batch is taken as such where its inner length agrees with
// its outer one, the fields behind it are where they must be, and its sequence number is the next.
enum class Batches {
  kCheck,  // as all other packets: one whose check sum is wrong is no packet
  kSkip,   // their bodies are empty
  kRead,   // `damaged` says whether the check sum is wrong
};

class PacketReader {
 public:
  // `input` and `damage` must outlive the reader. Only framing damage is logged here. Reads the
  // packets that begin in [begin, end); `last_sequence` is that of the packet before them.
  PacketReader(Input& input, DamageLog& damage, Batches batches, uint64_t begin = 0,
               uint64_t end = UINT64_MAX, uint32_t last_sequence = 0);
  // False at the end of the input.
  bool next(Packet& packet);

 private:
  struct Frame {
    uint64_t packet = 0;       // offset of the packet in the input
    uint32_t packet_size = 0;  // without its check sum field
    uint64_t end = 0;          // offset of the byte after the frame
  };
  bool frame_at(uint64_t offset, Frame& frame);
  bool checked(const Frame& frame, uint64_t offset);
  bool checked_while_searching(const Frame& frame, uint64_t offset);
  bool find_frame(Frame& frame);
  bool read_batch(const Frame& frame, Packet& packet);
  bool parse(const Frame& frame, Packet& packet);
  // The bytes [offset, offset + size) or nullptr when the input ends before.
  const uint8_t* view(uint64_t offset, size_t size);

  Input& input_;
  const Input::Reading reading_;
  DamageLog& damage_;
  Batches batches_;
  std::vector<uint8_t> window_;
  uint64_t window_begin_ = 0;
  size_t window_size_ = 0;
  uint64_t offset_;
  uint64_t end_;
  uint32_t last_sequence_;
  uint64_t search_budget_;  // bytes of check sums still allowed while searching
  bool any_packet_;
};

}  // namespace flopinj::reduce
