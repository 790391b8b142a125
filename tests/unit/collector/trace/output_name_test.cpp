#include <collector/trace/sink/output_name.h>
#include <collector/trace/sink/trace_file.h>

#include <cstring>

#include "catch.h"

using flopinj::expand_output_name;
using flopinj::OutputNameContext;

namespace {

const char* environment(const char* name) {
  if (std::strcmp(name, "JOB") == 0) return "j17";
  if (std::strcmp(name, "EMPTY") == 0) return "";
  return nullptr;
}
const OutputNameContext kContext{4711, "node7", 3, environment};

std::string name(std::string_view pattern) {
  const auto result = expand_output_name(pattern, kContext);
  CHECK(result.error == "");
  return result.name;
}
std::string error(std::string_view pattern) { return expand_output_name(pattern, kContext).error; }
bool says(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("output names are filled in") {
  CHECK(name("trace.pb") == "trace.pb");
  CHECK(name("%h-%p-%r.pb") == "node7-4711-3.pb");
  CHECK(name("100%%.pb") == "100%.pb");
  CHECK(name("%q{JOB}/%q{EMPTY}x") == "j17/x");
  CHECK(name("-") == "-");
  CHECK(expand_output_name("%r", {1, "h", -1, nullptr}).name == "0");
}

TEST_CASE("placeholders of other programs are answered with ours") {
  CHECK(says(error("{rank}.pb"), "character 1: {rank} is filled in by nothing; write %r"));
  CHECK(says(error("a-{pid}.pb"), "write %p"));
  CHECK(says(error("/x/{hostname}"), "write %h"));
  CHECK(says(error("${SLURM_JOB_ID}.pb"), "write %q{SLURM_JOB_ID}"));
  CHECK(says(error("{name}.pb"), "known are %p, %h, %r, %q{ENV}"));
  CHECK(says(error("a%d.pb"), "unknown %d"));
  CHECK(name("/a/{rank}/x.pb") == "/a/{rank}/x.pb");
  CHECK(name("a{}{1}{.pb") == "a{}{1}{.pb");
}

TEST_CASE("a part is put before the end of a file's name") {
  CHECK(flopinj::extended_output_name("/a.b/flop-17.pb", "2") == "/a.b/flop-17.2.pb");
  CHECK(flopinj::extended_output_name("/a.b/flop-17", "12") == "/a.b/flop-17.12");
  CHECK(flopinj::extended_output_name(".hidden", "2") == ".hidden.2");
  CHECK(expand_output_name("x-%p", kContext).of_process);
  CHECK_FALSE(expand_output_name("x-%r", kContext).of_process);
}

TEST_CASE("a job of several ranks gives each a name of its own, unless the name has one") {
  const auto named = [](const char* pattern, int32_t rank, uint32_t world_size) {
    return flopinj::trace_name(pattern, {4711, "node7", rank, environment}, world_size).name;
  };
  CHECK(named("t.pb", 3, 4) == "t.rank3.pb");
  CHECK(named("t.pb", 3, 0) == "t.rank3.pb");       // PMIx: how many there are is not known
  CHECK(named("%h.pb", 3, 4) == "node7.rank3.pb");  // a host has several
  CHECK(named("t.pb", 0, 1) == "t.pb");
  CHECK(named("t.pb", -1, 0) == "t.pb");
  CHECK(named("t%r.pb", 3, 4) == "t3.pb");
  CHECK(named("t%p.pb", 3, 4) == "t4711.pb");
  CHECK(named("%q{JOB}.pb", 3, 4) == "j17.pb");
  for (const char* stream : {"-", "unix:/run/s", "/dev/null"}) CHECK(named(stream, 3, 4) == stream);
}

TEST_CASE("wrong output names say where and what to do") {
  CHECK(says(error("run-%z.pb"), "character 5: unknown %z; known are %p, %h, %r, %q{ENV}"));
  CHECK(says(error("x%"), "character 2: nothing after '%'; write %%"));
  CHECK(says(error("%qJOB"), "character 1: %q needs a variable in braces"));
  CHECK(says(error("a%q{JOB"), "character 2: %q needs a variable in braces"));
  CHECK(says(error("%q{}"), "names no variable"));
  CHECK(says(error("%q{NOPE}.pb"), "environment variable NOPE is not set"));
  CHECK(says(error(""), "give a file name"));
  CHECK(says(error("%q{EMPTY}"), "empty"));
  CHECK(expand_output_name("%q{JOB}", {1, "h", -1, nullptr}).error != "");
}
