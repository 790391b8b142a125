// Rare packets, through the generated code.
#pragma once
#include <google/protobuf/message.h>

#include <protozero/data_view.hpp>
#include <string>

namespace flopinj::reduce {

// Replaces every byte that is not UTF-8 in the string fields of a serialized message by '?'.
// Command lines, host names and diagnostics may hold any bytes, and protobuf refuses a whole
// message for one of them, with a line of its own on stderr. False where the bytes cannot be
// walked: they are cut, or hold a group, which no version of the format has.
bool repair_utf8(const google::protobuf::Descriptor& type, char* data, size_t size);

// False where the bytes are no message of this type.
template <typename Message>
bool parse_message(Message& message, protozero::data_view body) {
  std::string bytes(body.data(), body.size());
  return repair_utf8(*Message::descriptor(), bytes.data(), bytes.size()) &&
         message.ParseFromString(bytes);
}

}  // namespace flopinj::reduce
