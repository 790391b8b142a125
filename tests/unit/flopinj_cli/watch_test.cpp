// What the watcher of a run says when the program has ended.
#include "watch.h"

#include <sys/socket.h>
#include <unistd.h>

#include "abstract_socket.h"
#include "catch.h"
#include "shell_word.h"

using flopinj::RunEvent;
using flopinj::RunRecord;

namespace {

bool nobody(pid_t) { return false; }
bool process_8(pid_t process) { return process == 8; }
bool says(const std::vector<std::string>& lines, const char* words) {
  return lines.size() == 1 && lines[0].find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("Nothing recorded is said unless a process has said why") {
  RunRecord record;
  CHECK(says(record.last_words(nobody), "nothing was recorded"));
  record.take(7, {RunEvent::kRefused, ""});
  CHECK(record.last_words(nobody).empty());
}

TEST_CASE("Without a driver the first words are that there is none") {
  const auto none = [] { return false; };
  const auto there = [] { return true; };
  const auto first = [](const RunRecord& record) { return record.last_words(nobody).at(0); };
  CHECK(first(RunRecord("python", false, none)).starts_with("no NVIDIA driver on this machine"));
  CHECK(says(RunRecord("python", false, none).last_words(nobody), "flopinj run --simulate"));
  CHECK(says(RunRecord("python", false, there).last_words(nobody), "may clear its environment"));
  // The simulated GPU needs none, and no environment is to blame where PyTorch does not run on it.
  for (const auto driver : {+none, +there}) {
    CHECK(says(RunRecord("python", true, driver).last_words(nobody),
               "PyTorch, JAX, CuPy) need a GPU"));
    CHECK(first(RunRecord("python", true, driver)).find("environment") == std::string::npos);
  }
  RunRecord said("python", false, none);
  said.take(7, {RunEvent::kRefused, ""});
  CHECK(said.last_words(nobody).empty());
}

TEST_CASE("Nothing recorded here may be recorded where a launcher starts processes") {
  const auto none = [] { return false; };
  for (const char* launcher : {"srun", "/usr/bin/mpirun"}) {
    RunRecord record(launcher, false, none);
    CHECK(says(record.last_words(nobody), "nothing was recorded on this machine"));
    CHECK(says(record.last_words(nobody), "run flopinj run -- PROGRAM"));
    record.take(7, {RunEvent::kRecording, "/t/a.pb"});
    record.take(7, {RunEvent::kEnded, "/t/a.pb"});
    CHECK(record.last_words(nobody).empty());
  }
}

TEST_CASE("A process that waited in vain is no process without CUDA") {
  RunRecord record;
  record.take(7, {RunEvent::kWaiting, ""});
  CHECK(says(record.last_words(nobody), "nobody asked for it"));
  record.take(7, {RunEvent::kRecording, "/t/a.pb"});
  record.take(7, {RunEvent::kEnded, "/t/a.pb"});
  CHECK(record.last_words(nobody).empty());
}

TEST_CASE("A trace that was closed needs no word") {
  RunRecord record;
  record.take(7, {RunEvent::kRecording, "/t/a.pb"});
  record.take(7, {RunEvent::kEnded, "/t/a.pb"});
  CHECK(record.last_words(nobody).empty());
}

TEST_CASE("A trace that could not be written to its end is named, and nothing claimed of it") {
  RunRecord record;
  record.take(7, {RunEvent::kRecording, "/t/a.pb"});
  record.take(7, {RunEvent::kCut, "/t/a.pb"});
  for (const auto runs : {nobody, process_8}) {
    const auto lines = record.last_words(runs);
    REQUIRE(lines.size() == 1);
    CHECK(says(lines, "could not write the trace to the end, as said before"));
    CHECK(
        says(lines, "after the last packet of the trace are not in it. Next: flopinj report /t/a"));
  }
}

TEST_CASE("Traces that were not closed are named, by what became of their processes") {
  RunRecord record;
  record.take(7, {RunEvent::kRecording, "/t/a b.pb"});
  CHECK(says(record.last_words(nobody), "a process ended without closing the trace"));
  CHECK(says(record.last_words(nobody), "Next: flopinj report '/t/a b.pb'"));
  record.take(8, {RunEvent::kRecording, "/t/b.pb"});
  CHECK(says(record.last_words(nobody), "2 processes ended"));
  const auto both = record.last_words(process_8);
  REQUIRE(both.size() == 2);
  CHECK(both[1] == "a process of this run goes on, and records to /t/b.pb");
}

TEST_CASE("A process that became another program has left its first trace open") {
  RunRecord record;
  record.take(7, {RunEvent::kRecording, "/t/a.pb"});
  record.take(7, {RunEvent::kRecording, "/t/a.2.pb"});
  record.take(7, {RunEvent::kEnded, "/t/a.2.pb"});
  CHECK(says(record.last_words(nobody), "Next: flopinj report /t/a.pb"));
}

TEST_CASE("A refusal after the trace was opened leaves nothing to say") {
  RunRecord record;
  record.take(7, {RunEvent::kRecording, "/t/a.pb"});
  record.take(7, {RunEvent::kRefused, ""});
  CHECK(record.last_words(nobody).empty());
}

TEST_CASE("Notices are read back as they were written, and nothing else is one") {
  const auto notice = flopinj::parse_run_notice(flopinj::text_of({RunEvent::kEnded, "/t/a.pb"}));
  REQUIRE(notice);
  CHECK(notice->event == RunEvent::kEnded);
  CHECK(notice->trace == "/t/a.pb");
  CHECK_FALSE(flopinj::parse_run_notice(""));
  CHECK_FALSE(flopinj::parse_run_notice("hello"));
}

TEST_CASE("A notice without the secret of the run is not heard") {
  flopinj::RunSocket socket;
  RunRecord record;
  const std::string name = socket.name().substr(0, socket.name().find(':'));
  REQUIRE(name.size() < socket.name().size());
  for (const std::string& place : {name, name + ":", name + ":0.0.0.0."})
    flopinj::send_run_notice(place, {RunEvent::kRecording, "/t/a.pb"});
  sockaddr_un address;
  const socklen_t size = flopinj::abstract_address(name, address);
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  CHECK(::sendto(fd, "r/t/a.pb", 8, 0, reinterpret_cast<const sockaddr*>(&address), size) == 8);
  ::close(fd);
  socket.receive(record);
  CHECK(record.traces(nobody).empty());
  flopinj::send_run_notice(socket.name(), {RunEvent::kRecording, "/t/b.pb"});
  socket.receive(record);
  CHECK(record.traces(nobody) == std::vector<std::string>{"/t/b.pb"});
}

TEST_CASE("A word is quoted only where a shell would read it otherwise") {
  CHECK(flopinj::shell_quoted("/opt/a-b_c.d:e=f,%p@1") == "/opt/a-b_c.d:e=f,%p@1");
  CHECK(flopinj::shell_quoted("") == "''");
  CHECK(flopinj::shell_quoted("a b") == "'a b'");
  CHECK(flopinj::shell_quoted("$x`y`\\") == "'$x`y`\\'");
  CHECK(flopinj::shell_quoted("~") == "'~'");
  CHECK(flopinj::shell_quoted("%q{A}") == "'%q{A}'");
}

TEST_CASE("A pattern keeps its star outside of quotes") {
  CHECK(flopinj::shell_quoted("/t/job.rank*.pb", "*") == "/t/job.rank*.pb");
  CHECK(flopinj::shell_quoted("/a b/job.rank*.pb", "*") == "'/a b/job.rank'*'.pb'");
  CHECK(flopinj::shell_quoted("*", "") == "'*'");
  CHECK(flopinj::shell_quoted("", "*") == "''");
  CHECK(flopinj::shell_quoted("it's") == "'it'\\''s'");
}
