// What a process says when its recording begins and ends: to the watcher of its run (`flopinj
// run`), and at the end one line to the user.
#pragma once
#include <collector/identity/recording.h>
#include <collector/options/settings.h>
#include <collector/trace/closing_line.h>

#include <functional>
#include <string>

#include "run_notice.h"

namespace flopinj {

// To the watcher, if there is one. Never waits; what it does not take at once is not said.
void tell_watcher(const Settings&, RunEvent, const std::string& trace) noexcept;

// For CollectorHooks::closed. The rank that speaks for a job is the first. Where nothing was
// launched and `refusal` has a reason, the driver says that one, and we are silent.
std::function<void(const RecordingSummary&)> closing_words(const Settings&, const ProcessInfo&,
                                                           TraceNames, const char* (*refusal)());

}  // namespace flopinj
