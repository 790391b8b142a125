// `flopinj attach` and `detach`: recordings in a process that runs already.
#include <collector/options/options.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "commands.h"
#include "number_text.h"
#include "process.h"
#include "running/control_client.h"
#include "running/enter_process.h"
#include "shell_word.h"

namespace flopinj {
namespace {

// The library makes its thread as it is loaded: it listens a moment later.
Answer ask_soon(pid_t pid, const std::vector<std::string>& request) {
  constexpr auto kPatience = std::chrono::seconds(5);
  constexpr auto kPause = std::chrono::milliseconds(20);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    try {
      return ask(pid, request);
    } catch (const NotListening&) {
      if (std::chrono::steady_clock::now() > give_up) throw;
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace

int attach(const Options& options) {
  std::vector<std::string> request = {"start"};  // and settings: "FLOPINJ_LEVEL=tally"
  for (const auto& [name, value] : recording_variables(options))
    if (std::ranges::find(recording_options(), name, &RecordingOption::variable)->by_request)
      request.push_back(name + "=" + value);
  const pid_t pid = options.pid();
  Answer answer(pid);
  bool entered = false;
  try {
    answer = ask(pid, request);
  } catch (const NotListening&) {
    if (options.never_enter) throw;
    enter_process(pid, install_tree().library);
    entered = true;
    answer = ask_soon(pid, request);
  }
  std::cout << process_name(pid) << " is recorded to " << answer.text("output") << "\n";
  if (entered) std::cout << "It was started without flopinj: its NVTX ranges are not seen.\n";
  std::cout << "Let go of it:  flopinj detach " << pid << "\n" << std::flush;
  return kExitOk;
}

int detach(const Options& options) {
  const pid_t pid = options.pid();
  const std::string output = ask(pid, {"stop"}).text("output");
  const Answer last = ask(pid, {"status"});
  std::cout << process_name(pid) << " is let go of: " << number_text(last.count("launches"))
            << " launches, " << size_text(last.count("trace_bytes")) << "\n"
            << "Read the trace:  flopreduce " << shell_quoted(output) << "\n"
            << std::flush;
  return kExitOk;
}

}  // namespace flopinj
