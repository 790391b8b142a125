#include "environment.h"

#include <cstdlib>

#include "catch.h"
#include "shell_word.h"

using flopinj::Environment;
using flopinj::shell_quoted;

TEST_CASE("A word is quoted only where a shell would read it otherwise") {
  CHECK(shell_quoted("/opt/a-b_c.d:e=f,%p@1") == "/opt/a-b_c.d:e=f,%p@1");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("$x`y`\\") == "'$x`y`\\'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("~") == "'~'");
  CHECK(shell_quoted("%q{A}") == "'%q{A}'");
}

TEST_CASE("Prepending to an empty or missing variable leaves no colon behind") {
  Environment environment;
  environment.prepend("FLOPINJ_TEST_PATH", "/new");
  unsetenv("FLOPINJ_TEST_PATH");
  environment.apply();
  CHECK(std::string(std::getenv("FLOPINJ_TEST_PATH")) == "/new");
  setenv("FLOPINJ_TEST_PATH", "", 1);
  environment.apply();
  CHECK(std::string(std::getenv("FLOPINJ_TEST_PATH")) == "/new");
  setenv("FLOPINJ_TEST_PATH", "/old", 1);
  environment.apply();
  CHECK(std::string(std::getenv("FLOPINJ_TEST_PATH")) == "/new:/old");
}

TEST_CASE("Exports are printed in the order in which they were asked for") {
  Environment environment;
  environment.set("B", "1");
  environment.prepend("A", "x y");
  CHECK(environment.shell_exports() == "export B=1\nexport A='x y'\"${A:+:$A}\"\n");
}
