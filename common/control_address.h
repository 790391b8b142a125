// Where a profiled process takes requests, for the library, which listens, and the programs that
// ask: `flopinj attach`, `detach`, `status`.
//
// A stream socket in the abstract namespace (abstract_socket.h). Its name holds the process's id
// and the pid namespace in which that id is meant. Each side looks at the other's user id
// (SO_PEERCRED): only the same user and root are listened to.
//
// A request is lines, the last of them empty: a verb, then for "start" variables such as
// "FLOPINJ_LEVEL=tally". The answer is "ok" and lines "KEY VALUE", or "error TEXT", until the end
// of the stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace flopinj {

inline constexpr size_t kMostRequestBytes = size_t{64} << 10;

inline std::string control_name(uint64_t pid_namespace, uint32_t pid) {
  return "flopinj-" + std::to_string(pid_namespace) + "-" + std::to_string(pid);
}

}  // namespace flopinj
