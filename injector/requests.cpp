#include <injector/process/this_thread.h>
#include <injector/requests.h>
#include <injector/session.h>
#include <injector/session_status.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "control_address.h"

namespace flopinj {
namespace {

using Given = std::span<const std::string>;  // settings, as a request has them

// By phase.
constexpr std::array kStates{"dormant", "dormant", "recording", "stopping", "off"};

std::string status(Given, Asker) {
  const SessionStatus status = session_status();
  std::string text = "ok\n";
  const auto add = [&text](std::string_view key, const std::string& value) {
    text.append(key).append(" ").append(value).append("\n");
  };
  add("pid", std::to_string(getpid()));
  add("state", kStates[static_cast<size_t>(status.phase)]);
  add("recordings", std::to_string(status.recordings));
  add("recordings_kept", std::to_string(status.kept));
  if (status.recordings == 0) return text;
  add("output", status.output);
  add("mode", status.mode);
  add("seconds", std::to_string(status.seconds));
  add("launches", std::to_string(status.progress.launches));
  add("dropped", std::to_string(status.progress.dropped));
  add("trace_bytes", std::to_string(status.progress.trace_bytes));
  add("covered", std::to_string(status.progress.covered));
  add("callback_ns", std::to_string(status.progress.callback_ns));
  add("measuring_ns", std::to_string(status.progress.measuring_ns));
  add("startup_ns", std::to_string(status.progress.startup_ns));
  return text;
}

std::string told(const Outcome& outcome) {
  return outcome.done ? "ok\noutput " + outcome.text + "\n" : "error " + outcome.text + "\n";
}

struct Verb {
  std::string_view name;
  std::string (*answer)(Given, Asker);
};
constexpr std::array<Verb, 4> kVerbs{{
    {"status", status},
    {"start",
     [](Given settings, Asker asker) { return told(start_recording(settings, false, asker)); }},
    {"start_from_inside",
     [](Given settings, Asker asker) { return told(start_recording(settings, true, asker)); }},
    {"stop",
     [](Given, Asker asker) {
       const Outcome outcome = stop_recording(asker);
       return told(outcome) + (outcome.done ? outcome.closed ? "closed 1\n" : "closed 0\n" : "");
     }},
}};

std::string answer_to(Asker asker, std::string_view request) {
  std::vector<std::string> lines;
  while (!request.empty()) {
    const size_t end = request.find('\n');
    if (end != 0) lines.emplace_back(request.substr(0, end));
    request.remove_prefix(end == request.npos ? request.size() : end + 1);
  }
  if (lines.empty()) return "error nothing was asked\n";
  const auto* const verb = std::ranges::find(kVerbs, lines.front(), &Verb::name);
  if (verb == kVerbs.end())
    return "error this version of libflopinj.so does not know the request\n";
  return verb->answer(Given(lines).subspan(1), asker);
}

}  // namespace

std::string answer(std::string_view request) { return answer_to(Asker::kAnother, request); }

std::string answer_program(std::string_view request) {
  if (request.size() > kMostRequestBytes)
    return "error the request is longer than " + std::to_string(kMostRequestBytes) + " bytes\n";
  if (RecursionGuard::inside() || launching())
    return "error this thread is inside of a call that the library follows\n";
  const RecursionGuard guard;
  return answer_to(Asker::kProgram, request);
}

}  // namespace flopinj
