// What makes a packet of its body: sequence number, check sum, frame. Private to the trace writer.
#pragma once
#include <flop_trace_fields.h>
#include <proto/crc32c.h>

#include <cstdint>
#include <protozero/pbf_builder.hpp>
#include <protozero/varint.hpp>
#include <string>

namespace flopinj {

namespace f = trace_fields;
using PacketBuilder = protozero::pbf_builder<f::TracePacketField>;

// Completes `body`, whose fields are written, and appends it with its frame to `framed`.
inline void seal_packet(std::string& body, uint32_t sequence, std::string& framed) {
  PacketBuilder(body).add_uint32(f::TracePacketField::sequence, sequence);
  const uint32_t check = crc32c(body.data(), body.size());
  PacketBuilder(body).add_fixed32(f::TracePacketField::crc32c, check);
  protozero::pbf_builder<f::TraceField>(framed).add_bytes(f::TraceField::packet, body);
}

}  // namespace flopinj
