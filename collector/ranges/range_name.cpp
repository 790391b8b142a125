#include <collector/ranges/range_name.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace flopinj {
namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The number after `name`, which is the beginning of the field. Nothing else may follow it.
std::optional<int64_t> number_of(std::string_view field, std::string_view name) {
  if (!field.starts_with(name)) return std::nullopt;
  field.remove_prefix(name.size());
  int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size()) return std::nullopt;
  return value;
}

// Where the field that begins at `from` ends: at the next ", " outside of brackets, or at the end.
size_t end_of_field(std::string_view name, size_t from) {
  int depth = 0;
  for (size_t i = from; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '[' || c == '(') {
      ++depth;
    } else if (c == ']' || c == ')') {
      depth = std::max(depth - 1, 0);
    } else if (c == ',' && depth == 0 && name.substr(i).starts_with(", ")) {
      return i;
    }
  }
  return name.size();
}

// True when the field changes with every call; takes the sequence number out of it.
bool volatile_field(std::string_view field, uint64_t& sequence_plus_1) {
  if (const auto sequence = number_of(field, "seq = ")) {
    if (*sequence >= 0) sequence_plus_1 = static_cast<uint64_t>(*sequence) + 1;
    return true;
  }
  return number_of(field, "op_id = ") || field.starts_with("input_op_ids = [");
}

}  // namespace

std::string_view cut_utf8(std::string_view text, size_t bytes) noexcept {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  // A sequence has at most 3 continuation bytes; more than that is not UTF-8 and is cut anywhere.
  for (size_t i = 0; i < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;
       ++i)
    --end;
  if ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) end = bytes;
  return text.substr(0, end);
}

uint64_t parse_range_name(std::string_view name, std::string& key) {
  name = cut_utf8(name, kMaxScannedBytes);
  uint64_t sequence_plus_1 = 0;
  bool rewritten = false;  // something was cut out
  for (size_t at = name.find(" = ") == name.npos ? name.size() : end_of_field(name, 0);
       at < name.size();) {
    const size_t next = end_of_field(name, at + 2);
    if (volatile_field(name.substr(at + 2, next - at - 2), sequence_plus_1)) {
      if (!rewritten) key.assign(name.substr(0, at));
      rewritten = true;
    } else if (rewritten) {
      key.append(name.substr(at, next - at));
    }
    at = next;
  }
  if (!rewritten) key.assign(name);
  return sequence_plus_1;
}

RangeName parse_range_name(std::string_view name) {
  RangeName result;
  result.sequence_plus_1 = parse_range_name(name, result.key);
  return result;
}

bool evaluates_node(std::string_view key) noexcept { return key.starts_with(kEvaluate); }

bool is_node_of(std::string_view key, std::string_view evaluating) noexcept {
  evaluating.remove_prefix(kEvaluate.size());
  if (!key.starts_with(evaluating)) return false;
  key.remove_prefix(evaluating.size());
  return key.empty() || key.starts_with(", ");
}

constexpr std::string_view kMark = ", seq = #";

void mark_own_number(std::string& key) { key.insert(std::min(key.find(", "), key.size()), kMark); }

bool is_range_name(std::string_view key, std::string_view name) noexcept {
  if (key.size() == name.size()) return key == name;
  const size_t at = std::min(name.find(", "), name.size());
  return key.size() == name.size() + kMark.size() && key.substr(at, kMark.size()) == kMark &&
         key.substr(0, at) == name.substr(0, at) &&
         key.substr(at + kMark.size()) == name.substr(at);
}

std::string generalise(std::string_view name) {
  std::string result;
  result.reserve(name.size());
  for (size_t i = 0; i < name.size();) {
    const bool hex = name[i] == '0' && i + 2 < name.size() &&
                     (name[i + 1] == 'x' || name[i + 1] == 'X') &&
                     (is_hex(name[i + 2]) || name[i + 2] == '#');
    if (hex) {
      result += "0x#";
      for (i += 2; i < name.size() && (is_hex(name[i]) || name[i] == '#');) ++i;
    } else if (is_digit(name[i])) {
      result += '#';
      while (i < name.size() && is_digit(name[i])) ++i;
    } else {
      result += name[i++];
    }
  }
  return result;
}

}  // namespace flopinj
