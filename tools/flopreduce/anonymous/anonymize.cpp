#include "anonymous/anonymize.h"

#include <google/protobuf/message.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "reader/message.h"
#include "reader/packet_reader.h"

namespace flopinj::reduce {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using PacketField = trace_fields::TracePacketField;

struct Treatment {
  enum Kind : uint8_t {
    kOurs,       // the recorder's or the vendor's own words, which nothing of the program gets into
    kNames,      // a text with names in it
    kPseudonym,  // of all of it
    kFirst,      // the same of the first text; no more of them
    kHash,       // of the value; 0 and no bytes stay
    kLeftOut,    // a text that says so
    kPadding,    // as many zeros
  };
  Kind kind;
  const char* of = "";  // what a pseudonym is of
};

// Of each field that holds text, bytes or a number that identifies (fixed64).
const std::map<std::string_view, Treatment>& treatments() {
  using enum Treatment::Kind;
  static const std::map<std::string_view, Treatment> kTreatments = {
      {"Header.producer", {kNames}},
      {"Header.hostname", {kPseudonym, "host"}},
      {"Header.command_line", {kFirst, "program"}},
      {"Header.rank_source", {kNames}},
      {"Header.session_id", {kHash}},
      {"Header.mode", {kOurs}},
      {"Header.imported_from", {kOurs}},
      {"Header.choice", {kLeftOut}},
      {"Header.job_id", {kPseudonym, "job"}},
      {"Header.job_id_source", {kNames}},
      {"Header.run_id", {kHash}},
      {"Header.Label.name", {kNames}},
      {"Header.Label.value", {kPseudonym, "label"}},
      {"Header.Label.source", {kNames}},
      {"Energy.PerDevice.unavailable", {kLeftOut}},
      {"Device.name", {kOurs}},
      {"Device.chip", {kOurs}},
      {"Device.uuid", {kHash}},
      {"Interned.String.value", {kNames}},
      {"Interned.Function.code_hash", {kHash}},
      {"Interned.Signature.fingerprint", {kHash}},
      {"Interned.Signature.stable_hash", {kHash}},
      {"MetricGroup.name", {kOurs}},
      {"MetricGroup.metric", {kOurs}},
      {"MetricGroup.NeededIf.metric", {kOurs}},
      {"MetricGroup.NeededIf.included", {kOurs}},
      {"MetricGroup.unavailable", {kLeftOut}},
      {"MetricGroup.instead_of", {kOurs}},
      {"Ledger.measuring_stopped", {kLeftOut}},
      {"Ledger.Reason.reason", {kOurs}},
      {"Revised.padding", {kPadding}},
      {"Diagnostic.code", {kOurs}},
      {"Diagnostic.message", {kLeftOut}},
      {"Diagnostic.last_message", {kLeftOut}},
      {"Summary.Source.file", {kPseudonym, "file"}},
      {"Summary.Damage.kind", {kOurs}},
  };
  return kTreatments;
}

bool needs_treatment(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
         field.type() == FieldDescriptor::TYPE_FIXED64;
}

std::string_view name_of(const FieldDescriptor& field) {
  std::string_view name = field.full_name();
  name.remove_prefix(field.file()->package().size() + 1);
  return name;
}

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

// The recording in the file, and an id of a string.
using StringId = std::pair<uint32_t, uint32_t>;

std::set<StringId> names_of_kernels(Input& input) {
  std::set<StringId> ids;
  DamageLog told_later;
  for_each(input, told_later, [&](uint32_t recording, const Packet& packet) {
    trace::Interned message;
    if (static_cast<PacketField>(packet.body_field) == PacketField::interned &&
        parse_message(message, packet.body))
      for (const auto& f : message.functions()) ids.emplace(recording, f.name());
  });
  return ids;
}

class Rewriter {
 public:
  Rewriter(const AnonymousNames& names, const AnonymizeOptions& options, std::set<StringId> kernels)
      : names_(names), options_(options), kernels_(std::move(kernels)) {}

  // A packet's body without its private parts; false where this version does not know it.
  bool body(uint32_t recording, const Packet& packet, std::string& out) const {
    const auto* field =
        trace::TracePacket::descriptor()->FindFieldByNumber(static_cast<int>(packet.body_field));
    if (field == nullptr || field->message_type() == nullptr) return false;
    const std::unique_ptr<Message> message(google::protobuf::MessageFactory::generated_factory()
                                               ->GetPrototype(field->message_type())
                                               ->New());
    std::string bytes(packet.body.data(), packet.body.size());
    if (!repair_utf8(*field->message_type(), bytes.data(), bytes.size()) ||
        !message->ParseFromString(bytes))
      return false;
    message->DiscardUnknownFields();
    rewrite(recording, *message);
    out = message->SerializeAsString();
    return true;
  }

 private:
  void rewrite(uint32_t recording, Message& message) const {
    const Reflection& fields = *message.GetReflection();
    std::vector<const FieldDescriptor*> present;
    fields.ListFields(message, &present);
    for (const FieldDescriptor* field : present) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        if (!field->is_repeated()) rewrite(recording, *fields.MutableMessage(&message, field));
        for (int i = 0; field->is_repeated() && i < fields.FieldSize(message, field); ++i)
          rewrite(recording, *fields.MutableRepeatedMessage(&message, field, i));
      } else if (needs_treatment(*field) && !stays(recording, message)) {
        treat(message, fields, *field);
      }
    }
  }

  bool stays(uint32_t recording, const Message& message) const {
    if (message.GetDescriptor() != trace::Interned::String::descriptor()) return false;
    const uint32_t id = static_cast<const trace::Interned::String&>(message).id();
    return kernels_.contains({recording, id}) ? options_.keep_kernels : options_.keep_ranges;
  }

  void treat(Message& message, const Reflection& fields, const FieldDescriptor& field) const {
    const auto found = treatments().find(name_of(field));
    if (found == treatments().end()) {
      fields.ClearField(&message, &field);
      return;
    }
    const Treatment& treatment = found->second;
    if (field.type() == FieldDescriptor::TYPE_FIXED64) {
      const uint64_t number = fields.GetUInt64(message, &field);
      fields.SetUInt64(&message, &field, number == 0 ? 0 : names_.hash().of(bytes_of(number)) | 1);
      return;
    }
    if (!field.is_repeated()) {
      fields.SetString(&message, &field, text(treatment, fields.GetString(message, &field)));
      return;
    }
    while (treatment.kind == Treatment::kFirst && fields.FieldSize(message, &field) > 1)
      fields.RemoveLast(&message, &field);
    for (int i = 0; i < fields.FieldSize(message, &field); ++i)
      fields.SetRepeatedString(&message, &field, i,
                               text(treatment, fields.GetRepeatedString(message, &field, i)));
  }

  static std::string bytes_of(uint64_t number) {
    return {reinterpret_cast<const char*>(&number), sizeof number};
  }

  std::string text(const Treatment& treatment, const std::string& value) const {
    switch (treatment.kind) {
      case Treatment::kOurs:
        return value;
      case Treatment::kNames:
        return names_.name(value);
      case Treatment::kPseudonym:
      case Treatment::kFirst:
        return names_.other(treatment.of, value);
      case Treatment::kHash:
        return bytes_of(names_.hash().of("first" + value)) +
               bytes_of(names_.hash().of("second" + value));
      case Treatment::kLeftOut:
        return "(left out)";
      case Treatment::kPadding:
        return std::string(value.size(), '\0');
    }
    return {};
  }

  const AnonymousNames& names_;
  const AnonymizeOptions& options_;
  const std::set<StringId> kernels_;
};

}  // namespace

bool has_treatment(const FieldDescriptor& field) {
  return !needs_treatment(field) || treatments().contains(name_of(field));
}

std::string anonymize(Input& input, const AnonymousNames& names, const AnonymizeOptions& options,
                      DamageLog& damage) {
  const bool any_kept = options.keep_ranges || options.keep_kernels;
  const Rewriter rewriter(names, options,
                          any_kept ? names_of_kernels(input) : std::set<StringId>{});
  std::string bytes;
  for_each(input, damage, [&](uint32_t recording, const Packet& packet) {
    std::string body;
    const bool known = rewriter.body(recording, packet, body);
    append_packet(bytes, known ? packet.body_field : 0, body, packet.sequence);
  });
  return bytes;
}

}  // namespace flopinj::reduce
