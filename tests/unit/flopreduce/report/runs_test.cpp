// Which recordings are of one run: by hand, from what processes of real launchers look like.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
namespace trace = flopinj::trace;

namespace {

constexpr uint64_t kSecond = 1'000'000'000, kBegin = 1'777'593'600 * kSecond;  // 2026-05-01

struct Process {
  int32_t rank = -1;
  uint64_t begin_s = 0, length_s = 10;  // length 0: it was killed, and nothing says when
  std::string job = {}, host = "node", command = "python train.py";
  uint32_t pid = 0, world_size = 0, requeues = 0, restarts = 0;
  uint64_t run_id = 0;
};

std::string trace_of(uint64_t session, const Process& process) {
  TraceBuilder t;
  trace::TracePacket header;
  auto& h = *header.mutable_header();
  h.set_format_major(1);
  h.set_session_id(session);
  h.set_pid(process.pid != 0 ? process.pid : static_cast<uint32_t>(session));
  h.set_hostname(process.host);
  h.set_rank(process.rank);
  h.set_world_size(process.world_size);
  h.set_job_id(process.job);
  h.set_requeues(process.requeues);
  h.set_restarts(process.restarts);
  h.set_run_id(process.run_id);
  h.add_command_line(process.command);
  h.set_clock_trace_ns(7);
  h.set_clock_realtime_ns(kBegin + process.begin_s * kSecond);
  t.add(header);
  if (process.length_s != 0) {
    trace::TracePacket end;
    end.mutable_end()->set_reason(trace::End::EXIT);
    end.mutable_end()->set_time_ns(7 + process.length_s * kSecond);
    t.add(end);
  }
  return t.bytes();
}

Report report_of(const std::vector<Process>& processes) {
  std::vector<std::string> traces;
  for (const Process& p : processes) traces.push_back(trace_of(traces.size() + 1, p));
  return reduce_bytes(traces);
}

// The sessions, from 1 on as the processes are given, of each run.
std::vector<std::vector<uint64_t>> runs_of(const std::vector<Process>& processes) {
  const Report report = report_of(processes);
  std::vector<std::vector<uint64_t>> runs;
  for (const RunReport& run : report.runs) {
    auto& sessions = runs.emplace_back();
    for (const size_t trace : run.traces) {
      sessions.push_back(report.traces[trace].header.session_id());
      CHECK(report.traces[trace].run == runs.size() - 1);
    }
    std::sort(sessions.begin(), sessions.end());
  }
  return runs;
}

using Runs = std::vector<std::vector<uint64_t>>;

}  // namespace

TEST_CASE("runs: ranks of one job are one run, whenever each was recorded") {
  CHECK(runs_of({{.rank = 0, .job = "17"}, {.rank = 1, .begin_s = 900'000, .job = "17"}}) ==
        Runs{{1, 2}});
  CHECK(runs_of({{.rank = 0}, {.rank = 1, .begin_s = 300, .host = "other"}}) == Runs{{1, 2}});
}

TEST_CASE("runs: two processes of one rank are two runs") {
  CHECK(runs_of({{.rank = 0, .begin_s = 100},
                 {.rank = 1, .begin_s = 101},
                 {.rank = 0},
                 {.rank = 1, .begin_s = 1}}) == Runs{{3, 4}, {1, 2}});
  // A job that a scheduler started again, with its id.
  CHECK(runs_of({{.rank = 0, .job = "17"}, {.rank = 0, .begin_s = 100, .job = "17"}}) ==
        Runs{{1}, {2}});
}

TEST_CASE("runs: without rank and job, one after another is two runs, side by side is one") {
  CHECK(runs_of({{}, {.begin_s = 100}}) == Runs{{1}, {2}});
  CHECK(runs_of({{}, {.begin_s = 5}}) == Runs{{1, 2}});
  CHECK(runs_of({{}, {.begin_s = 5, .host = "other"}}) == Runs{{1}, {2}});
  // Of a killed process nobody knows when it ended.
  CHECK(runs_of({{.length_s = 0}, {.begin_s = 100}}) == Runs{{1, 2}});
}

TEST_CASE("runs: a job without ranks is one run on a host, and where its processes ran together") {
  CHECK(runs_of({{.job = "17"}, {.begin_s = 100, .job = "17"}}) == Runs{{1, 2}});
  CHECK(runs_of({{.job = "17"}, {.begin_s = 5, .job = "17", .host = "b"}}) == Runs{{1, 2}});
  CHECK(runs_of({{.job = "17"}, {.begin_s = 100, .job = "17", .host = "b"}}) == Runs{{1}, {2}});
}

TEST_CASE("runs: other jobs and other world sizes are other runs") {
  CHECK(runs_of({{.rank = 0, .job = "17"}, {.rank = 1, .job = "18"}}) == Runs{{1}, {2}});
  CHECK(runs_of({{.rank = 0, .job = "17"}, {.rank = 1}}) == Runs{{1}, {2}});
  CHECK(runs_of({{.rank = 0, .world_size = 2}, {.rank = 1, .world_size = 4}}) == Runs{{1}, {2}});
}

TEST_CASE("runs: ranks without a job, hours apart, are two") {
  CHECK(runs_of({{.rank = 0}, {.rank = 1, .begin_s = 7200}}) == Runs{{1}, {2}});
}

TEST_CASE("runs: a process that was attached to twice is one run, its id used again is not") {
  CHECK(runs_of({{.pid = 5}, {.begin_s = 100, .pid = 5}}) == Runs{{1, 2}});
  CHECK(runs_of({{.rank = 3, .pid = 5}, {.rank = 3, .begin_s = 100, .pid = 5}}) == Runs{{1, 2}});
  CHECK(runs_of({{.pid = 5}, {.begin_s = 100, .command = "python other.py", .pid = 5}}) ==
        Runs{{1}, {2}});
}

TEST_CASE("runs: of two at once the program decides which rank is whose") {
  CHECK(runs_of({{.rank = 0, .command = "a"},
                 {.rank = 0, .command = "b"},
                 {.rank = 1, .command = "b"},
                 {.rank = 1, .command = "a"}}) == Runs{{1, 4}, {2, 3}});
}

TEST_CASE("runs: a header that is lost, or has no time, makes no run of its own") {
  TraceBuilder lost = started(9);
  CHECK(runs_of({}).empty());
  const Report report = reduce_bytes({trace_of(1, {}), lost.bytes()});
  CHECK(report.runs.size() == 1);
}

TEST_CASE("runs: several are said first, with what is whose; one is not mentioned") {
  const Report two = report_of({{.command = "train.py --lr 1"},
                                {.begin_s = 100, .job = "17", .command = "train.py --lr 2"}});
  const nlohmann::json json = json_of(two);
  const std::string said = json["notices"][0]["notice"];
  CHECK(said.starts_with("These traces are of 2 runs, and every figure is of all of them "));
  CHECK(said.find("give its traces only") != std::string::npos);
  CHECK(said.find("1: train.py --lr 1 (2026-05-01 00:00:00 UTC, node): trace0") !=
        std::string::npos);
  CHECK(said.find("2: train.py --lr 2 (job 17, 2026-05-01 00:01:40 UTC, node): trace1") !=
        std::string::npos);
  REQUIRE(json["runs"].size() == 2);
  CHECK(json["runs"][0]["job_id"].is_null());
  CHECK(json["runs"][1]["job_id"] == "17");
  CHECK(json["runs"][1]["begin_ns"] == std::to_string(kBegin + 100 * kSecond));
  CHECK(json["runs"][1]["processes"] == 1);
  CHECK(json["processes"][0]["run"] == json["runs"][0]["run"]);
  CHECK(json["processes"][1]["run"] == json["runs"][1]["run"]);
  CHECK(text_of(two).find("These traces are of 2 runs") < text_of(two).find("FLOP of"));

  const nlohmann::json one = json_of(report_of({{.rank = 0}, {.rank = 1}}));
  CHECK(one["runs"].size() == 1);
  CHECK(one["notices"].dump().find("runs") == std::string::npos);
}

TEST_CASE("runs: other programs side by side are said, children of multiprocessing are not") {
  const auto notice = [](const std::string& other) {
    return json_of(report_of({{}, {.begin_s = 1, .command = other}}))["notices"].dump();
  };
  CHECK(notice("python other.py").find("of 2 programs that ran together") != std::string::npos);
  CHECK(notice("python train.py").find("programs") == std::string::npos);
  CHECK(notice("python -c from multiprocessing.spawn import spawn_main").find("programs") ==
        std::string::npos);
}

TEST_CASE("runs: a summary of all of them says the same") {
  const std::vector<Process> processes = {{}, {.begin_s = 100}, {.rank = 0, .begin_s = 200}};
  std::vector<Named> inputs;
  for (const Process& p : processes) inputs.push_back({"t", trace_of(inputs.size() + 1, p)});
  const Report report = reduce_bytes({merge_bytes(inputs).bytes});
  CHECK(report.runs.size() == 3);
  CHECK(runs_of(processes).size() == 3);
}

TEST_CASE("runs: what was started again is another run") {
  CHECK(runs_of({{.job = "17"}, {.begin_s = 100, .job = "17", .requeues = 1}}) == Runs{{1}, {2}});
  CHECK(runs_of({{.rank = 0, .job = "17"},
                 {.rank = 1, .job = "17"},
                 {.rank = 1, .begin_s = 5, .job = "17", .restarts = 1},
                 {.rank = 0, .begin_s = 6, .job = "17", .restarts = 1}}) == Runs{{1, 2}, {3, 4}});
}

TEST_CASE("runs: what one flopinj run started is one run, whenever it ran") {
  CHECK(runs_of({{.run_id = 1}, {.begin_s = 100, .command = "b", .run_id = 1}}) == Runs{{1, 2}});
  CHECK(runs_of({{.run_id = 1}, {.begin_s = 5, .run_id = 2}}) == Runs{{1}, {2}});
  // Of a job without ranks each process may have a flopinj run of its own.
  CHECK(runs_of({{.job = "17", .run_id = 1}, {.begin_s = 5, .job = "17", .run_id = 2}}) ==
        Runs{{1, 2}});
  CHECK(runs_of({{.job = "17", .run_id = 1}, {.begin_s = 100, .job = "17", .run_id = 2}}) ==
        Runs{{1}, {2}});
  // So it is with ranks, which launchers start.
  CHECK(runs_of({{.rank = 0, .run_id = 1}, {.rank = 1, .begin_s = 100, .run_id = 2}}) ==
        Runs{{1, 2}});
}
