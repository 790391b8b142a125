// What the library reads of the findings of flopinj doctor --count.
#include "catch.h"
#include "doctor_findings.h"

using namespace flopinj;

TEST_CASE("the names in the list are read") {
  CHECK(parse_findings(R"({"leave_out": []})").understood);
  CHECK(parse_findings(R"({"leave_out": []})").leave_out.empty());
  const Findings two =
      parse_findings("{\n \"leave_out\": [\n  \"a.sum\",\n  \"b.sum\"\n ],\n \"rows\": []}");
  CHECK(two.understood);
  CHECK(two.leave_out == std::vector<std::string>{"a.sum", "b.sum"});
}

TEST_CASE("a text without the list, or with a part of it, is not understood") {
  for (const char* text :
       {"", "{}", R"({"leave_out": )", R"({"leave_out": ["a")", R"({"leave_out": ["a]})",
        R"({"leave_out": "a"})", R"({"rows": ["leave_out"]})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_findings(text).understood);
    CHECK(parse_findings(text).leave_out.empty());
  }
}

TEST_CASE("what is not there, or too long, is not read") {
  CHECK_FALSE(read_findings("/nonexistent/file.json"));
  CHECK_FALSE(read_findings("/dev/zero")->understood);
}

TEST_CASE("findings of the simulated GPU are not those of the real one") {
  CHECK(findings_name(false, "GH100", 13'000, 130'001) == "GH100-cuda13000-cupti130001.json");
  CHECK(findings_name(true, "GH100", 13'000, 130'001) !=
        findings_name(false, "GH100", 13'000, 130'001));
}
