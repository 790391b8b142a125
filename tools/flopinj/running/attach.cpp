#include "running/attach.h"

#include <collector/options/options.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "exit_codes.h"
#include "number_text.h"
#include "output.h"
#include "run.h"
#include "running/control_client.h"
#include "running/enter_process.h"
#include "running/live_report.h"
#include "shell_word.h"

namespace flopinj {
namespace {

// As a request has them: "FLOPINJ_LEVEL=tally".
std::vector<std::string> settings_for(const AttachOptions& options) {
  RunOptions run;
  run.given = options.given;
  std::vector<std::string> settings;
  for (const auto& [name, value] : recording_variables(run, std::filesystem::current_path()))
    if (std::ranges::find(recording_options(), name, &RecordingOption::variable)->by_request)
      settings.push_back(name + "=" + value);
  return settings;
}

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

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string process(pid_t pid) { return "process " + std::to_string(pid); }

}  // namespace

int attach(const AttachOptions& options, const InstallTree& tree) {
  std::vector<std::string> request = settings_for(options);
  request.insert(request.begin(), "start");
  Answer answer(options.pid);
  bool entered = false;
  try {
    answer = ask(options.pid, request);
  } catch (const NotListening&) {
    if (!options.enter) throw;
    enter_process(options.pid, tree);
    entered = true;
    answer = ask_soon(options.pid, request);
  }
  std::cout << process(options.pid) << " is recorded to " << answer.text("output") << "\n";
  if (entered) std::cout << "It was started without flopinj: its NVTX ranges are not seen.\n";
  std::cout << "Let go of it:  flopinj detach " << options.pid << "\n" << std::flush;
  return kExitOk;
}

int detach(pid_t pid) {
  const std::string output = ask(pid, {"stop"}).text("output");
  const Answer last = ask(pid, {"status"});
  std::cout << process(pid) << " is let go of: " << number_text(last.count("launches"))
            << " launches, " << size_text(last.count("trace_bytes")) << "\n"
            << "Read the trace:  flopreduce " << shell_quoted(output) << "\n"
            << std::flush;
  return kExitOk;
}

nlohmann::json status_json(const Answer& answer) {
  nlohmann::json values;
  for (const auto& [key, value] : answer.values()) {
    if (key == "state" || key == "output" || key == "mode")
      values[key] = value;
    else if (value.find_first_not_of("0123456789") == value.npos)
      values[key] = answer.count(key);
    else
      values[key] = answer.number(key);
  }
  return values;
}

// Only ASCII, whatever bytes are in it.
std::string json_line(const nlohmann::json& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string status_text(pid_t pid, const Answer& answer) {
  const std::string state = answer.text("state");
  std::string text = process(pid) + ": " + state;
  if (state == "recording")
    text +=
        " for " + formatted("%.1f s", answer.number("seconds")) + ", mode " + answer.text("mode");
  text += "\n";
  if (!answer.has("output"))
    return text + "  nothing was recorded yet; begin:  flopinj attach " + std::to_string(pid) +
           "\n";
  const double seconds = answer.number("seconds");
  const double cost = answer.number("callback_ns") + answer.number("measuring_ns");
  text += "  trace      " + answer.text("output") + ", " + size_text(answer.count("trace_bytes")) +
          "\n  launches   " + number_text(answer.count("launches")) + ", " +
          number_text(answer.count("dropped")) + " dropped\n  counted    " +
          formatted("%.1f %%", answer.number("covered") * 100) +
          " of GPU time has complete counts\n  own cost   " + formatted("%.1f ms", cost / 1e6);
  if (seconds > 0) text += formatted(" (%.2f %% of the time)", cost / seconds / 1e7);
  return text + "\n";
}

int status(pid_t pid, const InstallTree& tree, bool json) {
  const LiveReport live = live_report(pid, tree, {"--format", "json", "--table", "figures"});
  const auto report = nlohmann::json::parse(live.text, nullptr, false);
  nlohmann::json flop, hfu, hfu_at_least;
  if (report.is_object()) {
    const auto& figures = report.at("figures");
    flop = figures.at("flop");
    hfu = figures.at("hfu");
    hfu_at_least = figures.value("hfu_at_least", nlohmann::json());
  }
  if (json) {
    nlohmann::json values = status_json(live.status);
    values["flop"] = flop;
    values["hfu"] = hfu;
    values["hfu_at_least"] = hfu_at_least;
    std::cout << json_line(values) << std::flush;
    return kExitOk;
  }
  std::string text = status_text(pid, live.status);
  if (flop.is_number()) text += formatted("  executed   %.4g FLOP so far", flop.get<double>());
  if (hfu.is_number()) text += formatted(", HFU %.2f %%", hfu.get<double>() * 100);
  if (flop.is_number()) text += "\n";
  std::cout << text << std::flush;
  return kExitOk;
}

}  // namespace flopinj
