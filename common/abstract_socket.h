// Addresses of Unix sockets in Linux's abstract namespace: they leave no file behind, work where
// all file systems are read-only, and are gone with the process that listens.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace flopinj {

// Fills `address`, and returns how much of it counts. A name past 107 bytes is cut.
inline socklen_t abstract_address(std::string_view name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::copy_n(name.begin(), length, address.sun_path + 1);  // behind a zero byte
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

}  // namespace flopinj
