#pragma once

namespace flopinj {

// Of flopinj itself. `run` becomes the program, so that its exit code is the program's, or as in a
// shell if it cannot start.
inline constexpr int kExitOk = 0;
inline constexpr int kExitCheckFailed = 1;  // doctor: something is missing
inline constexpr int kExitUsage = 2;
inline constexpr int kExitPermission = 4;   // doctor: the counters are closed to this user
inline constexpr int kExitCannotRun = 125;  // run: flopinj itself is not whole
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

}  // namespace flopinj
