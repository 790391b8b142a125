#include "commands/arguments/arguments.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "commands/arguments/command.h"
#include "commands/arguments/manual.h"
#include "commands/arguments/output_file.h"
#include "manual/describe.h"
#include "support/text.h"

namespace flopinj::reduce {

void complain(const std::string& text) { std::fprintf(stderr, "flopreduce: %s\n", text.c_str()); }

int parse(CLI::App& app, int argc, char** argv) {
  if (being_described != nullptr) {
    const std::string& name = app.get_name();
    being_described->push_back(
        manual::describe(app, name.substr(std::min(name.size(), sizeof "flopreduce"))));
    return kExitFine;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    complain(printable(e.what()) + " (see " + app.get_name() + " --help)");
    return kExitUsage;
  }
  return -1;
}

void InputArguments::add_to(CLI::App& app, bool positional) {
  if (positional)
    app.add_option("TRACE", traces, "Trace files; '-' reads standard input")->required();
  app.add_option("--fma", reduce.fma, "What one fused multiply-add counts")
      ->check(CLI::IsMember({1, 2}))
      ->capture_default_str();
  rules.add_to(app);
  app.add_option("-j,--jobs", reduce.jobs,
                 "Threads that read; without it one per core, at most " + std::to_string(kMostJobs))
      ->check(CLI::Range(1U, 256U));
  app.add_flag("-q,--quiet", quiet, "No progress bar");
}

int InputArguments::finish() {
  reduce.progress = !quiet;
  return rules.finish(reduce.rules);
}

std::vector<std::string> InputArguments::files() const {
  std::vector<std::string> all = traces;
  all.insert(all.end(), rules.files.begin(), rules.files.end());
  return all;
}

void RuleArguments::add_to(CLI::App& app) {
  app.add_option(
         "--phase", phases,
         "NAME=REGEX: launches whose innermost matching range fits REGEX belong to phase NAME")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--rules", files,
                 "Rules from FILE, tried before the built-in ones; `flopreduce rules` prints those")
      ->take_all()
      ->allow_extra_args(false);
}

int RuleArguments::finish(PhaseRules& rules) {
  for (const auto& rule : phases) {
    if (const auto error = rules.add_user_rule(rule)) {
      complain(*error);
      return kExitUsage;
    }
  }
  for (const auto& name : files) {
    errno = 0;
    std::ifstream file(name, std::ios::binary);
    std::string text(kMaxRuleFileBytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    if (file.bad() || (!file && !file.eof())) {
      complain(printable(name) + ": cannot be read: " + std::strerror(errno != 0 ? errno : EIO));
      return errno == EACCES ? kExitPermission : kExitUsage;
    }
    if (const auto error = rules.add_rule_file(name, text)) {
      complain(*error);
      return kExitUsage;
    }
  }
  return -1;
}

namespace {

bool use_color(const OutputArguments& output) {
  using Color = OutputArguments::Color;
  if (output.color != Color::kAuto) return output.color == Color::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::strcmp(terminal, "dumb") == 0;
  return output.file.empty() && ::isatty(STDOUT_FILENO) != 0 &&
         (no_color == nullptr || *no_color == '\0') && !dumb;
}

// Columns of the terminal that is written to, or of $COLUMNS; 0 for neither.
size_t terminal_width(const OutputArguments& output) {
  winsize size{};
  if (output.file.empty() && ::isatty(STDOUT_FILENO) != 0 &&
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  return columns != nullptr ? std::strtoul(columns, nullptr, 10) : 0;
}

}  // namespace

void OutputArguments::add_to(CLI::App& app, std::vector<std::string> formats) {
  std::string names;
  for (const auto& name : formats) names += (names.empty() ? "" : ", ") + name;
  if (std::find(formats.begin(), formats.end(), "csv") != formats.end())
    app.add_option("--table", table, "The table that --format csv writes, by its key");
  app.add_option("--format", format, names)
      ->check(CLI::IsMember(std::move(formats)))
      ->capture_default_str();
  add_file_to(app);
  app.add_option("--top", top, "Lines of long tables")
      ->check(CLI::Range(size_t{1}, size_t{1000000}))
      ->capture_default_str();
  app.add_option("--color", color, "auto, always or never")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Color>{
          {"auto", Color::kAuto}, {"always", Color::kAlways}, {"never", Color::kNever}}));
}

void OutputArguments::add_file_to(CLI::App& app) {
  app.add_option_function<std::string>(
         "-o,--output", [this](const std::string& name) { file = name == "-" ? "" : name; },
         "Write to FILE instead of standard output (-)")
      ->type_name("FILE");
  app.add_flag("--force", force, "Overwrite FILE where it exists");
}

int OutputArguments::finish(std::vector<std::string> read) {
  inputs = std::move(read);
  return refuse_to_overwrite(*this);
}

TextOptions OutputArguments::text_options() const {
  constexpr size_t kDefault = 110;
  constexpr size_t kLeast = 20;
  constexpr size_t kMost = 1000;
  const size_t width = terminal_width(*this);
  const bool known = width > 0 && width <= kMost;
  return {use_color(*this), known ? std::max(width, kLeast) : kDefault, top, known};
}

}  // namespace flopinj::reduce
