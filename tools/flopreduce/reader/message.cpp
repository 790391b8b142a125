#include "reader/message.h"

#include <google/protobuf/descriptor.h>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "support/text.h"

namespace flopinj::reduce {

bool repair_utf8(const google::protobuf::Descriptor& type, char* data, size_t size) {
  using google::protobuf::FieldDescriptor;
  try {
    protozero::pbf_reader reader(data, size);
    while (reader.next()) {
      const auto* field = type.FindFieldByNumber(static_cast<int>(reader.tag()));
      if (reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
        reader.skip();
        continue;
      }
      const auto view = reader.get_view();
      if (field == nullptr || view.empty()) continue;
      char* bytes = data + (view.data() - data);
      if (field->type() == FieldDescriptor::TYPE_STRING)
        replace_invalid_utf8(bytes, view.size(), '?');
      // No message of the format holds itself.
      if (field->type() == FieldDescriptor::TYPE_MESSAGE &&
          !repair_utf8(*field->message_type(), bytes, view.size()))
        return false;
    }
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

}  // namespace flopinj::reduce
