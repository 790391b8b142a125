#include <injector/process/log.h>
#include <injector/process/run_watch.h>

#include <utility>

namespace flopinj {

void tell_watcher(const Settings& settings, RunEvent event, const std::string& trace) noexcept {
  if (!settings.run || settings.run->socket.empty()) return;
  try {
    send_run_notice(settings.run->socket, {event, trace});
  } catch (...) {  // no memory to copy the name: nothing is sent
  }
}

std::function<void(const RecordingSummary&)> closing_words(const Settings& settings,
                                                           const ProcessInfo& process,
                                                           TraceNames names,
                                                           const char* (*refusal)()) {
  return [settings, process, names = std::move(names), refusal](const RecordingSummary& summary) {
    const bool driver_speaks =
        refusal != nullptr && refusal() != nullptr && launches_in(summary) == 0;
    if (!settings.quiet && process.rank <= 0 && !driver_speaks)
      log::note(closing_line(summary, process, names));
    tell_watcher(settings, RunEvent::kEnded, names.name);
  };
}

}  // namespace flopinj
