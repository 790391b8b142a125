// flopinj run: what the program gets to see.
#include <csignal>
#include <fstream>

#include "catch.h"
#include "program.h"

namespace fs = std::filesystem;

TEST_CASE("run becomes the program: exit code, signal and process id are its own") {
  const InstalledTree tree;
  CHECK(tree.run({"run", "--", "sh", "-c", "exit 37"}).exit_code == 37);
  CHECK(tree.run({"run", "--", "sh", "-c", "kill -TERM $$"}).signal == SIGTERM);
  const Outcome outcome = tree.run({"run", "--", "sh", "-c", "echo $$"});
  CHECK(outcome.out == std::to_string(outcome.pid) + "\n");
}

TEST_CASE("run gives CUDA and NVTX the same absolute real path") {
  const InstalledTree tree;
  const std::string path = tree.library().string();
  const Outcome outcome = tree.run({"run", "--", "env"});
  CHECK(has_line(outcome.out, "CUDA_INJECTION64_PATH=" + path));
  CHECK(has_line(outcome.out, "NVTX_INJECTION64_PATH=" + path));

  SECTION("also when the program is called through symbolic links") {
    fs::create_symlink(tree.root(), tree.temporary() / "link");
    fs::create_symlink(tree.program(), tree.temporary() / "profiler");
    for (const char* name : {"link/bin/flopinj", "profiler"}) {
      const Outcome linked =
          run_program(tree.temporary() / name, {"run", "--", "env"}, {}, tree.temporary());
      CHECK(has_line(linked.out, "CUDA_INJECTION64_PATH=" + path));
    }
  }
  SECTION("and after the tree was moved") {
    fs::rename(tree.root(), tree.temporary() / "moved");
    const Outcome moved = run_program(tree.temporary() / "moved/bin/flopinj", {"run", "--", "env"},
                                      {}, tree.temporary());
    CHECK(has_line(moved.out, "CUDA_INJECTION64_PATH=" +
                                  (tree.temporary() / "moved/lib/libflopinj.so").string()));
  }
}

TEST_CASE("run makes the output name absolute and leaves its patterns alone") {
  const InstalledTree tree;
  const std::string folder = tree.temporary().string();
  const std::vector<std::pair<std::string, std::string>> names = {
      {"a-%p-%h-%r-%q{PATH}.pb", folder + "/a-%p-%h-%r-%q{PATH}.pb"},
      {"/tmp/%p.pb", "/tmp/%p.pb"},
      {"-", "-"},
      {"unix:/run/s", "unix:/run/s"},
      {"unix:s", "unix:" + folder + "/s"}};
  for (const auto& [name, expected] : names) {
    CHECK(has_line(tree.run({"run", "-o", name, "--", "env"}).out, "FLOPINJ_OUTPUT=" + expected));
  }
  CHECK(has_line(tree.run({"run", "--", "env"}).out, "FLOPINJ_OUTPUT=" + folder + "/flop-%p.pb"));
}

TEST_CASE("run turns options into variables, and sets none that was not asked for") {
  const InstalledTree tree;
  const std::string plain = tree.run({"run", "--", "env"}).out;
  for (const char* name : {"LEVEL", "MODE", "FORCE", "LOG", "CUPTI", "FLUSH_MS", "PLAN_WAIT_MS",
                           "BUDGET", "UNTIL_COVERED", "MEASURE_RANKS", "NEVER_MEASURE"}) {
    CHECK(plain.find(std::string("FLOPINJ_") + name) == std::string::npos);
  }
  CHECK(plain.find("LD_") == std::string::npos);
  CHECK(plain.find("SIMGPU_") == std::string::npos);

  const fs::path cupti = tree.temporary() / "lib" / "libcupti.so.12";
  fs::create_directories(cupti.parent_path());
  std::ofstream(cupti).close();
  const std::string all = tree.run({"run",
                                    "--level",
                                    "tally",
                                    "--mode=timing",
                                    "--force",
                                    "--log-level",
                                    "debug",
                                    "--flush-ms",
                                    "250",
                                    "--plan-wait-ms=5000",
                                    "--cupti",
                                    "lib/libcupti.so.12",
                                    "--budget=0.5",
                                    "--until-covered",
                                    "99",
                                    "--measure-ranks=0,8-15",
                                    "--never-measure",
                                    "spin,wait",
                                    "--never-measure=hold",
                                    "--label=team=vision",
                                    "--label",
                                    "model=a=b",
                                    "--",
                                    "env"})
                              .out;
  CHECK(has_line(all, "FLOPINJ_LEVEL=tally"));
  CHECK(has_line(all, "FLOPINJ_MODE=timing"));
  CHECK(has_line(all, "FLOPINJ_FORCE=1"));
  CHECK(has_line(all, "FLOPINJ_QUIET=0"));
  CHECK(has_line(tree.run({"run", "--quiet", "--", "env"}).out, "FLOPINJ_QUIET=1"));
  CHECK(has_line(all, "FLOPINJ_LOG=debug"));
  CHECK(has_line(all, "FLOPINJ_FLUSH_MS=250"));
  CHECK(has_line(all, "FLOPINJ_BUDGET=0.5"));
  CHECK(has_line(all, "FLOPINJ_UNTIL_COVERED=99"));
  CHECK(has_line(all, "FLOPINJ_MEASURE_RANKS=0,8-15"));
  CHECK(has_line(all, "FLOPINJ_NEVER_MEASURE=spin,wait,hold"));
  CHECK(has_line(all, "FLOPINJ_LABEL=team=vision,model=a=b"));
  CHECK(has_line(tree.run({"run", "--budget", "none", "--mode", "full", "--", "env"}).out,
                 "FLOPINJ_BUDGET=none"));
  CHECK(has_line(all, "FLOPINJ_PLAN_WAIT_MS=5000"));
  CHECK(has_line(all, "FLOPINJ_CUPTI=" + cupti.string()));
  CHECK(has_line(all, "LD_PRELOAD=" + cupti.string()));
  const std::string named = tree.run({"run", "--cupti", "libcupti.so.12", "--", "env"}).out;
  CHECK(has_line(named, "FLOPINJ_CUPTI=libcupti.so.12"));
  CHECK(has_line(named, "LD_PRELOAD=libcupti.so.12"));
}

TEST_CASE("run keeps what LD_LIBRARY_PATH and LD_PRELOAD held") {
  const InstalledTree tree;
  const std::string simgpu = tree.simgpu().string();
  const std::vector<std::string> simulate = {
      "run", "--simulate", "--sim-devices", "2", "--sim-chip=GA100", "--", "env"};
  CHECK(has_line(tree.run(simulate).out, "LD_LIBRARY_PATH=" + simgpu));
  CHECK(has_line(tree.run(simulate).out, "SIMGPU_DEVICES=2"));
  CHECK(has_line(tree.run(simulate).out, "SIMGPU_CHIP=GA100"));
  CHECK(has_line(tree.run(simulate).out, "FLOPINJ_MODE=full"));
  CHECK(has_line(tree.run(simulate).out, "FLOPINJ_PLAN_WAIT_MS=60000"));
  CHECK(has_line(tree.run(simulate, {"FLOPINJ_MODE=multiplex"}).out, "FLOPINJ_MODE=multiplex"));
  CHECK(has_line(tree.run(simulate, {"LD_LIBRARY_PATH="}).out, "LD_LIBRARY_PATH=" + simgpu));
  CHECK(has_line(tree.run(simulate, {"LD_LIBRARY_PATH=/a:/b"}).out,
                 "LD_LIBRARY_PATH=" + simgpu + ":/a:/b"));

  const std::vector<std::string> preload = {"run", "--preload", "--", "env"};
  CHECK(has_line(tree.run(preload).out, "LD_PRELOAD=" + tree.library().string()));
#ifndef __SANITIZE_ADDRESS__  // its runtime refuses to start a program behind a preloaded library
  const std::string other = (tree.temporary() / "other.so").string();
  fs::copy_file(STAND_IN, other);
  CHECK(has_line(tree.run(preload, {"LD_PRELOAD=" + other}).out,
                 "LD_PRELOAD=" + tree.library().string() + ":" + other));
#endif
}

TEST_CASE("run passes the program's arguments through as they are") {
  const InstalledTree tree;
  const std::string expected = "-o\nx y\n--\n--force\n\n";
  CHECK(tree.run({"run", "--", "printf", "%s\\n", "-o", "x y", "--", "--force", ""}).out ==
        expected);
  CHECK(tree.run({"run", "printf", "%s\\n", "-o", "x y", "--", "--force", ""}).out == expected);
  CHECK(tree.run({"run", "-o", "a.pb", "printf", "%s\\n", "run", "doctor"}).out == "run\ndoctor\n");
}

TEST_CASE("run says in one line that it replaces another tool's injection") {
  const InstalledTree tree;
  const Outcome outcome = tree.run({"run", "--", "env"}, {"CUDA_INJECTION64_PATH=/opt/other.so"});
  CHECK(has_line(outcome.err,
                 "flopinj: CUDA_INJECTION64_PATH was /opt/other.so; replaced for this run"));
  CHECK(has_line(outcome.out, "CUDA_INJECTION64_PATH=" + tree.library().string()));
  const Outcome own = run_program(
      tree.program(),
      {"run", "-q", "--", "sh", "-c", "exec \"$1\" run -q -- true", "sh", tree.program().string()},
      {}, tree.temporary());  // a run inside of a run
  CHECK(own.exit_code == 0);
  CHECK(own.err == "");
}

TEST_CASE("run --print-env prints lines that a shell understands") {
  const InstalledTree tree("it's a tree");  // a quote and blanks in every path
  const Outcome printed =
      tree.run({"run", "--print-env", "--simulate", "--level", "tally", "-o", "$HOME `x` %p.pb"});
  REQUIRE(printed.exit_code == 0);
  CHECK(printed.err.empty());
  std::ofstream(tree.temporary() / "job.sh") << printed.out << "env\n";

  const Outcome job =
      run_program("/bin/sh", {"job.sh"}, {"LD_LIBRARY_PATH=/a b"}, tree.temporary());
  CHECK(has_line(job.out, "CUDA_INJECTION64_PATH=" + tree.library().string()));
  CHECK(has_line(job.out, "FLOPINJ_OUTPUT=" + tree.temporary().string() + "/$HOME `x` %p.pb"));
  CHECK(has_line(job.out, "LD_LIBRARY_PATH=" + tree.simgpu().string() + ":/a b"));
  const Outcome bare = run_program("/bin/sh", {"job.sh"}, {}, tree.temporary());
  CHECK(has_line(bare.out, "LD_LIBRARY_PATH=" + tree.simgpu().string()));
}
