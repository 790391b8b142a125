#include <injector/process/log.h>
#include <injector/process/run_watch.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "abstract_socket.h"

namespace flopinj {

void tell_watcher(const Settings& settings, RunEvent event, const std::string& trace) noexcept {
  if (!settings.run || settings.run->socket.empty()) return;
  try {
    const std::string text = text_of({event, trace});
    const std::string& name = settings.run->socket;
    sockaddr_un address;
    const socklen_t size = abstract_address(name, address);
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    [[maybe_unused]] const ssize_t sent =
        ::sendto(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
    ::close(fd);
  } catch (...) {  // no memory: nothing is said
  }
}

std::function<void(const RecordingSummary&)> closing_words(const Settings& settings,
                                                           const ProcessInfo& process,
                                                           TraceNames names) {
  return [settings, process, names = std::move(names)](const RecordingSummary& summary) {
    if (!settings.quiet && process.rank <= 0) log::note(closing_line(summary, process, names));
    tell_watcher(settings, RunEvent::kEnded, names.name);
  };
}

}  // namespace flopinj
