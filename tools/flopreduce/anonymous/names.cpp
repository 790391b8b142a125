#include "anonymous/names.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "analytic/operator_flop.h"
#include "analytic/operator_name.h"
#include "phases/phases.h"
#include "report/operators/gradients.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Words of PyTorch's grammar of names, beside those of the rules.
constexpr std::array<std::string_view, 24> kGrammar = {
    "seq",  "op",     "id",       "sizes", "input", "ids",      "node",      "layer",
    "name", "module", "backward", "fn",    "to",    "autograd", "evaluate",  "function",
    "none", "true",   "false",    "step",  "batch", "epoch",    "iteration", "main"};

// Operators and autograd nodes of PyTorch and of public extensions, with their sizes and nothing
// else; autograd numbers its own nodes' names, and not those of a user's functions.
const re2::RE2& public_range() {
  static const re2::RE2 regex(
      R"((autograd::engine::evaluate_function: )?)"
      R"(((aten|prims?|c10d|_c10d_functional|torchvision|flash_attn\w*|xformers\w*)::\w[\w.]*|)"
      R"(torch::autograd::\w+|\w+Backward[0-9]+))"
      R"((, (seq|op_id|sizes|input_op_ids|kernel_size|stride|padding|dilation|output_size|)"
      R"(ceil_mode|transposed|types) = ([\[\]()0-9, #-]|True|False|same|valid|Complex\w*|)"
      R"(Float\w*|Double|Half|BFloat16|Int|Long|Short|Byte|Char|Bool)*)*)");
  return regex;
}

// Libraries whose kernels everybody has. Names that hold another namespace are not only of them.
const re2::RE2& public_kernel() {
  static const re2::RE2 regex(
      R"((void )?((ampere|hopper|volta|turing|maxwell|sm[0-9]+|gemm|gemv|cublas|cudnn|cutlass|)"
      R"(nccl|ncclDevKernel|nvjet|xmma|implicit_convolve|fft|regular_fft|vector_fft)[\w:]*|)"
      R"(at::native::\w+))");
  return regex;
}

const re2::RE2& namespaces() {
  static const re2::RE2 regex(R"((?:_Z|Z|N)K?N?([0-9]+)([A-Za-z_]))");
  return regex;
}

bool is_public_mangled(std::string_view name) {
  static constexpr std::array<std::string_view, 16> kPublic = {
      "at",   "native", "c10", "cuda", "cutlass", "cute",          "cudnn", "cublas",
      "nccl", "thrust", "cub", "std",  "detail",  "pytorch_flash", "flash", "gemmSN"};
  if (!name.starts_with("_Z")) return false;
  bool any = false;
  re2::StringPiece rest(name.data(), name.size());
  std::string digits, first;
  while (re2::RE2::FindAndConsume(&rest, namespaces(), &digits, &first)) {
    const size_t at = static_cast<size_t>(rest.data() - name.data()) - 1;
    const size_t length = digits.size() > 4 ? name.size() : std::stoul(digits);
    const std::string_view word = name.substr(at, length);
    if (std::find(kPublic.begin(), kPublic.end(), word) == kPublic.end()) return false;
    any = true;
  }
  return any;
}

bool full(std::string_view name, const re2::RE2& regex) {
  return re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), regex);
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

std::string small(std::string_view word) {
  std::string out(word);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The end of the word that begins at `at`: "MyHTTPLayer" is My, HTTPLayer's capitals, Layer.
size_t word_end(std::string_view name, size_t at) {
  size_t end = at + 1;
  if (is_upper(name[at]) && end < name.size() && is_upper(name[end])) {
    while (end < name.size() && is_upper(name[end])) ++end;
    if (end < name.size() && is_letter(name[end])) --end;
    return end;
  }
  while (end < name.size() && is_letter(name[end]) && !is_upper(name[end])) ++end;
  return end;
}

template <typename Visit>
void for_each_word(std::string_view name, Visit&& visit) {
  for (size_t at = 0; at < name.size();) {
    if (!is_letter(name[at])) {
      visit(name.substr(at++, 1), false);
      continue;
    }
    const size_t end = word_end(name, at);
    visit(name.substr(at, end - at), true);
    at = end;
  }
}

}  // namespace

AnonymousNames::AnonymousNames(KeyedHash hash) : hash_(hash) {
  known_.insert(kGrammar.begin(), kGrammar.end());
  static const re2::RE2 escape(R"(\\[a-zA-Z]|\(\?[-a-z]+:|\[[^\]]*\])");
  const PhaseRules rules;
  for (const auto& rule : rules.rules()) {
    if (rule.match == PhaseRules::Match::kIs) continue;
    for (std::string pattern : {rule.pattern, rule.domain}) {
      if (rule.match == PhaseRules::Match::kRegex) re2::RE2::GlobalReplace(&pattern, escape, " ");
      for_each_word(pattern, [&](std::string_view word, bool letters) {
        if (letters && word.size() > 2) known_.insert(small(word));
      });
    }
  }
}

std::string AnonymousNames::pseudonym(std::string_view word) const {
  constexpr size_t kLetters = 10;
  constexpr std::string_view kAlphabet = "bcdfghjkmqstvwyz";  // in which no rule's word is written
  uint64_t bits = hash_.of(small(word));
  std::string out;
  for (size_t i = 0; i < kLetters; ++i, bits >>= 4) out += kAlphabet[bits & 15];
  if (is_upper(word.front()))
    out.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(out.front())));
  return out;
}

// A single letter gives nothing away and stays. Other characters stay if they are ASCII.
std::string AnonymousNames::words(std::string_view name) const {
  std::string out;
  for_each_word(name, [&](std::string_view word, bool letters) {
    if (letters && word.size() > 1 && !known_.contains(small(word)))
      out += pseudonym(word);
    else
      out += static_cast<unsigned char>(word.front()) < 0x80 ? std::string(word) : "?";
  });
  return out;
}

std::string AnonymousNames::range(std::string_view name) const {
  if (full(name, public_range())) return std::string(name);
  return words(name);
}

std::string AnonymousNames::kernel(std::string_view name) const {
  if (is_public_mangled(name) || full(name, public_kernel())) return std::string(name);
  std::string out = "kernel_" + pseudonym(std::string("k") + std::string(name));
  // Words for the gradient, communication and tiles.
  if (const auto direction = gradient_direction(name))
    out += *direction == Direction::kInputGradient ? "_dgrad" : "_wgrad";
  static const PhaseRules rules;
  for (const auto& rule : rules.rules())
    if (rule.subject == PhaseRules::Subject::kKernel && contains_any_case(name, rule.pattern)) {
      out += "_" + rule.pattern;
      break;
    }
  static const re2::RE2 tile(R"((?:^|[^0-9a-z])([0-9]+x[0-9]+(?:x[0-9]+)?)(?:[^0-9a-z]|$))");
  re2::StringPiece rest(name.data(), name.size());
  std::string size;
  while (re2::RE2::FindAndConsume(&rest, tile, &size)) out += "_" + size;
  return out;
}

std::string AnonymousNames::other(const char* kind, std::string_view name) const {
  if (name.empty()) return {};
  return std::string(kind) + "-" + pseudonym("o" + std::string(kind) + std::string(name));
}

}  // namespace flopinj::reduce
