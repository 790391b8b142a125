#include "output_name.h"

#include <collector/trace/sink/output_name.h>

#include <cstdlib>

namespace flopinj {
namespace {

constexpr std::string_view kSocketPrefix = "unix:";

std::string escape_percent(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%') escaped += '%';
    escaped += c;
  }
  return escaped;
}

// Without the socket prefix.
std::string_view path_of(std::string_view name) {
  return name.starts_with(kSocketPrefix) ? name.substr(kSocketPrefix.size()) : name;
}

}  // namespace

std::string output_name_problem(std::string_view name) {
  OutputNameContext context;  // any process, host and rank will do: only the patterns are checked
  context.host = "host";
  context.environment = [](const char* variable) -> const char* { return std::getenv(variable); };
  return expand_output_name(path_of(name), context).error;
}

std::string absolute_output_name(std::string_view name, const std::filesystem::path& folder) {
  if (name == "-") return "-";
  const bool socket = name.starts_with(kSocketPrefix);
  const std::string_view path = path_of(name);
  std::string absolute(path);
  if (!path.starts_with('/')) {
    absolute = escape_percent(folder.string());
    if (!absolute.ends_with('/')) absolute += '/';
    absolute += path;
  }
  return (socket ? std::string(kSocketPrefix) : std::string()) + absolute;
}

}  // namespace flopinj
