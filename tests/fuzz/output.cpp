#include "output.h"

#include <ostream>
#include <streambuf>

#include "crc32c.h"
#include "sections/sections.h"
#include "writers/writers.h"

namespace flopinj::test {
namespace {

class NullBuffer : public std::streambuf {
  int overflow(int c) override { return c == traits_type::eof() ? 0 : c; }
  std::streamsize xsputn(const char*, std::streamsize size) override { return size; }
};

bool wants_json(std::string_view input) {
  return crc32c(reinterpret_cast<const uint8_t*>(input.data()), input.size()) % 32 == 0;
}

}  // namespace

void show(reduce::Launches& launches) {
  NullBuffer buffer;
  std::ostream nowhere(&buffer);
  reduce::write_trace_events(nowhere, launches, {"fuzz", 2});
}

void show(const reduce::Report& report, std::string_view input) {
  NullBuffer buffer;
  std::ostream nowhere(&buffer);
  reduce::write_text(nowhere, reduce::report_sections(report), {});
  if (wants_json(input)) reduce::write_json(nowhere, reduce::report_tables(report));
}

}  // namespace flopinj::test
