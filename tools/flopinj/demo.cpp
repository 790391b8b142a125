// A first look: nothing to compile, no GPU, no program of one's own.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "commands.h"
#include "process.h"
#include "reducer.h"

namespace flopinj {
namespace {

// Small enough that a small network keeps it busy (tools/simgpu/README.md).
constexpr const char* kDemoChip = "SG4";
constexpr const char* kDemoTrace = "flopinj-demo.pb";
constexpr const char* kDemoPage = "flopinj-demo.html";

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
    try {
      ::_exit(run(options));
    } catch (const std::exception& error) {
      say(error.what());
      ::_exit(kExitUsage);
    }
  }
  const int status = wait_for(program);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return WIFEXITED(status) ? WEXITSTATUS(status) : kExitCheckFailed;
  if (const int code = reduce({"report", kDemoTrace}); code != kExitOk) return code;
  if (!write_page(kDemoPage, {kDemoTrace}, true)) return kExitCheckFailed;
  say("the same as a page: " + (std::filesystem::current_path() / kDemoPage).string());
  return kExitOk;
}

}  // namespace flopinj
