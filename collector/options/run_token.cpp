#include <collector/options/run_token.h>

#include <algorithm>
#include <charconv>

namespace flopinj {
namespace {

// The number before the next colon, which is passed over with it; nothing where there is none.
template <typename Number>
std::optional<Number> next(std::string_view& text, int base) {
  Number number = 0;
  const size_t colon = std::min(text.find(':'), text.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + colon, number, base);
  if (colon == text.size() || error != std::errc{} || end != text.data() + colon || number < 0)
    return std::nullopt;
  text.remove_prefix(colon + 1);
  return number;
}

}  // namespace

std::string RunToken::text() const {
  char id_text[17];
  *std::to_chars(id_text, id_text + 16, id, 16).ptr = '\0';
  return std::to_string(started_ns) + ":" + id_text + ":" + socket;
}

std::optional<RunToken> RunToken::parse(std::string_view text) {
  constexpr size_t kMostSocket = 100;  // sun_path has 108
  const auto started_ns = next<int64_t>(text, 10);
  const auto id = started_ns ? next<uint64_t>(text, 16) : std::nullopt;
  if (!id || text.size() > kMostSocket) return std::nullopt;
  return RunToken{*started_ns, *id, std::string(text)};
}

}  // namespace flopinj
