#include <collector/trace/sink/output_name.h>

#include <algorithm>
#include <string>
#include <utility>

namespace flopinj {
namespace {

constexpr std::string_view kKnown = "%p, %h, %r, %q{ENV}, and %% for a percent sign";

OutputName wrong(std::string_view pattern, size_t position, const std::string& what) {
  OutputName result;
  result.error = "output name '" + std::string(pattern) + "', character " +
                 std::to_string(position + 1) + ": " + what;
  return result;
}

// "rank" where "{rank}" is at `at`, as other programs have it; nothing where it is no such word.
std::string_view braced_word(std::string_view pattern, size_t at) {
  const size_t close = pattern.find('}', at);
  if (close == pattern.npos) return {};
  const std::string_view word = pattern.substr(at + 1, close - at - 1);
  const bool is_word = std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  return is_word ? word : std::string_view();
}

std::string instead_of(std::string_view word) {
  constexpr std::pair<std::string_view, const char*> kOurs[] = {
      {"rank", "%r"},     {"RANK", "%r"}, {"global_rank", "%r"}, {"pid", "%p"}, {"PID", "%p"},
      {"hostname", "%h"}, {"host", "%h"}, {"HOSTNAME", "%h"},    {"node", "%h"}};
  for (const auto& [theirs, ours] : kOurs)
    if (theirs == word) return std::string("write ") + ours;
  const bool variable =
      std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return variable ? "write %q{" + std::string(word) + "}" : "known are " + std::string(kKnown);
}

}  // namespace

OutputName expand_output_name(std::string_view pattern, const OutputNameContext& context) {
  OutputName out;
  if (pattern.empty()) return wrong(pattern, 0, "empty; give a file name");
  const size_t file = pattern.rfind('/') + 1;  // a folder may be called as it likes
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{' && i >= file)
      if (const std::string_view word = braced_word(pattern, i); !word.empty())
        return wrong(pattern, i,
                     "{" + std::string(word) + "} is filled in by nothing; " + instead_of(word));
    if (pattern[i] != '%') {
      out.name += pattern[i];
      continue;
    }
    const size_t start = i++;
    const char letter = i < pattern.size() ? pattern[i] : '\0';
    switch (letter) {
      case '%':
        out.name += '%';
        break;
      case 'p':
        out.name += std::to_string(context.pid);
        out.of_process = true;
        break;
      case 'h':
        out.name += context.host;
        break;
      case 'r':
        out.name += std::to_string(context.rank < 0 ? 0 : context.rank);
        out.of_rank = true;
        break;
      case 'q': {
        const size_t close = pattern.find('}', i);
        if (i + 1 >= pattern.size() || pattern[i + 1] != '{' || close == std::string_view::npos)
          return wrong(pattern, start, "%q needs a variable in braces, as in %q{SLURM_PROCID}");
        const std::string name(pattern.substr(i + 2, close - i - 2));
        if (name.empty())
          return wrong(pattern, start, "%q{} names no variable; write it as in %q{SLURM_PROCID}");
        const char* value =
            context.environment != nullptr ? context.environment(name.c_str()) : nullptr;
        if (value == nullptr)
          return wrong(pattern, start,
                       "environment variable " + name + " is not set; set it, or leave %q{" + name +
                           "} out");
        out.name += value;
        out.of_rank = true;
        i = close;
        break;
      }
      case '\0':
        return wrong(pattern, start, "nothing after '%'; write %% for a percent sign");
      default:
        return wrong(pattern, start,
                     std::string("unknown %") + letter + "; known are " + std::string(kKnown));
    }
  }
  if (out.name.empty()) return wrong(pattern, 0, "the name is empty once filled in");
  return out;
}

std::string extended_output_name(std::string_view name, std::string_view part) {
  const size_t slash = name.rfind('/');
  const size_t file = slash == std::string_view::npos ? 0 : slash + 1;
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot <= file) dot = name.size();
  return std::string(name.substr(0, dot)) + "." + std::string(part) + std::string(name.substr(dot));
}

}  // namespace flopinj
