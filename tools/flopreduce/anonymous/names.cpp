#include "anonymous/names.h"

#include <re2/re2.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <set>
#include <vector>

#include "analytic/attention_kernels.h"
#include "analytic/operator_flop.h"
#include "analytic/operator_name.h"
#include "phases/phases.h"
#include "support/data.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Of SipHash.
struct State {
  uint64_t v0, v1, v2, v3;
  void round() {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  }
  void add(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

using Match = PhaseRules::Match;
using Words = std::set<std::string, std::less<>>;

constexpr size_t kShortNumber = 4;  // digits: a layer's number, and no telephone's

bool is_word(char c) { return is_alnum(c) || (c & '\x80') != 0; }
bool is_letter(char c) { return is_word(c) && !is_digit(c); }

bool all_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

std::string_view without_digits(std::string_view text) {
  while (!text.empty() && is_digit(text.back())) text.remove_suffix(1);
  return text;
}

// The end of the word that begins at `at`. "MyHTTPLayer2": My, HTTP, Layer2.
size_t word_end(std::string_view name, size_t at) {
  size_t end = at + 1;
  if (is_upper(name[at]) && end < name.size() && is_upper(name[end])) {
    while (end < name.size() && is_upper(name[end])) ++end;
    if (end < name.size() && is_letter(name[end])) return end - 1;
  }
  while (end < name.size() && is_word(name[end]) && !is_upper(name[end])) ++end;
  return end;
}

template <typename Visit>
void for_each_word(std::string_view name, Visit&& visit) {
  for (size_t at = 0; at < name.size();) {
    if (!is_word(name[at])) {
      ++at;
      continue;
    }
    const size_t end = word_end(name, at);
    visit(name.substr(at, end - at));
    at = end;
  }
}

// An operator's name in any style, and its autograd node's: "log_softmax", "LogSoftmaxBackward0".
std::string plain(std::string_view name) {
  name = without_digits(name).ends_with("Backward") ? without_digits(name) : name;
  if (name.ends_with("Backward")) name.remove_suffix(8);
  std::string out = lower(name);
  std::erase(out, '_');
  return out;
}

// Words of names that figures read, beside those of phase rules.
constexpr std::string_view kWords =
    "seq op id sizes input ids node layer layers name module model backward backwards fn to "
    "autograd formula flop "
    "function none true false step steps batch epoch iteration iter main train training "
    "collective ranks bytes all allreduce allgather alltoall reduce scatter gather reducescatter "
    "broadcast send recv base";
// Arguments of operators that formulas read, whole.
constexpr std::string_view kArguments =
#define FLOPINJ_SETTING(NAME, ...) #NAME " "
#include "operator_settings.def"
#undef FLOPINJ_SETTING
    "input_op_ids padding_mode same types";
// Parts of words: what is an anonymous namespace in a mangled name; gradients, algorithms, number
// formats and fused work (report/operators).
constexpr std::string_view kParts =
    "_global_ dgrad input_gradient bwd_data backward_data wgrad weight_gradient bwd_filter "
    "backward_filter winograd winogrand fft2d fft_ cgemm zgemm complex fused triton_ epilogue "
    "gemm_relu gemm_bias _relu_ gelu";

// What stays: names that figures are made by. All in small letters.
struct KeptNames {
  Words operators, identifiers, words, parts;

  KeptNames() {
    for (const auto word : parts_of(kWords, ' ')) words.emplace(word);
    for (const auto word : parts_of(kArguments, ' ')) identifiers.emplace(word);
    for (const auto part : parts_of(kParts, ' ')) parts.emplace(part);
    add_formulas();
    add_phase_rules();
    add_precisions();
  }

  // What names of kernels and types say of precisions. A short name stays only where it is whole:
  // a namespace, or a type.
  void add_precisions() {
    constexpr size_t kShortest = 4;
    for (const auto line : parts_of(data::kPrecisions, '\n')) {
      if (line.empty() || line.front() == '#') continue;
      const std::string_view name = parts_of(line, '\t')[1];
      const bool type = line.starts_with("type");
      const auto inside = [](char c) { return is_word(c) || c == '_'; };
      for (auto begin = name.begin(); begin != name.end();) {
        begin = std::find_if(begin, name.end(), inside);
        const auto end = std::find_if_not(begin, name.end(), inside);
        if (static_cast<size_t>(end - begin) >= kShortest)
          parts.emplace(begin, end);
        else if (begin != end && (type || (end != name.end() && *end == ':')))
          identifiers.emplace(begin, end);
        begin = end;
      }
    }
  }

  void add_formulas() {
    for (const auto function : operators_with_formula()) {
      operators.insert(plain(function.substr(function.find_last_of(':') + 1)));
      if (const size_t colon = function.find(':'); colon != function.npos)
        identifiers.insert(lower(function.substr(0, colon)));  // "aten"
    }
    for (const auto part : attention_kernel_parts()) parts.insert(lower(part));
  }

  void add_phase_rules() {
    static const re2::RE2 escape(R"(\\[a-zA-Z]|\(\?[-a-z]+:|\[[^\]]*\])");
    const PhaseRules rules;
    for (const auto& rule : rules.rules()) {
      const bool part = (rule.match == Match::kPrefix || rule.match == Match::kContains ||
                         rule.match == Match::kNode) &&
                        std::all_of(rule.pattern.begin(), rule.pattern.end(),
                                    [](char c) { return is_word(c) || c == '_'; });
      if (part) parts.insert(lower(rule.pattern));
      if (part || rule.match == Match::kIs) continue;
      for (std::string pattern : {rule.pattern, rule.domain}) {
        if (rule.match == Match::kRegex) re2::RE2::GlobalReplace(&pattern, escape, " ");
        for_each_word(pattern, [&](std::string_view word) {
          if (word.size() > 2) words.insert(lower(word));
        });
      }
    }
  }

  bool whole(std::string_view name) const {
    return identifiers.contains(lower(name)) || operators.contains(plain(name));
  }
};

const KeptNames& kept_names() {
  static const KeptNames names;
  return names;
}

// Of each character whether it is of a part that stays.
std::vector<bool> kept_parts(std::string_view text) {
  std::vector<bool> kept(text.size());
  const std::string letters = lower(text);
  const auto keep = [&](size_t at, size_t size) {
    std::fill_n(kept.begin() + static_cast<std::ptrdiff_t>(at), size, true);
  };
  for (const std::string& part : kept_names().parts)
    for (size_t at = letters.find(part); at != letters.npos; at = letters.find(part, at + 1))
      keep(at, part.size());
  static const re2::RE2 tile(R"((?:^|[^0-9])([1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3})+)(?:[^0-9x]|$))");
  re2::StringPiece rest(letters), found;
  while (re2::RE2::FindAndConsume(&rest, tile, &found))
    keep(static_cast<size_t>(found.data() - letters.data()), found.size());
  return kept;
}

// Where four numbers with dots between, which are an address, end; `at` where there are none.
size_t address_end(std::string_view text, size_t at) {
  static const re2::RE2 address(R"([0-9]+(\.[0-9]+){3,})");
  re2::StringPiece rest(text.data() + at, text.size() - at);
  return re2::RE2::Consume(&rest, address) ? text.size() - rest.size() : at;
}

}  // namespace

uint64_t KeyedHash::of(std::string_view text) const {
  State s{key_[0] ^ 0x736f6d6570736575U, key_[1] ^ 0x646f72616e646f6dU,
          key_[0] ^ 0x6c7967656e657261U, key_[1] ^ 0x7465646279746573U};
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    s.add(word);
  }
  uint64_t last = uint64_t{text.size()} << 56;
  std::memcpy(&last, text.data() + at, text.size() - at);
  s.add(last);
  s.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) s.round();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

std::string AnonymousNames::word(std::string_view text, bool sizes) const {
  constexpr size_t kLetters = 12;
  constexpr std::string_view kAlphabet = "bcdfghjkmqsvwxyz";  // in which no word that stays is
  const auto& words = kept_names().words;
  if (all_digits(text)) {
    const bool stays = sizes || text.size() <= kShortNumber;
    return stays ? std::string(text) : std::to_string(hash_.of(text));
  }
  const std::string letters = lower(text);
  const std::string_view stem = without_digits(letters);
  const bool numbered = letters.size() - stem.size() <= kShortNumber && words.contains(stem);
  if (numbered || words.contains(letters) || (text.size() == 1 && (text[0] & '\x80') == 0))
    return std::string(text);
  uint64_t bits = hash_.of(letters);
  std::string out;
  for (size_t i = 0; i < kLetters; ++i, bits >>= 4) out += kAlphabet[bits & 15];
  // Capitals as there, so that what differed by them still does.
  const bool all_upper =
      std::none_of(text.begin(), text.end(), [](char c) { return is_letter(c) && !is_upper(c); });
  for (size_t i = 0; i < (all_upper && text.size() > 1 ? out.size() : 1); ++i)
    if (is_upper(text[0])) out[i] = static_cast<char>(std::toupper(out[i]));
  return out;
}

std::string AnonymousNames::identifier(std::string_view text, bool sizes) const {
  if (kept_names().whole(text)) return std::string(text);
  const std::vector<bool> kept = kept_parts(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (kept[at] || !is_word(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && !kept[end]) ++end;
    end = std::min(end, word_end(text, at));
    out += word(text.substr(at, end - at), sizes);
    at = end;
  }
  return out;
}

std::string AnonymousNames::name(std::string_view text) const {
  if (text.starts_with("_Z")) {
    const auto replaced = replace_identifiers(text, [&](std::string_view part) {
      return part.starts_with('.') ? name(part) : identifier(part, false);
    });
    // What is no mangled name is one private identifier with what stays of it.
    return replaced ? *replaced : "kernel_" + identifier(text.substr(2), false);
  }
  const bool sized =
      parse_operator_name(text).has_value() || text.find(", collective = ") != text.npos;
  std::string out;
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && (is_word(text[end]) || text[end] == '_')) ++end;
    if (end == at) {
      if (text[at] == '[' || text[at] == '(') ++depth;
      if (text[at] == ']' || text[at] == ')') --depth;
      out += text[at++];
    } else if (const size_t after = address_end(text, at); after > at) {
      out += std::to_string(hash_.of(text.substr(at, after - at)));
      at = after;
    } else {
      out += identifier(text.substr(at, end - at), sized && depth > 0);
      at = end;
    }
  }
  return out;
}

std::string AnonymousNames::other(const char* kind, std::string_view text) const {
  if (text.empty()) return {};
  return std::string(kind) + "-" + word("o" + std::string(kind) + std::string(text), false);
}

}  // namespace flopinj::reduce
