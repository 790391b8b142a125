// --capture-range cudaProfilerApi: nothing is recorded until the program calls cuProfilerStart.
// While it waits, CUPTI is subscribed to for cuProfilerStart and cuProfilerStop only.
//
// As in the samples of CUPTI (cupti_trace_injection), a range begins at the EXIT of cuProfilerStart
// and ends at the ENTER of cuProfilerStop. The callback itself starts the recording, so that the
// launch behind the call is in it; the subscription, which cannot be ended inside its own callback,
// becomes the recording's. Launches are left out from cuProfilerStop on, and a thread of ours ends
// the recording. Later ranges are not recorded (nsys --capture-range-end stop).
#pragma once
#include <injector/process/process_state.h>

#include <optional>
#include <string>

namespace flopinj {

// In a report of CUPTI's: the begin or the end of a range.
bool begins_range(CUpti_CallbackDomain, CUpti_CallbackId, const void* data) noexcept;
bool ends_range(CUpti_CallbackId, const CUpti_CallbackData&) noexcept;

// Subscribes with `callback`, whose user data is null. `cupti`: the library to load (Settings).
// False, with one line in `error`.
bool wait_for_range(const std::string& cupti, CUpti_CallbackFunc callback, std::string& error);
// True where a subscription waits for a range; `api` is then the CUPTI that it was made with.
bool subscription_waits(CuptiApi& api);
// The subscription that waits, for a recording to go on with. Nothing where none does.
std::optional<Subscription> take_subscription() noexcept;
// A recording that could not begin gives it back.
void give_back_subscription(const Subscription&);

}  // namespace flopinj
