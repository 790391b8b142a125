#include "output_name.h"

#include <cctype>

namespace flopinj {
namespace {

constexpr std::string_view kSocketPrefix = "unix:";

bool is_variable_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front()))) return false;
  for (const char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

std::string escape_percent(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%') escaped += '%';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string output_name_problem(std::string_view name) {
  const std::string_view path =
      name.starts_with(kSocketPrefix) ? name.substr(kSocketPrefix.size()) : name;
  if (path.empty()) return "the output name is empty";
  for (size_t i = path.find('%'); i != std::string_view::npos; i = path.find('%', i)) {
    const char pattern = i + 1 < path.size() ? path[i + 1] : '\0';
    if (pattern == 'p' || pattern == 'h' || pattern == 'r' || pattern == '%') {
      i += 2;
      continue;
    }
    if (pattern == 'q') {
      const size_t end = path.find('}', i);
      if (i + 2 < path.size() && path[i + 2] == '{' && end != std::string_view::npos &&
          is_variable_name(path.substr(i + 3, end - i - 3))) {
        i = end + 1;
        continue;
      }
      return "%q needs the name of an environment variable in braces, as in %q{SLURM_JOB_ID}";
    }
    return "unknown pattern '" + std::string(path.substr(i, 2)) +
           "' in the output name; known are %p %h %r %q{NAME} and %% for a percent sign";
  }
  return {};
}

std::string absolute_output_name(std::string_view name, const std::filesystem::path& folder) {
  if (name == "-") return "-";
  const bool socket = name.starts_with(kSocketPrefix);
  const std::string_view path = socket ? name.substr(kSocketPrefix.size()) : name;
  std::string absolute(path);
  if (!path.starts_with('/')) {
    absolute = escape_percent(folder.string());
    if (!absolute.ends_with('/')) absolute += '/';
    absolute += path;
  }
  return (socket ? std::string(kSocketPrefix) : std::string()) + absolute;
}

}  // namespace flopinj
