// The FLOPINJ_ environment variables, read once.
#pragma once
#include <collector/options/settings.h>

#include <string>
#include <vector>

namespace flopinj {

// `problems` gets one line for every variable that is unknown (with the nearest known name) or has
// a value that is not understood; the default is used for it.
Settings read_settings(const char* const* environment, std::vector<std::string>& problems);

}  // namespace flopinj
