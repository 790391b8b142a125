// What a recorded process says to the watcher of its run (`flopinj run`): one datagram each, the
// run's secret, a letter and the name of the trace. Which process says it the kernel adds
// (SCM_CREDENTIALS). The secret is in the environment of the run's processes, which the kernel
// shows only to processes that may read them; the socket's name it shows to all.
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>

#include "abstract_socket.h"

namespace flopinj {

enum class RunEvent : char {
  kRecording = 'r',  // a trace was opened
  kEnded = 'e',      // it is whole, and the process has said so
  kCut = 'c',        // it could not be written to any more, and the process has said so
  kRefused = 'x',    // nothing is recorded by this process, and why has been said
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
  for (const RunEvent event : {RunEvent::kRecording, RunEvent::kEnded, RunEvent::kCut,
                               RunEvent::kRefused, RunEvent::kWaiting})
    if (text.front() == static_cast<char>(event))
      return RunNotice{event, std::string(text.substr(1))};
  return std::nullopt;
}

// To the watcher at `place`: "SOCKET:SECRET", the first an abstract name. Never waits or throws: a
// notice that is not taken at once is not sent.
inline void send_run_notice(std::string_view place, const RunNotice& notice) noexcept {
  try {
    const size_t colon = place.find(':');
    if (colon == place.npos) return;
    const std::string text = std::string(place.substr(colon + 1)) + text_of(notice);
    sockaddr_un address;
    const socklen_t size = abstract_address(place.substr(0, colon), address);
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    [[maybe_unused]] const ssize_t sent =
        ::sendto(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
    ::close(fd);
  } catch (...) {  // no memory: nothing is sent
  }
}

}  // namespace flopinj
