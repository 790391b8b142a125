// flopinj: exit codes and error lines for what is wrong.
#include <algorithm>
#include <fstream>

#include "catch.h"
#include "program.h"

namespace fs = std::filesystem;

namespace {

void check_one_error_line(const Outcome& outcome, int exit_code, const std::string& words) {
  INFO(outcome.err);
  CHECK(outcome.exit_code == exit_code);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("flopinj: "));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("A program that cannot start gives the shell's exit codes") {
  const InstalledTree tree;
  check_one_error_line(tree.run({"run", "--", "no-such-program"}), 127, "no-such-program");
  std::ofstream(tree.temporary() / "notes.txt") << "not a program\n";
  check_one_error_line(tree.run({"run", "--", "./notes.txt"}), 126, "notes.txt");
  check_one_error_line(tree.run({"run", "--", "/"}), 126, "'/'");
}

TEST_CASE("Wrong options are usage errors, told in one line, and nothing runs") {
  const InstalledTree tree;
  check_one_error_line(tree.run({}), 2, "--help");
  check_one_error_line(tree.run({"frobnicate"}), 2, "--help");
  check_one_error_line(tree.run({"run"}), 2, "no program");
  check_one_error_line(tree.run({"run", "--"}), 2, "no program");
  check_one_error_line(tree.run({"run", "--bogus", "--", "echo", "x"}), 2, "--bogus");
  check_one_error_line(tree.run({"run", "--level", "some", "--", "echo", "x"}), 2, "--level");
  check_one_error_line(tree.run({"run", "--mode", "fast", "--", "echo", "x"}), 2, "--mode");
  check_one_error_line(tree.run({"run", "--budget", "0", "--", "echo", "x"}), 2, "--budget");
  check_one_error_line(tree.run({"run", "--budget", "101%", "--", "echo", "x"}), 2, "--budget");
  check_one_error_line(tree.run({"run", "--until-covered", "101", "--", "echo", "x"}), 2,
                       "--until-covered");
  check_one_error_line(tree.run({"run", "--measure-ranks", "5-3", "--", "echo", "x"}), 2,
                       "--measure-ranks");
  check_one_error_line(tree.run({"run", "--never-measure", "a,", "--", "echo", "x"}), 2,
                       "--never-measure");
  check_one_error_line(tree.run({"run", "--flush-ms", "-1", "--", "echo", "x"}), 2, "--flush-ms");
  check_one_error_line(tree.run({"run", "--sim-devices", "2", "--", "echo", "x"}), 2, "--simulate");
  check_one_error_line(tree.run({"run", "--simulate", "--sim-devices", "17", "--", "echo", "x"}), 2,
                       "--sim-devices");
  check_one_error_line(tree.run({"run", "-o", "", "--", "echo", "x"}), 2, "output");
  check_one_error_line(tree.run({"run", "-o", "a%z.pb", "--", "echo", "x"}), 2, "%z");
  check_one_error_line(tree.run({"run", "-o", "%q{}", "--", "echo", "x"}), 2, "%q");
  check_one_error_line(tree.run({"run", "-o", "%q{NOT_SET}", "--", "echo", "x"}), 2, "NOT_SET");
  check_one_error_line(tree.run({"doctor", "--", "echo", "x"}), 2,
                       "only run takes a program: flopinj run -- echo x (see");
}

TEST_CASE("Words that lack their command are told it") {
  const InstalledTree tree;
  check_one_error_line(tree.run({"echo", "a b"}), 2, "Did you mean: flopinj run -- echo 'a b'");
  check_one_error_line(tree.run({"/bin/sh", "-c", "x"}), 2, "flopinj run -- /bin/sh -c x");
  std::ofstream(tree.temporary() / "t.pb") << "a trace\n";
  check_one_error_line(tree.run({"t.pb"}), 2, "Did you mean: flopinj report t.pb");
}

TEST_CASE("Words of other tools are answered with the command that is meant") {
  const InstalledTree tree;
  const auto meant = [&](const std::vector<std::string>& words, const std::string& said) {
    check_one_error_line(tree.run(words), 2, "Did you mean: " + said + "\n");
  };
  meant({"record", "--", "python", "train.py"}, "flopinj run -- python train.py");
  meant({"profile", "python", "a b.py"}, "flopinj run -- python 'a b.py'");
  meant({"train.py", "--lr", "1"}, "flopinj run -- python train.py --lr 1");
  meant({"html", "t.pb"}, "flopinj report --format html -o report.html t.pb");
  meant({"diff", "a.pb", "b.pb"}, "flopinj compare a.pb b.pb");
  meant({"stop", "4711"}, "flopinj detach 4711");
  check_one_error_line(tree.run({"run", "train.py"}), 127,
                       "Did you mean: flopinj run -- python train.py");
}

TEST_CASE("Who names no process is asked for it, and none is touched") {
  const InstalledTree tree;
  for (const char* command : {"attach", "detach"})
    check_one_error_line(tree.run({command}), 1, "which process?");
  check_one_error_line(tree.run({"detach", "1", "2"}), 2, "detach");
}

TEST_CASE("An incomplete installation is named") {
  const InstalledTree tree;
  fs::remove(tree.simgpu() / "libcuda.so.1");
  check_one_error_line(tree.run({"run", "--simulate", "--", "echo", "x"}), 125, "libcuda.so.1");
  fs::remove(tree.library());
  check_one_error_line(tree.run({"run", "--", "echo", "x"}), 125, "libflopinj.so");
}

TEST_CASE("A tree whose path the dynamic loader would split cannot be preloaded or simulated") {
  const InstalledTree tree("a:b");
  check_one_error_line(tree.run({"run", "--preload", "--", "echo", "x"}), 2, "--preload");
  check_one_error_line(tree.run({"run", "--simulate", "--", "echo", "x"}), 2, "--simulate");
  CHECK(tree.run({"run", "--", "echo", "x"}).out == "x\n");
}

TEST_CASE("Help and version go to stdout") {
  const InstalledTree tree;
  CHECK(tree.run({"--version"}).out.starts_with("flopinj "));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"doctor", "--help"}}) {
    const Outcome outcome = tree.run(arguments);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out.find("Usage: flopinj") != std::string::npos);
  }
}

TEST_CASE("doctor says what is wrong and what to do") {
  const InstalledTree tree;
  const std::string simulated = "LD_LIBRARY_PATH=" + tree.simgpu().string();
  const Outcome outcome = tree.run({"doctor"}, {simulated, "FLOPINJ_CUPTI=/no/libcupti.so"});
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.empty());
  CHECK(has_line(outcome.out, "ok    libflopinj.so: " + tree.library().string()));
  CHECK(outcome.out.find("FAIL  CUDA driver") != std::string::npos);  // libcuda.so.1 is empty
  CHECK(has_line(outcome.out, "      Mend or unset FLOPINJ_CUPTI."));
  CHECK(outcome.out.find(" nccl ") != std::string::npos);  // never measured

  fs::remove(tree.library());
  CHECK(tree.run({"doctor"}).out.find("FAIL  libflopinj.so") != std::string::npos);
}
