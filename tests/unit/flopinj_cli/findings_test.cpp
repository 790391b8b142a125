// What the library reads of the findings of flopinj doctor --count.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "catch.h"
#include "doctor_findings.h"

using namespace flopinj;

TEST_CASE("the names in the lists are read") {
  const auto none = parse_findings(R"({"leave_out": [], "use": []})");
  REQUIRE(none);
  CHECK(none->leave_out.empty());
  CHECK_FALSE(none->shows(kRegisters));
  const auto some = parse_findings(
      "{\n \"leave_out\": [\n  \"a.sum\",\n  \"b.sum\"\n ],\n \"use\": [\"registers\"]}");
  REQUIRE(some);
  CHECK(some->leave_out == std::vector<std::string>{"a.sum", "b.sum"});
  CHECK(some->shows(kRegisters));
  CHECK_FALSE(some->shows(kHandedOn));
}

TEST_CASE("a text without a list, or with a part of it, is not understood") {
  const std::string use = R"(, "use": [])";
  for (const char* text :
       {"", "{}", R"({"leave_out": )", R"({"leave_out": ["a")", R"({"leave_out": ["a]})",
        R"({"leave_out": "a"})", R"({"rows": ["leave_out"]})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_findings(use + text));
  }
  CHECK_FALSE(parse_findings(R"({"leave_out": []})"));
}

TEST_CASE("a file that is not there, or too long, is not read") {
  bool understood = false;
  CHECK_FALSE(read_findings("/nonexistent/file.json", understood));
  CHECK(read_findings("/dev/zero", understood));
  CHECK_FALSE(understood);
}

// Opening a FIFO waits for its writer, and reading a terminal for the user.
TEST_CASE("what is no file is not waited for") {
  std::string folder = std::filesystem::temp_directory_path() / "flopinj-findings-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string fifo = folder + "/fifo.json";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  bool understood = true;
  CHECK(read_findings(fifo, understood));
  CHECK_FALSE(understood);
  CHECK(read_findings(folder, understood));
  CHECK_FALSE(understood);
  std::filesystem::remove_all(folder);
}

TEST_CASE("findings of the simulated GPU are not those of the real one") {
  CHECK(findings_name(false, "GH100", 13'000, 130'001) == "GH100-cuda13000-cupti130001.json");
  CHECK(findings_name(true, "GH100", 13'000, 130'001) !=
        findings_name(false, "GH100", 13'000, 130'001));
}
