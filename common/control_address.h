// Where a profiled process takes requests, for the library, which listens, and the programs that
// ask: `flopinj attach`, `detach`, `status`.
//
// Who may ask the kernel decides: whoever may read the process (PTRACE_MODE_READ: same user, no
// fewer capabilities, same or outer user namespace, dumpable; or CAP_SYS_PTRACE). The library
// listens on a stream socket in the abstract namespace (abstract_socket.h), whose name is random.
// That name and a secret are the name of an empty memfd that the process holds open. The kernel
// shows it, as the text of a link in /proc/PID/fd, to those only; Yama, which says who may enter a
// process, has no part in it. User ids are not looked at: in a user namespace without a map all
// users have the same one.
//
// A request is lines, the last of them empty: the secret, a verb, then for "start" (of the program
// itself: "start_from_inside") variables such as "FLOPINJ_LEVEL=tally". The answer is "ok" and
// lines "KEY VALUE", or "error TEXT", until the end of the stream. Before it sends the secret, a
// client looks whether the listener is the process that it means (SO_PEERCRED): the socket of
// another network namespace may have the same name.
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flopinj {

inline constexpr size_t kMostRequestBytes = size_t{64} << 10;
inline constexpr size_t kMostAnswerBytes = size_t{64} << 10;

// What asks and what answers must agree on: the lines above.
inline constexpr uint32_t kControlVersion = 1;

// The name of the memfd: "flopinj-control-VERSION-ADDRESS-SECRET", the last two in hexadecimal.
struct ControlMark {
  static constexpr std::string_view kPrefix = "flopinj-control-";
  static constexpr size_t kAddressDigits = 16, kSecretDigits = 32;

  uint32_t version = kControlVersion;
  std::string address, secret;  // empty where the version is another one

  std::string text() const {
    return std::string(kPrefix) + std::to_string(version) + "-" + address + "-" + secret;
  }
  std::string socket() const { return "flopinj-" + address; }

  // From the text of a link in /proc/PID/fd. Nothing for any other file.
  static std::optional<ControlMark> parse(std::string_view link) {
    constexpr std::string_view kBefore = "/memfd:", kBehind = " (deleted)";
    if (!link.starts_with(kBefore) || !link.ends_with(kBehind)) return std::nullopt;
    link.remove_prefix(kBefore.size());
    link.remove_suffix(kBehind.size());
    if (!link.starts_with(kPrefix)) return std::nullopt;
    link.remove_prefix(kPrefix.size());
    ControlMark mark;
    const auto [end, error] = std::from_chars(link.data(), link.data() + link.size(), mark.version);
    link.remove_prefix(static_cast<size_t>(end - link.data()));
    if (error != std::errc{} || !link.starts_with('-')) return std::nullopt;
    if (mark.version != kControlVersion) return mark;
    const std::string_view digits = link.substr(1);
    if (digits.size() != kAddressDigits + 1 + kSecretDigits || digits[kAddressDigits] != '-' ||
        digits.find_first_not_of("0123456789abcdef-") != digits.npos)
      return std::nullopt;
    mark.address = digits.substr(0, kAddressDigits);
    mark.secret = digits.substr(kAddressDigits + 1);
    return mark;
  }
};

}  // namespace flopinj
