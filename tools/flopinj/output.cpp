#include "output.h"

#include <collector/trace/sink/output_name.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string_view>
#include <system_error>

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

OutputName expanded(std::string_view pattern) {
  OutputNameContext context;
  char host[256] = {};
  context.host = gethostname(host, sizeof(host) - 1) == 0 ? host : "host";
  context.environment = [](const char* name) -> const char* { return std::getenv(name); };
  return expand_output_name(pattern, context);
}

// The name as it will be; nothing where that depends on the process.
std::optional<std::string> known(std::string_view pattern) {
  const OutputName name = expanded(pattern);
  if (pattern.find("%r") != pattern.npos || !name.error.empty() || name.of_process)
    return std::nullopt;
  return name.name;
}

std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_problem(const std::string& file, bool force) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  if (S_ISDIR(status.st_mode)) return file + " is a directory; name a file in it";
  if (!S_ISREG(status.st_mode)) return {};
  if (!force) return file + " exists; choose another name, or overwrite it with --force";
  return ::access(file.c_str(), W_OK) == 0 ? "" : file + " cannot be written; choose another name";
}

std::string folder_problem(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    return "the folder " + folder + ": " + std::generic_category().message(errno) +
           (errno == ENOENT ? "; create it first" : "; choose another");
  if (!S_ISDIR(status.st_mode)) return folder + " is no folder; choose another";
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return "the folder " + folder + ": " + std::generic_category().message(errno) +
         "; choose another";
}

// What the file is marked with when it is changed now.
int64_t clock_ns(int fd) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // Linux's own file systems go by this one
  struct stat status {};
  if (fd >= 0 && ::futimens(fd, nullptr) == 0 && ::fstat(fd, &status) == 0) now = status.st_mtim;
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::string output_name_problem(std::string_view name) { return expanded(path_of(name)).error; }

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
  return (socket ? std::string(kSocketPrefix) : "") + absolute;
}

std::string output_problem(const std::string& name, bool force) {
  if (name.starts_with(kSocketPrefix)) return {};
  if (name == "-")
    return ::isatty(STDOUT_FILENO) == 0
               ? ""
               : "standard output is a terminal; redirect it, or name a file";
  const auto file = known(name);
  struct stat status {};
  if (file && ::stat(file->c_str(), &status) == 0) return file_problem(*file, force);
  const auto folder = known(folder_of(name));
  return folder ? folder_problem(*folder) : "";
}

int64_t output_clock_ns(const std::string& name) {
  constexpr int kMostTries = 100;
  constexpr timespec kPause{0, 1'000'000};
  const auto folder = name.starts_with(kSocketPrefix) ? std::nullopt : known(folder_of(name));
  const int fd = folder ? ::open(folder->c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
  const int64_t first = clock_ns(fd);
  int64_t now = first;
  for (int tries = 0; now == first && tries < kMostTries; ++tries) {
    ::nanosleep(&kPause, nullptr);
    now = clock_ns(fd);
  }
  if (fd >= 0) ::close(fd);
  return now;
}

}  // namespace flopinj
