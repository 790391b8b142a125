// Any bytes as a trace, as they are and with right check sums: the reducer must come to a report,
// and to every launch on a time line.
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <streambuf>
#include <utility>
#include <vector>

#include "mend.h"
#include "passes/reducer.h"
#include "writers/json_writer.h"
#include "writers/text_writer.h"
#include "writers/trace_event_writer.h"

namespace {

class NullBuffer : public std::streambuf {
  int overflow(int c) override { return c == traits_type::eof() ? 0 : c; }
  std::streamsize xsputn(const char*, std::streamsize size) override { return size; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj::reduce;
  NullBuffer buffer;
  std::ostream nowhere(&buffer);
  std::vector<uint8_t> mended(data, data + size);
  flopinj::test::mend_check_sums(mended.data(), mended.size());
  for (const uint8_t* bytes : {data, static_cast<const uint8_t*>(mended.data())}) {
    ReduceOptions options;
    options.jobs = 1;  // so little is read on this thread
    options.launches = [&](Launches& launches) {
      write_trace_events(nowhere, launches, "fuzz", 2);
    };
    Reducer reducer(std::move(options));
    reducer.add(Input::from_memory("fuzz", bytes, size));
    const Report report = reducer.run();
    write_text(nowhere, report, TextOptions{});
    if (flopinj::test::wants_json(data, size)) write_json(nowhere, report);
  }
  return 0;
}
