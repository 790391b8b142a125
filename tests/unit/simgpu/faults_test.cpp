// The list of faults and its parser.
#include "faults/faults.h"

#include <fstream>
#include <sstream>

#include "catch.h"

using simgpu::Faults;

TEST_CASE("faults are a comma list, and each item that is none is reported") {
  std::vector<std::string> complaints;
  const Faults faults = simgpu::parse_faults(
      "oom=3,no_privileges,drop_ranges=5,,drop_activity=x,no_device=1,slow_host,one_group_refused=",
      complaints);
  CHECK(faults.no_privileges);
  CHECK(faults.drop_ranges == 5);
  CHECK(faults.drop_activity == 0);
  CHECK(faults.slow_host == 0);
  CHECK_FALSE(faults.no_device);
  CHECK_FALSE(faults.hardware_busy);
  CHECK(faults.one_group_refused.empty());
  REQUIRE(complaints.size() == 5);
  CHECK(complaints[0] == "SIMGPU_FAULT: 'oom=3' is not a fault; SIMGPU_FAULT=list prints them");
  CHECK(complaints[1] ==
        "SIMGPU_FAULT: 'drop_activity=x' needs a number from 1, as in drop_activity=3");
  CHECK(complaints[2] == "SIMGPU_FAULT: 'no_device=1' takes no number");
  CHECK(complaints[3] == "SIMGPU_FAULT: 'slow_host' needs a number from 1, as in slow_host=3");
  CHECK(complaints[4] == "SIMGPU_FAULT: 'one_group_refused=' needs a METRIC");
  CHECK(simgpu::parse_faults("one_group_refused=dram__", complaints).one_group_refused == "dram__");
}

TEST_CASE("the list has one fault a line, and the parser takes each of them") {
  std::istringstream list(simgpu::list_of_faults());
  size_t faults = 0;
  for (std::string line; std::getline(list, line); ++faults) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
    std::string name = line.substr(0, line.find(' '));
    REQUIRE(line.find_first_not_of(' ', name.size()) != std::string::npos);
    if (const size_t unit = name.find('='); unit != std::string::npos)
      name = name.substr(0, unit) + "=7";
    std::vector<std::string> complaints;
    simgpu::parse_faults(name, complaints);
    CHECK(complaints.empty());
  }
  CHECK(faults > 15);
}

TEST_CASE("the table in docs/safety.md has the left-overs of the list, in its order") {
  std::string wanted;
  for (const simgpu::LeftOver& row : simgpu::left_overs()) {
    std::string functions(row.functions);
    for (size_t at = 0; (at = functions.find(' ', at)) != std::string::npos; at += 4)
      functions.replace(at, 1, "`, `");
    wanted +=
        "- `" + functions + "`: " + std::string(row.when) + "; " + std::string(row.why) + ". ";
  }
  std::ifstream file(SAFETY);
  std::string words, safety;
  while (file >> words) safety += words + " ";
  CHECK(safety.find(wanted + "#") != std::string::npos);  // the next heading
}

TEST_CASE("in a callback functions that synchronise and left-overs are allowed, and no others") {
  CHECK(simgpu::allowed_in_callback("cuCtxSynchronize_v2"));
  CHECK(simgpu::allowed_in_callback("cuStreamGetGreenCtx"));
  CHECK_FALSE(simgpu::allowed_in_callback("cuStreamIsCapturing_ptsz"));
  CHECK_FALSE(simgpu::allowed_in_callback("cuMemGetInfo_v2"));
  CHECK_FALSE(simgpu::allowed_in_callback("cuFuncGetAttribute"));
  CHECK_FALSE(simgpu::allowed_in_callback("cuEvent"));
}

TEST_CASE("the table in the README has the faults of the list, in its order") {
  std::istringstream list(simgpu::list_of_faults());
  std::string wanted;
  for (std::string line; std::getline(list, line);) {
    const size_t end = line.find(' ');
    wanted += "| `" + line.substr(0, end) + "` | " + line.substr(line.find_first_not_of(' ', end)) +
              " |\n";
  }
  std::ifstream file(README);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string readme = text.str();
  const std::string header = "| Fault | Effect |\n|---|---|\n";
  const size_t table = readme.find(header);
  REQUIRE(table != std::string::npos);
  const size_t begin = table + header.size();
  CHECK(readme.substr(begin, readme.find("\n\n", begin) + 1 - begin) == wanted);
}
