// Any bytes as a trace, as they are and with right check sums: the reducer must come to a report,
// in both forms, and to every launch on a time line.
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <streambuf>
#include <utility>
#include <vector>

#include "crc32c.h"
#include "passes/reducer.h"
#include "writers/json_writer.h"
#include "writers/text_writer.h"
#include "writers/trace_event_writer.h"

namespace {

class NullBuffer : public std::streambuf {
  int overflow(int c) override { return c == traits_type::eof() ? 0 : c; }
};

constexpr uint8_t kPacketTag = 0x0a;
constexpr uint8_t kCheckSumTag = 0x7d;
constexpr size_t kCheckSumBytes = 5;

// Reads a varint at `at` and moves on. False at the end of the data.
bool read_length(const uint8_t* data, size_t size, size_t& at, uint64_t& length) {
  length = 0;
  for (unsigned shift = 0; shift < 64 && at < size; shift += 7) {
    const uint8_t byte = data[at++];
    length |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Gives every packet that is still framed a right check sum, so that what is inside gets read.
void mend_check_sums(uint8_t* data, size_t size) {
  size_t at = 0;
  uint64_t length = 0;
  while (at < size && data[at] == kPacketTag) {
    ++at;
    if (!read_length(data, size, at, length) || length > size - at) return;
    if (length >= kCheckSumBytes) {
      const size_t body = static_cast<size_t>(length) - kCheckSumBytes;
      const uint32_t sum = flopinj::crc32c(data + at, body);
      data[at + body] = kCheckSumTag;
      for (unsigned i = 0; i < 4; ++i) {
        data[at + body + 1 + i] = static_cast<uint8_t>(sum >> (8 * i));
      }
    }
    at += static_cast<size_t>(length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj::reduce;
  NullBuffer buffer;
  std::ostream nowhere(&buffer);
  std::vector<uint8_t> mended(data, data + size);
  mend_check_sums(mended.data(), mended.size());
  for (const uint8_t* bytes : {data, static_cast<const uint8_t*>(mended.data())}) {
    ReduceOptions options;
    options.launches = [&](Launches& launches) {
      write_trace_events(nowhere, launches, "fuzz", 2);
    };
    Reducer reducer(std::move(options));
    reducer.add(Input::from_memory("fuzz", bytes, size));
    const Report report = reducer.run();
    write_text(nowhere, report, TextOptions{});
    write_json(nowhere, report);
  }
  return 0;
}
