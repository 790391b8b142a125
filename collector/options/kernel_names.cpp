#include <collector/options/kernel_names.h>
#include <regex.h>

#include <stdexcept>

namespace flopinj {
namespace {

constexpr std::string_view kRegex = "regex:";
constexpr size_t kMostBytes = 1'024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The length that a source name begins with, taken off the text; 0: there is none.
size_t take_length(std::string_view& text) {
  size_t length = 0;
  while (!text.empty() && is_digit(text.front()) && length <= text.size()) {
    length = length * 10 + static_cast<size_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return length <= text.size() ? length : 0;
}

// What other languages of expressions have, and glibc takes for plain characters or is slow with.
bool has_foreign_escape(std::string_view expression) {
  for (size_t i = 0; i + 1 < expression.size(); ++i) {
    if (expression[i] == '(' && expression[i + 1] == '?') return true;
    if (expression[i] != '\\') continue;
    const char c = expression[++i];
    if (is_alphanumeric(c) && std::string_view("wWsSbB").find(c) == std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace

// A kernel is a function of a namespace and no member, so what comes before its template arguments
// is names only.
std::string_view function_base_name(std::string_view mangled) noexcept {
  if (!mangled.starts_with("_Z")) return mangled;
  std::string_view rest = mangled.substr(2), last;
  if (rest.starts_with('N')) rest.remove_prefix(1);
  while (!rest.empty()) {
    if (rest.front() == 'L') {  // internal linkage
      rest.remove_prefix(1);
    } else if (rest.front() == 'S') {  // a substitution: St, Sa, S_ or S12_
      const size_t end = rest.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    } else if (is_digit(rest.front())) {
      const size_t length = take_length(rest);
      if (length == 0) break;
      last = rest.substr(0, length);
      rest.remove_prefix(length);
      if (mangled[2] != 'N') break;
    } else {
      break;
    }
  }
  return last.empty() ? mangled : last;
}

struct KernelNames::Expression {
  explicit Expression(const std::string& text) {
    if (regcomp(&compiled, text.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
      throw std::invalid_argument("not a regular expression");
  }
  ~Expression() { regfree(&compiled); }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  regex_t compiled{};
};

KernelNames::KernelNames(std::string_view text, KernelNameBase base) : base_(base) {
  if (text.starts_with(kRegex))
    expression_ = std::make_unique<Expression>(std::string(text.substr(kRegex.size())));
  else
    name_ = text;
}
KernelNames::~KernelNames() = default;
KernelNames::KernelNames(KernelNames&&) noexcept = default;

bool KernelNames::understood(std::string_view text) {
  if (text.empty() || text.size() > kMostBytes) return false;
  if (!text.starts_with(kRegex)) return true;
  const std::string_view expression = text.substr(kRegex.size());
  if (expression.empty() || has_foreign_escape(expression)) return false;
  try {
    const KernelNames compiled(text);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

bool KernelNames::contain(const std::string& mangled_name) const {
  if (name_.empty() && expression_ == nullptr) return true;
  const std::string name(base_ == KernelNameBase::kMangled ? std::string_view(mangled_name)
                                                           : function_base_name(mangled_name));
  if (expression_ == nullptr) return name == name_;
  return regexec(&expression_->compiled, name.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace flopinj
