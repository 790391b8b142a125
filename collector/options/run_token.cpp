#include <collector/options/run_token.h>

#include <charconv>

namespace flopinj {

std::string RunToken::text() const { return std::to_string(started_ns) + ":" + socket; }

std::optional<RunToken> RunToken::parse(std::string_view text) {
  constexpr size_t kMostSocket = 100;  // sun_path has 108
  RunToken token;
  const size_t colon = text.find(':');
  if (colon == text.npos || text.size() - colon - 1 > kMostSocket) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + colon, token.started_ns);
  if (error != std::errc{} || end != text.data() + colon || token.started_ns < 0)
    return std::nullopt;
  token.socket = text.substr(colon + 1);
  return token;
}

}  // namespace flopinj
