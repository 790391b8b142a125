#include "trace_mutations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "mend.h"

namespace flopinj::test {
namespace {

using Random = TraceRandom;
using flopinj::test::read_length;

size_t below(Random& random, size_t end) { return random() % end; }

enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t tag = 0;     // with the wire type
  uint64_t number = 0;  // of a varint
  std::string bytes;    // of all others
  Wire wire() const { return static_cast<Wire>(tag & 7); }
};
using Message = std::vector<Field>;

// False where these bytes are no message.
bool parse(std::string_view bytes, Message& message) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t at = 0;
  while (at < bytes.size()) {
    Field field;
    uint64_t length = 0;
    if (!read_length(data, bytes.size(), at, field.tag) || field.tag < 8) return false;
    switch (field.wire()) {
      case kVarint:
        if (!read_length(data, bytes.size(), at, field.number)) return false;
        message.push_back(std::move(field));
        continue;
      case kFixed64:
        length = 8;
        break;
      case kFixed32:
        length = 4;
        break;
      case kBytes:
        if (!read_length(data, bytes.size(), at, length)) return false;
        break;
      default:
        return false;
    }
    if (length > bytes.size() - at) return false;
    field.bytes = bytes.substr(at, length);
    at += length;
    message.push_back(std::move(field));
  }
  return true;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::string written(const Message& message) {
  std::string out;
  for (const Field& field : message) {
    put_varint(out, field.tag);
    if (field.wire() == kVarint) put_varint(out, field.number);
    if (field.wire() == kBytes) put_varint(out, field.bytes.size());
    out += field.bytes;
  }
  return out;
}

uint64_t telling_number(uint64_t old, Random& random) {
  static constexpr std::array<uint64_t, 14> kNumbers = {0,
                                                        1,
                                                        2,
                                                        3,
                                                        127,
                                                        128,
                                                        255,
                                                        256,
                                                        1U << 20,
                                                        0x7fffffff,
                                                        0xffffffff,
                                                        uint64_t{1} << 53,
                                                        uint64_t{1} << 63,
                                                        UINT64_MAX};
  // Ids near the largest that a table takes cost an input as much as a thousand others.
  if (random() % 1024 == 0) return uint64_t{1} << (14 + below(random, 9));
  switch (below(random, 5)) {
    case 0:
      return kNumbers[below(random, kNumbers.size())];
    case 1:
      return old + 1;
    case 2:
      return old - 1;
    case 3:
      return old ^ uint64_t { 1 } << below(random, 10);
    default:
      return below(random, 64);
  }
}

std::string changed_bytes(std::string bytes, Random& random) {
  const size_t place = bytes.empty() ? 0 : below(random, bytes.size());
  switch (bytes.empty() ? 0 : below(random, 5)) {
    case 0:
      bytes.insert(place, 1 + below(random, 4), static_cast<char>(random()));
      break;
    case 1:
      bytes.erase(place, 1 + below(random, 4));
      break;
    case 2:
      bytes[place] = static_cast<char>(random());
      break;
    case 3:
      bytes[place] ^= static_cast<char>(1U << below(random, 8));
      break;
    default:
      bytes.insert(place, bytes.substr(below(random, bytes.size()), 1 + below(random, 8)));
  }
  return bytes;
}

// A packed column: numbers changed, added and taken away.
std::string changed_column(const std::string& bytes, Random& random) {
  std::vector<uint64_t> numbers;
  size_t at = 0;
  uint64_t number = 0;
  while (at < bytes.size()) {
    if (!read_length(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), at, number))
      return bytes;
    numbers.push_back(number);
  }
  const size_t place = numbers.empty() ? 0 : below(random, numbers.size());
  const auto there = numbers.begin() + static_cast<std::ptrdiff_t>(place);
  if (numbers.empty() || random() % 4 == 0)
    numbers.insert(there, telling_number(0, random));
  else if (random() % 4 == 0)
    numbers.erase(there);
  else
    *there = telling_number(*there, random);
  std::string out;
  for (const uint64_t n : numbers) put_varint(out, n);
  return out;
}

std::string changed_message(const std::string& bytes, Random& random, int depth);

void change_field(Field& field, Random& random, int depth) {
  Message inside;
  switch (field.wire()) {
    case kVarint:
      field.number = telling_number(field.number, random);
      return;
    case kBytes:
      if (depth < 4 && random() % 4 != 0 && !field.bytes.empty() && parse(field.bytes, inside))
        field.bytes = changed_message(field.bytes, random, depth + 1);
      else if (random() % 2 == 0)
        field.bytes = changed_column(field.bytes, random);
      else
        field.bytes = changed_bytes(field.bytes, random);
      return;
    default:
      field.bytes[below(random, field.bytes.size())] ^= static_cast<char>(1U << below(random, 8));
  }
}

std::string changed_message(const std::string& bytes, Random& random, int depth) {
  Message message;
  if (!parse(bytes, message) || message.empty()) return changed_bytes(bytes, random);
  const size_t place = below(random, message.size());
  const auto there = message.begin() + static_cast<std::ptrdiff_t>(place);
  switch (below(random, 8)) {
    case 0:
      message.erase(there);
      break;
    case 1: {
      const Field again = *there;
      message.insert(there, again);
      break;
    }
    case 2:
      std::swap(message[place], message[below(random, message.size())]);
      break;
    case 3:  // the same as another field, of a known number or nearly
      there->tag = there->wire() | (1 + below(random, 20)) << 3;
      break;
    default:
      change_field(*there, random, depth);
  }
  return written(message);
}

using Packets = std::vector<std::string>;  // without check sums

Packets packets_of(std::string_view bytes) {
  using namespace flopinj::test;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const size_t size = bytes.size();
  Packets packets;
  size_t at = 0;
  uint64_t length = 0;
  while (at < size && data[at] == kPacketTag) {
    ++at;
    if (!read_length(data, size, at, length) || length > size - at) break;
    const size_t body = length < kCheckSumBytes ? length : length - kCheckSumBytes;
    packets.emplace_back(reinterpret_cast<const char*>(data) + at, body);
    at += length;
  }
  return packets;
}

// As many packets as there is room for.
std::string write_packets(const Packets& packets, size_t max_size) {
  std::string out;
  for (const std::string& packet : packets) {
    std::string framed;
    put_varint(framed, flopinj::test::kPacketTag);
    put_varint(framed, packet.size() + flopinj::test::kCheckSumBytes);
    framed += packet + std::string(flopinj::test::kCheckSumBytes, '\0');
    if (out.size() + framed.size() > max_size) break;
    out += framed;
  }
  flopinj::test::mend_check_sums(reinterpret_cast<uint8_t*>(out.data()), out.size());
  return out;
}

// Numbered from 1, but for a damaged trace now and then.
void number(Packets& packets) {
  constexpr uint64_t kSequenceTag = 14 << 3;
  uint64_t sequence = 0;
  for (std::string& packet : packets) {
    Message message;
    if (!parse(packet, message)) continue;
    std::erase_if(message, [](const Field& f) { return f.tag == kSequenceTag; });
    message.push_back({kSequenceTag, ++sequence, {}});
    packet = written(message);
  }
}

}  // namespace

std::string changed_trace(std::string_view bytes, size_t max_size, TraceRandom& random) {
  Packets packets = packets_of(bytes);
  // Bytes as they are: framing and what is no packet are read too.
  if (packets.empty() || random() % 16 == 0)
    return changed_bytes(std::string(bytes), random).substr(0, max_size);
  const size_t place = below(random, packets.size());
  const auto there = packets.begin() + static_cast<std::ptrdiff_t>(place);
  switch (below(random, 8)) {
    case 0:
      if (packets.size() > 1) packets.erase(there);
      break;
    case 1: {
      const std::string again = *there;
      packets.insert(packets.begin() + static_cast<std::ptrdiff_t>(below(random, packets.size())),
                     again);
      break;
    }
    case 2:
      std::swap(packets[place], packets[below(random, packets.size())]);
      break;
    default:
      for (size_t n = 1 + below(random, 3); n > 0; --n) *there = changed_message(*there, random, 0);
  }
  if (random() % 4 != 0) number(packets);
  return write_packets(packets, max_size);
}

std::string crossed_traces(std::string_view one, std::string_view other, size_t max_size,
                           TraceRandom& random) {
  Packets packets = packets_of(one);
  const Packets others = packets_of(other);
  if (packets.empty() || others.empty()) return {};
  for (size_t n = 1 + below(random, 4); n > 0; --n)
    packets.insert(packets.begin() + static_cast<std::ptrdiff_t>(below(random, packets.size() + 1)),
                   others[below(random, others.size())]);
  number(packets);
  return write_packets(packets, max_size);
}

}  // namespace flopinj::test
