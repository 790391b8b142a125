#include "running/live.h"

#include <collector/ranges/range_name.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "number_text.h"
#include "printable_text.h"
#include "process.h"
#include "running/control_client.h"

namespace flopinj {
namespace {

// The trace as it is found from here: the process may have another root folder. Empty: it is not.
std::string trace_of(pid_t pid, const std::string& output) {
  struct stat status {};
  if (output.empty() || output.front() != '/') return {};
  const std::string there = proc_path(pid, "root") + output;
  for (const std::string& path : {there, output})
    if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(path.c_str(), R_OK) == 0)
      return path;
  return {};
}

}  // namespace

LiveReport live_report(pid_t pid, const std::vector<std::string>& form) {
  LiveReport report;
  report.status = ask(pid, {"status"});
  if (!report.status.contains("output")) {
    report.why_none = "nothing was recorded yet; begin:  flopinj attach " + std::to_string(pid);
    return report;
  }
  const std::string trace = trace_of(pid, report.status["output"]);
  if (trace.empty()) {
    report.why_none = "the trace cannot be read from here: " + shown(report.status, "output");
    return report;
  }
  std::vector<std::string> command{install_tree().reducer};
  command.insert(command.end(), form.begin(), form.end());
  command.push_back(trace);
  // What a running trace lacks is no news: the reducer's stderr is left out.
  report.text = output_of(command);
  if (report.text.empty()) report.why_none = "no launch is in the trace yet";
  return report;
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string status_text(pid_t pid, const Json& answer) {
  const auto count = [&](const char* key) { return answer.value(key, uint64_t{0}); };
  const auto number = [&](const char* key) { return answer.value(key, 0.0); };
  const std::string state = shown(answer, "state");
  std::string text = process_name(pid) + ": " + state;
  if (state == "recording")
    text += " for " + formatted("%.1f s", number("seconds")) + ", mode " + shown(answer, "mode");
  text += "\n";
  if (!answer.contains("output"))
    return text + "  nothing was recorded yet; begin:  flopinj attach " + std::to_string(pid) +
           "\n";
  const double seconds = number("seconds");
  const double cost = number("callback_ns") + number("measuring_ns") + number("startup_ns");
  text += "  trace      " + shown(answer, "output") + ", " + size_text(count("trace_bytes")) +
          "\n  launches   " + number_text(count("launches")) + ", " +
          number_text(count("dropped")) + " dropped\n  counted    " +
          formatted("%.1f %%", number("covered") * 100) +
          " of GPU time has complete counts\n  own cost   " + formatted("%.1f ms", cost / 1e6);
  if (seconds > 0) text += formatted(" (%.2f %% of the time)", cost / seconds / 1e7);
  return text + "\n";
}

namespace {

// A program's words in one line, as far as a line of several such programs has room. Nothing that
// they hold moves the cursor: they may be of another user.
manual::Entry named(pid_t pid) {
  constexpr size_t kShown = 60;
  std::string words = proc_text(pid, "cmdline");
  std::ranges::replace_if(
      words, [](char c) { return c == '\0' || (c >= '\t' && c <= '\r'); }, ' ');
  words.resize(words.find_last_not_of(' ') + 1);
  return {std::to_string(pid), printable(cut_utf8(words, kShown))};
}

[[noreturn]] void ask_which(const std::vector<manual::Entry>& found) {
  constexpr size_t kNamed = 10;
  std::string text = "which process?";
  for (size_t i = 0; i < std::min(kNamed, found.size()); ++i)
    text += (i > 0 ? ", " : " ") + found[i].term + " (" + found[i].text + ")";
  if (found.size() > kNamed) text += ", and " + std::to_string(found.size() - kNamed) + " more";
  throw std::runtime_error(text);
}

}  // namespace

std::vector<manual::Entry> processes_to_look_at() {
  std::vector<manual::Entry> processes;
  for (const pid_t pid : listening_processes()) processes.push_back(named(pid));
  return processes;
}

std::vector<manual::Entry> processes_to_attach_to() {
  std::vector<manual::Entry> processes = processes_to_look_at();
  for (const pid_t pid : all_processes())
    if (proc_text(pid, "maps").find("/libcuda.so") != std::string::npos &&
        std::ranges::find(processes, std::to_string(pid), &manual::Entry::term) == processes.end())
      processes.push_back(named(pid));
  return processes;
}

void refuse_none() {
  throw std::runtime_error(
      "no process that you may read is recorded, or could be: start one with flopinj run");
}

pid_t chosen(const Options& options) {
  if (!options.processes.empty()) return options.pid();
  const std::vector<manual::Entry> found = processes_to_look_at();
  if (found.size() == 1) return std::stoi(found.front().term);
  if (found.empty()) refuse_none();
  ask_which(found);
}

pid_t named_one(const Options& options, bool to_attach) {
  if (!options.processes.empty()) return options.pid();
  const std::vector<manual::Entry> found =
      to_attach ? processes_to_attach_to() : processes_to_look_at();
  if (!found.empty()) ask_which(found);
  throw std::runtime_error(
      to_attach ? "which process? None that you may read uses CUDA, or was started with flopinj "
                  "run --dormant"
                : "which process? None that you may read is recorded; flopinj attach PID begins a "
                  "recording");
}

int status(const Options& options) {
  const pid_t pid = chosen(options);
  const LiveReport live = live_report(pid, {"--format", "json", "--table", "figures"});
  const auto report = Json::parse(live.text, nullptr, false);
  Json flop, hfu, hfu_at_least;
  if (report.is_object()) {
    const auto& figures = report.at("figures");
    flop = figures.at("flop");
    hfu = figures.at("hfu");
    hfu_at_least = figures.value("hfu_at_least", Json());
  }
  if (options.json) {
    Json values = live.status;
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
