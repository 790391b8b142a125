// What is said of a trace that was not closed. Nobody knows how many launches it lacks.
#pragma once

namespace flopinj {

inline constexpr const char* kLaterIsMissing =
    "launches after the last packet of the trace are not in it";

}  // namespace flopinj
