// Writes a header with the field numbers of every message in a descriptor set, as one enum class
// per message. The injected library encodes the wire format without the protobuf runtime; its
// numbers come from the same .proto. Use: field_numbers DESCRIPTOR_SET OUTPUT
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace {

void write_message(std::ostream& out, const google::protobuf::Descriptor& message,
                   const std::string& outer) {
  const std::string name = outer + message.name();
  out << "enum class " << name << "Field : protozero::pbf_tag_type {\n";
  for (int i = 0; i < message.field_count(); ++i)
    out << "  " << message.field(i)->name() << " = " << message.field(i)->number() << ",\n";
  out << "};\n";
  for (int i = 0; i < message.nested_type_count(); ++i)
    write_message(out, *message.nested_type(i), name);
  for (int i = 0; i < message.enum_type_count(); ++i) {
    const auto& e = *message.enum_type(i);
    out << "enum class " << name << e.name() << " : int32_t {\n";
    for (int v = 0; v < e.value_count(); ++v)
      out << "  " << e.value(v)->name() << " = " << e.value(v)->number() << ",\n";
    out << "};\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "use: field_numbers DESCRIPTOR_SET OUTPUT\n");
    return 2;
  }
  google::protobuf::FileDescriptorSet set;
  std::ifstream in(argv[1], std::ios::binary);
  if (!set.ParseFromIstream(&in)) {
    std::fprintf(stderr, "field_numbers: cannot read %s\n", argv[1]);
    return 3;
  }
  google::protobuf::DescriptorPool pool;
  std::ofstream out(argv[2]);
  out << "// Generated from flop_trace.proto. Do not edit.\n#pragma once\n#include "
         "<protozero/types.hpp>\n\n"
         "#include <cstdint>\n\nnamespace flopinj::trace_fields {\n\n";
  for (const auto& file : set.file()) {
    const auto* built = pool.BuildFile(file);
    if (built == nullptr) return 3;
    for (int i = 0; i < built->enum_type_count(); ++i) {
      const auto& e = *built->enum_type(i);
      out << "enum class " << e.name() << " : int32_t {\n";
      for (int v = 0; v < e.value_count(); ++v)
        out << "  " << e.value(v)->name() << " = " << e.value(v)->number() << ",\n";
      out << "};\n";
    }
    for (int i = 0; i < built->message_type_count(); ++i)
      write_message(out, *built->message_type(i), "");
  }
  out << "\n}  // namespace flopinj::trace_fields\n";
  return out.good() ? 0 : 3;
}
