// Numbers as people write them, read and written.
#include "support/si_number.h"

#include "catch.h"

using namespace flopinj::reduce;

TEST_CASE("numbers with SI prefixes") {
  CHECK(parse_si("8.73T") == 8.73e12);
  CHECK(parse_si("15503M") == 15503e6);
  CHECK(parse_si("1k") == 1000.0);
  CHECK(parse_si("2.5e-3") == 2.5e-3);
  CHECK(parse_si(".5") == 0.5);
  CHECK(parse_si("1E") == 1e18);  // exa; an exponent needs digits
  CHECK(parse_si("1E3") == 1e3);
  for (const char* bad : {"", "T", "1m", "1 T", "1TB", "1.2.3", "--1", "+1", "1e999", "1e3k"})
    CHECK_FALSE(parse_si(bad));
  CHECK(format_si(6.975e18) == "6.975 E");
  CHECK(format_si(1e30) == "1e+06 Y");
  CHECK(format_si(999.96) == "1000");
  CHECK(format_si(999960) == "1 M");
  CHECK(format_si(0) == "0");
}
