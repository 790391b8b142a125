// What a recorded process says to the watcher of its run (`flopinj run`): one datagram each, a
// letter and the name of the trace. Who says it the kernel adds (SCM_CREDENTIALS).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace flopinj {

enum class RunEvent : char {
  kRecording = 'r',  // a trace was opened
  kEnded = 'e',      // it is whole, and the process has said so
  kRefused = 'x',    // nothing is recorded by this process, and it has said why
  kWaiting = 'w'     // nothing is recorded until a request, a time or a range comes
};

struct RunNotice {
  RunEvent event = RunEvent::kRefused;
  std::string trace;  // empty where it was refused
};

inline std::string text_of(const RunNotice& notice) {
  return static_cast<char>(notice.event) + notice.trace;
}

// Nothing for text that is no notice.
inline std::optional<RunNotice> parse_run_notice(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const RunEvent event :
       {RunEvent::kRecording, RunEvent::kEnded, RunEvent::kRefused, RunEvent::kWaiting})
    if (text.front() == static_cast<char>(event))
      return RunNotice{event, std::string(text.substr(1))};
  return std::nullopt;
}

}  // namespace flopinj
