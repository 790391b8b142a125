// One packet on its way into a group: body, sequence number, check sum, frame. Private to the trace
// writer.
#pragma once
#include <collector/trace_writer.h>
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

template <class Fill>
void TraceWriter::packet(Fill&& fill) {
  if (!ok_) return;
  body_.clear();
  {
    PacketBuilder builder(body_);
    fill(builder);
  }
  const size_t before = framed_.size();
  seal_packet(body_, ++sequence_, framed_);
  bytes_ += framed_.size() - before;
  if (framed_.size() >= kMaxGroupBytes) flush();
}

}  // namespace flopinj
