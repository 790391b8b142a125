// The FLOPINJ_ variables: of the environment, and of requests made while the program runs.
#pragma once
#include <collector/options/settings.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

// `problems` gets one line for every variable that is unknown (with the nearest known name) or has
// a value that is not understood; the default is used for it.
Settings read_settings(const char* const* environment, std::vector<std::string>& problems);
// One of them: "FLOPINJ_LEVEL=tally". Other variables are none of ours, and are passed over.
void apply_setting(Settings&, std::string_view entry, std::vector<std::string>& problems);
// As a request has them, on top of those of the start. Why it cannot be done, in one line; empty
// where it can.
std::string apply_request(Settings&, std::span<const std::string> entries);

}  // namespace flopinj
