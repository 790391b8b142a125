// flopreduce: the report goes to standard output or -o FILE, everything else to standard error.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>

#include "options.h"
#include "passes/reducer.h"
#include "report/json_report.h"
#include "report/text_report.h"
#include "support/text.h"

namespace {

using namespace flopinj::reduce;

void complain(const std::string& text) { std::fprintf(stderr, "flopreduce: %s\n", text.c_str()); }

size_t terminal_width() {
  constexpr size_t kDefault = 110;
  constexpr size_t kLeast = 60;
  size_t width = 0;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    width = size.ws_col;
  if (const char* columns = std::getenv("COLUMNS"); width == 0 && columns != nullptr)
    width = std::strtoul(columns, nullptr, 10);
  if (width == 0 || width > 1000) width = kDefault;
  return width < kLeast ? kLeast : width;
}

bool use_color(const CommandLine& line) {
  if (line.color != Color::kAuto) return line.color == Color::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::strcmp(terminal, "dumb") == 0;
  return line.output.empty() && ::isatty(STDOUT_FILENO) != 0 &&
         (no_color == nullptr || *no_color == '\0') && !dumb;
}

void write_report(std::ostream& out, const Report& report, const CommandLine& line) {
  if (line.json)
    write_json(out, report);
  else
    write_text(out, report, {use_color(line), terminal_width(), line.top});
  out.flush();
}

int write_output(const Report& report, const CommandLine& line) {
  if (line.output.empty()) {
    write_report(std::cout, report, line);
    if (std::cout) return kExitFine;
    complain("standard output cannot be written");
    return kExitUsage;
  }
  errno = 0;
  std::ofstream file(line.output, std::ios::binary | std::ios::trunc);
  if (file) write_report(file, report, line);
  if (file) return kExitFine;
  const int code = errno;
  complain(printable(line.output) +
           ": cannot be written: " + (code != 0 ? std::strerror(code) : "write failed"));
  return code == EACCES || code == EPERM || code == EROFS ? kExitPermission : kExitUsage;
}

// One line for everything that damage took from the report.
std::string what_is_missing(const Report& report) {
  constexpr size_t kMost = 4;
  std::string text;
  size_t kinds = 0;
  for (const auto& d : report.damage) {
    if (!damage_text(d.kind).partial || ++kinds > kMost) continue;
    text += (text.empty() ? "" : "; ") + printable(d.file) + ": " + std::to_string(d.count) + " " +
            damage_text(d.kind).meaning;
  }
  return kinds > kMost ? text + "; and more, see Damage in the report" : text;
}

int reduce(CommandLine& line) {
  Reducer reducer(std::move(line.reduce));
  for (const auto& path : line.traces) reducer.add(path);
  bool permission = false;
  for (const auto& error : reducer.errors()) {
    complain(error.message);
    permission = permission || error.permission;
  }
  const int trouble = permission ? kExitPermission : kExitPartial;
  if (!reducer.any_input()) return trouble;
  const Report report = reducer.run();
  if (const int code = write_output(report, line); code != kExitFine) return code;
  if (!report.errors.empty()) return trouble;
  if (report.partial) {
    complain("the report is partial: " + what_is_missing(report));
    return kExitPartial;
  }
  if (!line.json && ::isatty(STDERR_FILENO) != 0)
    std::fprintf(stderr, "\nNext: flopreduce --format json -o report.json %s\n",
                 printable(line.traces[0]).c_str());
  return kExitFine;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CommandLine line;
    const int code = parse_command_line(argc, argv, line);
    return code >= 0 ? code : reduce(line);
  } catch (const std::exception& e) {
    complain(std::string("stopped: ") + e.what());
    return kExitPartial;
  }
}
