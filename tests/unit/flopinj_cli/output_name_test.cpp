#include <cstdlib>

#include "catch.h"
#include "output.h"

using flopinj::absolute_output_name;
using flopinj::output_name_problem;

TEST_CASE("Every documented pattern is accepted") {
  setenv("A_1", "value", 1);
  for (const char* name :
       {"a.pb", "-", "%p", "%h%r", "100%%.pb", "%q{A_1}%p", "unix:/run/%p", "%%z"}) {
    INFO(name);
    CHECK(output_name_problem(name).empty());
  }
}

TEST_CASE("Anything else after a percent sign is refused") {
  for (const char* name : {"", "unix:", "%", "a%", "%z", "%P", "%q", "%q{", "%q{}", "%q{A",
                           "%q{1A}", "%q{A B}", "%%%", "unix:%n", "%q{NOT_SET_ANYWHERE}"}) {
    INFO(name);
    CHECK_FALSE(output_name_problem(name).empty());
  }
}

TEST_CASE("A relative name is taken against the folder, whose percent signs are no patterns") {
  CHECK(absolute_output_name("a%p.pb", "/x/100%p") == "/x/100%%p/a%p.pb");
  CHECK(absolute_output_name("a.pb", "/") == "/a.pb");
  CHECK(absolute_output_name("/a.pb", "/x") == "/a.pb");
  CHECK(absolute_output_name("unix:s/%p", "/x") == "unix:/x/s/%p");
  CHECK(absolute_output_name("-", "/x") == "-");
}
