#include "anonymous/anonymize.h"

#include <map>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <utility>

#include "crc32c.h"
#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "reader/message.h"
#include "reader/packet_reader.h"

namespace flopinj::reduce {
namespace {

using PacketField = trace_fields::TracePacketField;

// Strings by the recording of a file and their id: what they are used as.
struct Uses {
  std::set<std::pair<uint32_t, uint32_t>> kernels, ranges;
};

template <typename Visit>
void for_each(Input& input, DamageLog& damage, Visit&& visit) {
  PacketReader reader(input, damage, Batches::kCheck);
  Packet packet;
  uint32_t recording = 0;
  while (reader.next(packet)) {
    if (static_cast<PacketField>(packet.body_field) == PacketField::header) ++recording;
    visit(recording, packet);
  }
}

Uses uses_of(Input& input) {
  Uses uses;
  DamageLog told_later;
  for_each(input, told_later, [&](uint32_t recording, const Packet& packet) {
    const auto field = static_cast<PacketField>(packet.body_field);
    trace::RangeNumbers numbers;
    trace::Revised revised;
    if (field == PacketField::revised && parse_message(revised, packet.body))
      numbers = revised.range_numbers();
    else if (field == PacketField::range_numbers)
      parse_message(numbers, packet.body);
    for (const uint32_t name : numbers.name()) uses.ranges.emplace(recording, name);
    trace::Interned message;
    if (field != PacketField::interned || !parse_message(message, packet.body)) return;
    for (const auto& f : message.functions()) uses.kernels.emplace(recording, f.name());
    for (const auto& r : message.range_paths()) {
      uses.ranges.emplace(recording, r.name());
      uses.ranges.emplace(recording, r.domain());
    }
    for (const auto& t : message.threads()) uses.ranges.emplace(recording, t.name());
  });
  return uses;
}

// One message without its private parts; false where it is none.
class Rewriter {
 public:
  Rewriter(const AnonymousNames& names, const AnonymizeOptions& options, Uses uses)
      : names_(names), options_(options), uses_(std::move(uses)) {}

  // Nothing of a body that this version does not know, or that holds only numbers of launches.
  bool body(uint32_t recording, const Packet& packet, std::string& out) const {
    switch (static_cast<PacketField>(packet.body_field)) {
      case PacketField::header:
        return rewrite<trace::Header>(packet, out, [&](auto& m) { header(m); });
      case PacketField::interned:
        return rewrite<trace::Interned>(packet, out, [&](auto& m) { interned(recording, m); });
      case PacketField::device:
        return rewrite<trace::Device>(packet, out, [&](auto& m) {
          if (m.uuid().empty()) return;
          const uint64_t halves[] = {names_.hash().of("first" + m.uuid()),
                                     names_.hash().of("second" + m.uuid())};
          m.set_uuid(reinterpret_cast<const char*>(halves), sizeof halves);
        });
      case PacketField::diagnostic:
        return rewrite<trace::Diagnostic>(packet, out,
                                          [](auto& m) { m.set_message("(left out)"); });
      case PacketField::summary:
        return rewrite<trace::Summary>(packet, out, [&](auto& m) {
          for (auto& source : *m.mutable_source())
            if (!source.file().empty()) source.set_file(names_.other("file", source.file()));
        });
      case PacketField::revised:
        return rewrite<trace::Revised>(
            packet, out, [](auto& m) { m.set_padding(std::string(m.padding().size(), '\0')); });
      case PacketField::counter_samples:
        return rewrite<trace::CounterSamples>(packet, out, [](auto&) {});
      case PacketField::metric_group:
        return rewrite<trace::MetricGroup>(packet, out, [](auto&) {});
      case PacketField::ledger:
        return rewrite<trace::Ledger>(packet, out, [](auto&) {});
      case PacketField::self_overhead:
        return rewrite<trace::SelfOverhead>(packet, out, [](auto&) {});
      case PacketField::end:
        return rewrite<trace::End>(packet, out, [](auto&) {});
      case PacketField::sequence_groups:
        return rewrite<trace::SequenceGroups>(packet, out, [](auto&) {});
      case PacketField::steps:
        return rewrite<trace::Steps>(packet, out, [](auto&) {});
      case PacketField::step_sums:
        return rewrite<trace::StepSums>(packet, out, [](auto&) {});
      case PacketField::range_numbers:
        return rewrite<trace::RangeNumbers>(packet, out, [](auto&) {});
      case PacketField::device_times:
        return rewrite<trace::DeviceTimes>(packet, out, [](auto&) {});
      case PacketField::single_steps:
        return rewrite<trace::SingleSteps>(packet, out, [](auto&) {});
      case PacketField::kernel_durations:
        return rewrite<trace::KernelDurations>(packet, out, [](auto&) {});
      case PacketField::tally_batch:
        return rewrite<trace::TallyBatch>(packet, out, [](auto&) {});
      case PacketField::launch_batch:
        return rewrite<trace::LaunchBatch>(packet, out, [](auto&) {});
      default:
        return false;
    }
  }

 private:
  template <typename Message, typename Change>
  static bool rewrite(const Packet& packet, std::string& out, Change&& change) {
    Message message;
    if (!parse_message(message, packet.body)) return false;
    message.DiscardUnknownFields();
    change(message);
    out = message.SerializeAsString();
    return true;
  }

  uint64_t hashed(uint64_t number) const { return number == 0 ? 0 : names_.hash().of(number) | 1; }

  void header(trace::Header& header) const {
    header.set_hostname(names_.other("host", header.hostname()));
    const std::string program = header.command_line_size() == 0 ? "" : header.command_line(0);
    header.clear_command_line();
    if (!program.empty()) header.add_command_line(names_.other("program", program));
    if (!header.job_id().empty()) header.set_job_id(names_.other("job", header.job_id()));
    if (!header.choice().empty()) header.set_choice("options that are not shown");
    header.set_session_id(hashed(header.session_id()));
  }

  void interned(uint32_t recording, trace::Interned& message) const {
    for (auto& s : *message.mutable_strings()) {
      const std::pair id(recording, s.id());
      const bool kernel = uses_.kernels.contains(id), range = uses_.ranges.contains(id);
      if ((kernel && options_.keep_kernels) || (range && options_.keep_ranges)) continue;
      s.set_value(kernel && !range ? names_.kernel(s.value()) : names_.range(s.value()));
    }
    for (auto& f : *message.mutable_functions()) f.set_code_hash(hashed(f.code_hash()));
    for (auto& s : *message.mutable_signatures()) s.set_stable_hash(hashed(s.stable_hash()));
  }

  const AnonymousNames& names_;
  const AnonymizeOptions& options_;
  Uses uses_;
};

void append(std::string& bytes, const Packet& packet, bool has_body, const std::string& body) {
  std::string out;
  protozero::pbf_writer writer(out);
  if (has_body) writer.add_bytes(packet.body_field, body);
  writer.add_uint32(static_cast<protozero::pbf_tag_type>(PacketField::sequence), packet.sequence);
  const uint32_t sum = crc32c(out.data(), out.size());
  writer.add_fixed32(static_cast<protozero::pbf_tag_type>(PacketField::crc32c), sum);
  protozero::pbf_writer(bytes).add_bytes(
      static_cast<protozero::pbf_tag_type>(trace_fields::TraceField::packet), out);
}

}  // namespace

std::string anonymize(Input& input, const AnonymousNames& names, const AnonymizeOptions& options,
                      DamageLog& damage) {
  const Rewriter rewriter(names, options, uses_of(input));
  std::string bytes;
  for_each(input, damage, [&](uint32_t recording, const Packet& packet) {
    std::string body;
    const bool known = rewriter.body(recording, packet, body);
    append(bytes, packet, known, body);
  });
  return bytes;
}

}  // namespace flopinj::reduce
