#include <collector/options/options.h>
#include <injector/process/settings.h>

#include <algorithm>

#include "catch.h"

using namespace flopinj;

namespace {

struct Read {
  Settings settings;
  std::vector<std::string> problems;
};

Read read(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  Read result;
  result.settings = read_settings(environment.data(), result.problems);
  return result;
}

bool mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("an empty environment gives the documented defaults") {
  const auto [s, problems] = read({});
  CHECK(problems.empty());
  CHECK(s.output == "flop-%p.pb");
  CHECK(s.level == Level::kLaunches);
  CHECK(s.mode == Mode::kMultiplex);
  CHECK_FALSE(s.force);
  CHECK(s.flush_ms == 250);
  CHECK(s.plan_wait_ms() == 0);
  CHECK(s.budget_percent == 1);
  CHECK(s.until_covered_percent == 0);
  CHECK(s.measure_ranks.contains(0));
  CHECK_FALSE(s.measure_ranks.contains(1));
}

TEST_CASE("mode full waits for its plan, unless it is told how long") {
  CHECK(read({"FLOPINJ_MODE=full"}).settings.plan_wait_ms() == 60000);
  CHECK(read({"FLOPINJ_MODE=full", "FLOPINJ_PLAN_WAIT_MS=0"}).settings.plan_wait_ms() == 0);
}

TEST_CASE("every variable is read, others are left alone") {
  const auto [s, problems] =
      read({"PATH=/bin", "FLOPINJ_OUTPUT=a=b.pb", "FLOPINJ_LEVEL=tally", "FLOPINJ_MODE=timing",
            "FLOPINJ_FORCE=1", "FLOPINJ_LOG=debug", "FLOPINJ_CUPTI=/x/libcupti.so",
            "FLOPINJ_FLUSH_MS=1000", "FLOPINJ_PLAN_WAIT_MS=60000", "MY_FLOPINJ_OUTPUT=no",
            "FLOPINJ_BUDGET=0.25", "FLOPINJ_UNTIL_COVERED=99.5", "FLOPINJ_MEASURE_RANKS=2",
            "FLOPINJ_NEVER_MEASURE=spin,Wait", "FLOPINJ_LABEL=team=vision,_a1=x=y,none="});
  CHECK(problems.empty());
  CHECK(s.output == "a=b.pb");
  CHECK(s.level == Level::kTally);
  CHECK(s.mode == Mode::kTiming);
  CHECK(s.force);
  CHECK(s.log_level == LogLevel::kDebug);
  CHECK(s.cupti == "/x/libcupti.so");
  CHECK(s.flush_ms == 1000);
  CHECK(s.plan_wait_ms() == 60000);
  CHECK(s.budget_percent == 0.25);
  CHECK(s.until_covered_percent == 99.5);
  CHECK(s.measure_ranks.contains(2));
  CHECK(s.never_measure == std::vector<std::string>{"spin", "Wait"});
  CHECK_FALSE(s.measure_ranks.contains(0));
  using Labels = std::vector<std::pair<std::string, std::string>>;
  CHECK(s.labels == Labels{{"team", "vision"}, {"_a1", "x=y"}, {"none", ""}});
  CHECK(read({"FLOPINJ_BUDGET=none"}).settings.budget_percent == 0);
  CHECK(read({"FLOPINJ_BUDGET=2%"}).settings.budget_percent == 2);
  CHECK(read({"FLOPINJ_MODE=full"}).settings.mode == Mode::kFull);
}

TEST_CASE("a mode has the name it is asked for by") {
  for (const char* name : {"off", "count", "timing", "multiplex", "full"}) {
    const std::string entry = std::string("FLOPINJ_MODE=") + name;
    CHECK(name_of(read({entry.c_str()}).settings.mode) == std::string(name));
  }
}

TEST_CASE("an unknown variable is named with the nearest known one, on one printable line") {
  const auto [s, problems] = read({"FLOPINJ_OUTPT=x", "FLOPINJ_MOD\x1b[31mE=off"});
  REQUIRE(problems.size() == 2);
  CHECK(mentions(problems[0], "did you mean FLOPINJ_OUTPUT?"));
  CHECK_FALSE(mentions(problems[1], "\x1b"));
  CHECK(s.mode == Mode::kMultiplex);
}

TEST_CASE("a value that is not understood is named with what would be, and the default stays") {
  const auto [text, low, high, tail] =
      std::tuple{"FLOPINJ_FLUSH_MS=250ms", "FLOPINJ_FLUSH_MS=9", "FLOPINJ_FLUSH_MS=1001",
                 "FLOPINJ_FLUSH_MS=18446744073709551866"};
  for (const char* entry : {text, low, high, tail, "FLOPINJ_FLUSH_MS=", "FLOPINJ_FLUSH_MS=-250"}) {
    const auto [s, problems] = read({entry});
    INFO(entry);
    REQUIRE(problems.size() == 1);
    CHECK(mentions(problems[0], "milliseconds from 10 to 1000"));
    CHECK(s.flush_ms == 250);
  }
  for (const char* entry : {"FLOPINJ_LEVEL=Launches",   "FLOPINJ_MODE=fast",
                            "FLOPINJ_FORCE=yes",        "FLOPINJ_LOG=loud",
                            "FLOPINJ_OUTPUT=",          "FLOPINJ_CUPTI=",
                            "FLOPINJ_BUDGET=0",         "FLOPINJ_BUDGET=101",
                            "FLOPINJ_BUDGET=-1",        "FLOPINJ_BUDGET=1%%",
                            "FLOPINJ_BUDGET=%",         "FLOPINJ_BUDGET=nan",
                            "FLOPINJ_BUDGET=",          "FLOPINJ_UNTIL_COVERED=none",
                            "FLOPINJ_UNTIL_COVERED=0",  "FLOPINJ_MEASURE_RANKS=",
                            "FLOPINJ_MEASURE_RANKS=0-", "FLOPINJ_NEVER_MEASURE=a,,b",
                            "FLOPINJ_LABEL=",           "FLOPINJ_LABEL=team",
                            "FLOPINJ_LABEL==x",         "FLOPINJ_LABEL=a b=x",
                            "FLOPINJ_LABEL=1a=x",       "FLOPINJ_LABEL=a=x,",
                            "FLOPINJ_LABEL=a=x,,b=y"}) {
    INFO(entry);
    CHECK(read({entry}).problems.size() == 1);
  }
}

TEST_CASE("no setting has a line break in it") {
  for (const RecordingOption& option : recording_options()) {
    const std::string entry = std::string(option.variable) + "=a\nb";
    const auto [settings, problems] = read({entry.c_str()});
    CAPTURE(entry);
    REQUIRE(problems.size() == 1);
    CHECK(mentions(problems[0], "has a line break in it"));
    CHECK_FALSE(mentions(problems[0], "\n"));
    CHECK(settings.output == Settings().output);
  }
}

TEST_CASE("a request sets what loads no code and changes no file, and nothing else") {
  const std::vector<std::string_view> start_only{
      "FLOPINJ_FORCE",      "FLOPINJ_QUIET",         "FLOPINJ_DORMANT", "FLOPINJ_START_AFTER",
      "FLOPINJ_NO_CONTROL", "FLOPINJ_CAPTURE_RANGE", "FLOPINJ_LOG",     "FLOPINJ_CUPTI",
      "FLOPINJ_FINDINGS",   "FLOPINJ_METRICS_FILE",  "FLOPINJ_RUN"};
  for (const RecordingOption& option : recording_options()) {
    CAPTURE(option.variable);
    const bool refused = std::ranges::find(start_only, option.variable) != start_only.end();
    CHECK(option.by_request == !refused);
    Settings settings;
    const std::vector<std::string> request{std::string(option.variable) + "=1"};
    CHECK(mentions(apply_request(settings, request), "in a program that runs") == refused);
  }
}

TEST_CASE("a request adds to the kernels that are never measured, and overwrites nothing") {
  auto settings =
      read({"FLOPINJ_NEVER_MEASURE=spin", "FLOPINJ_FORCE=1", "FLOPINJ_QUIET=0"}).settings;
  const std::vector<std::string> request{"FLOPINJ_NEVER_MEASURE=poll", "FLOPINJ_OUTPUT=x.pb"};
  CHECK(apply_request(settings, request).empty());
  CHECK(settings.never_measure == std::vector<std::string>{"spin", "poll"});
  CHECK_FALSE(settings.force);
  CHECK(settings.quiet);
}
