// A first look: nothing to compile, no GPU, no program of one's own.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "commands.h"
#include "job_launchers.h"
#include "process.h"
#include "reducer.h"
#include "running/control_client.h"

namespace flopinj {
namespace {

// Small enough that a small network keeps it busy (tools/simgpu/README.md).
constexpr const char* kDemoChip = "SG4";
constexpr const char* kDemoTrace = "flopinj-demo.pb";
constexpr const char* kDemoPage = "flopinj-demo.html";
constexpr double kDemoLaunches = 2120;

// How much of its work the program has done; 0 where it does not say.
double share_done(pid_t program) {
  try {
    const nlohmann::json status = ask(program, {"status"});
    return std::min(1.0, status.value("launches", 0.0) / kDemoLaunches);
  } catch (const std::exception&) {  // it begins, or ends
    return 0;
  }
}

// wait_for(), and a terminal sees how far the program is, as its steps are alike.
int wait_and_show(pid_t program) {
  if (::isatty(STDERR_FILENO) == 0) return wait_for(program);
  using Seconds = std::chrono::duration<double>;
  const auto began = std::chrono::steady_clock::now();
  int status = 0;
  for (pid_t ended = 0; ended != program; ended = ::waitpid(program, &status, WNOHANG)) {
    if (ended < 0 && errno != EINTR) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double took_s = Seconds(std::chrono::steady_clock::now() - began).count();
    if (const double done = took_s < 1 ? 0 : share_done(program); done > 0)
      std::fprintf(stderr, "\rtraining on the simulated GPU: %3.0f %%, %.0f s left\x1b[K\r",
                   100 * done, took_s / done * (1 - done));
  }
  std::fputs("\r\x1b[K", stderr);
  return status;
}

}  // namespace

int demo(const Options& given) {
  Options options = given;
  options.simulate = true;
  options.sim_chip = kDemoChip;
  options.given = {{"FLOPINJ_OUTPUT", {kDemoTrace}}, {"FLOPINJ_FORCE", {"1"}}};
  options.program = {install_tree().trainer.string(),
                     "--model",
                     "gpt",
                     "--ranges",
                     "pytorch",
                     "--checkpoint",
                     "--log-every",
                     "20"};
  const pid_t program = ::fork();
  if (program < 0) throw std::runtime_error("no process can be started");
  if (program == 0) {
    // In a shell of a job the demo is no rank of that job, whose file would have another name.
    for (const Launcher& launcher : kLaunchers)
      for (const char* variable : {launcher.rank, launcher.size})
        if (variable != nullptr) ::unsetenv(variable);
    try {
      ::_exit(run(options));
    } catch (const std::exception& error) {
      say(error.what());
      ::_exit(kExitUsage);
    }
  }
  const int status = wait_and_show(program);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return WIFEXITED(status) ? WEXITSTATUS(status) : kExitCheckFailed;
  if (const int code = reduce({"report", kDemoTrace}); code != kExitOk) return code;
  if (!write_page(kDemoPage, {kDemoTrace}, true)) return kExitCheckFailed;
  say("the same as a page: " + (std::filesystem::current_path() / kDemoPage).string());
  return kExitOk;
}

}  // namespace flopinj
