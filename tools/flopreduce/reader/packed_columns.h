// Columns as views into a packet, whichever of protobuf's two forms they came in.
#pragma once
#include <protozero/data_view.hpp>
#include <string>

#include "reader/columns.h"

namespace flopinj::reduce {

// `read(body, packed_once)` takes views of a batch's columns and clears packed_once where a column
// came unpacked or in pieces, which protobuf allows and our writer never does. Then the batch is
// written anew into `canonical`, through the generated code, and read from there. False where the
// bytes are no Message.
template <typename Message, typename Read>
bool read_packed(protozero::data_view body, std::string& canonical, Read&& read) {
  bool packed_once = true;
  if (!read(body, packed_once)) return false;
  if (packed_once) return true;
  Message message;
  if (!message.ParseFromArray(body.data(), static_cast<int>(body.size()))) return false;
  message.SerializeToString(&canonical);
  const size_t size = canonical.size();
  canonical.append(kReadAhead, '\0');
  packed_once = true;
  return read(protozero::data_view(canonical.data(), size), packed_once) && packed_once;
}

}  // namespace flopinj::reduce
