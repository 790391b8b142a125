// What is said of a trace that was not closed. How many launches it lacks is unknown.
#pragma once

namespace flopinj {

inline constexpr const char* kLaterIsMissing =
    "launches after the last packet of the trace are not in it";

}  // namespace flopinj
