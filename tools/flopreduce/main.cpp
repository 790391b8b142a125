// flopreduce, which `flopinj report` and its kin become: results go to standard output or -o FILE,
// everything else to standard error.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "commands/arguments/arguments.h"
#include "commands/arguments/option_groups.h"
#include "commands/forms.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {

namespace {

// In the order of help.
std::vector<const Command*> commands() {
  std::vector<const Command*> all;
  for (const ReducerCommand& listed : kReducerCommands) {
    const auto& made = ProgramCommand::all();
    const auto found = std::ranges::find(made, std::string_view(listed.name), [](const Command* c) {
      return std::string_view(c->name);
    });
    if (found == made.end()) throw std::logic_error(std::string(listed.name) + " is not made");
    all.push_back(*found);
  }
  return all;
}
// What is meant without a command.
const Command& usual() { return *commands().front(); }

void add(manual::CommandLine& to, const Command& command) {
  manual::CommandLine& line = to.add_command(command.name, command.purpose, command.text);
  if (command.define != nullptr) line.action = command.define(line);
  if (!command.words.empty()) line.require_subcommand(1);
  for (const Command* below : command.words) add(line, *below);
}

manual::Program about(manual::CommandLine& line) {
  manual::Program program{
      .line = line,
      .usual = program_name == "flopinj" ? "" : usual().name,
      .version = FLOPINJ_VERSION,
      .purpose = "turn traces of libflopinj.so into a FLOP report",
      .exit_status = {},
      .environment = {{"COLUMNS", "columns of a line where the output is no terminal"},
                      {"NO_COLOR", "no colours, whatever the terminal can show"},
                      {"TERM", "no colours where it is dumb"}},
      .files = {{"*.pb", "a trace, as flopinj writes it"},
                {"*.sum", "a summary of traces, as " + typed("merge") + " writes it"},
                {"share/flopinj/*.schema.json", "JSON schemas of the output"}},
      .see_also = "flopinj",
      .others_options = {}};
  program.others_options = {
      {{"--gpu", "--gpus", "--device", "--devices"},
       "a GPU is a word of its own: " + typed("peaks h100"),
       {"peaks"}},
      {{"-f", "--file"},
       "the statement is a word of its own: " + typed("query \"$(cat FILE)\" TRACE"),
       {"query"}},
      {{"--sections all", "--section all"}, "here it is --all"},
      {{"--also all"}, "each table is named: " + typed("tables") + " lists them"},
      {{"--mfu", "--hfu", "--flops", "--summary"},
       "it is on the first screen; --fail-if 'mfu < 30%' makes a limit of it"},
      {{"--width", "--columns-wide"},
       "lines fit the terminal, or $COLUMNS: COLUMNS=200 " + typed("report TRACE")},
      {{"--columns", "--fields", "--select"},
       "columns are chosen by " + typed("query 'SELECT kernel, flop FROM kernels' TRACE")},
      {{"--grep", "--search", "--match", "--only"}, "here it is " + typed("explain NAME TRACE")},
      {{"--open", "--browser", "--show"}, "a page for a browser: --format html -o report.html"},
      {{"-r", "-R", "--recursive"},
       "a folder names the traces in it; folders in it need find: find FOLDER -name '*.pb' | " +
           typed("report --files-from -")},
      {{"--params", "--model-params", "--num-params", "--model-size", "--n-params"},
       "here it is --parameters NUMBER, with --tokens-per-step"},
      {{"--seq-len", "--sequence-length", "--seqlen", "--context"},
       "here it is --tokens-per-step NUMBER: batch x sequence length"},
      {{"--warmup", "--warm-up", "--burn-in"}, "here it is --skip-steps N"},
      {{"--since", "--from", "--start", "--until"}, "here it is --time-range A..B (chrome-trace)"},
      {{"--dtype"}, "the peak of a number format is given by --peak tensor_bf16=989T"},
      {{"--by", "--group-by", "--groupby"}, "here it is --sections layers, or kernels or phases"},
      {{"--compare", "--diff"}, "it is a command: " + typed("compare BEFORE AFTER")},
      {{"--filter", "--kernel", "--kernel-name", "--kernel-id", "-k", "--range", "--nvtx"},
       "here it is " + typed("explain NAME TRACE")},
      {{"--limit", "-n"}, "here it is --top N"},
      {{"--gate", "--fail-under", "--min-mfu", "--min-hfu", "--max-flop", "--threshold",
        "--tolerance", "--assert"},
       "here it is --fail-if CONDITION, such as " + typed("report --fail-if 'mfu < 30%'") + " or " +
           typed("compare --fail-if 'total.mfu.ratio < 0.98'")},
      {{"-i", "--input", "--import"}, "a trace is a word of its own: " + typed("report TRACE")},
      {{"--base", "--baseline"}, "the first recording is the base: " + typed("compare A B")},
      {{"--sql"}, "the statement is a word of its own: " + typed("query 'SELECT ...' TRACE")},
      {{"--page", "--details"}, "here it is --sections KEY, or --all"},
      {{"--steps", "--step"}, "here it is --sections steps, or --skip-steps N"},
      {{"--tokens"}, "here it is --tokens-per-step NUMBER"},
      {{"-v", "--verbose"}, "here it is --all"},
      {{"-V"}, "here it is --version"},
      {{"-f"}, "here it is --format FORM"},
      {{"--rank"},
       "each rank has a trace of its own: " + typed("report RANK7.pb") + "; " +
           typed("report --sections ranks TRACE...") + " compares them"},
      {{"--gpu", "--gpus", "--device", "--devices"},
       "each GPU is a row: " + typed("query 'SELECT * FROM devices' TRACE") +
           "; the peak of another one is given by --peak, and listed by " + typed("peaks h100")},
      {{"--metric", "--metrics"}, typed("report --fail-if list TRACE") + " lists all figures"},
      {{"--unit", "--units", "--print-units"},
       "text has the unit that fits; --format csv and json have whole numbers, in the unit that a "
       "column's name says"},
      {{"--source", "--import-source"},
       "lines of source are not recorded; " + typed("explain NAME TRACE") +
           " says where a figure comes from"}};
  for (const ExitCode& exit : kExitCodes)
    program.exit_status.push_back({std::to_string(exit.code), exit.meaning});
  return program;
}

// Whether the word behind this option is its value, whichever command has the option.
bool takes_next(const CLI::App& line, const std::string& option) {
  if (option.find('=') != option.npos) return false;
  // Of short options in one word, the last may have its value behind it.
  const std::string name = option.starts_with("--") ? option : std::string("-") + option.back();
  for (const CLI::App* command : line.get_subcommands({}))
    if (const CLI::Option* found = command->get_option_no_throw(name))
      return found->get_items_expected_max() > 0;
  return false;
}

// The command goes first, also where it was written behind options. `flopreduce TRACE` is
// `flopreduce report TRACE`: a word is a trace where something of that name is there, a link that
// leads nowhere too, or where it looks like a path; else it is a command, or a misspelt one.
void put_command_first(const CLI::App& line, std::vector<std::string>& arguments) {
  size_t at = 0;
  while (at < arguments.size() && arguments[at].starts_with("-") && arguments[at] != "--")
    at += arguments[at].size() > 1 && takes_next(line, arguments[at]) ? 2 : 1;
  const bool any = at < arguments.size();
  if (any && std::ranges::any_of(kReducerCommands, [&](const ReducerCommand& c) {
        return arguments[at] == c.name;
      })) {
    std::rotate(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(at),
                arguments.begin() + static_cast<ptrdiff_t>(at) + 1);
    return;
  }
  std::error_code ignored;
  using std::filesystem::file_type;
  const file_type type =
      any ? std::filesystem::symlink_status(arguments[at], ignored).type() : file_type::not_found;
  const bool file = type != file_type::not_found && type != file_type::none;
  constexpr std::string_view kRecorders[] = {"run", "demo",    "attach", "detach", "status",
                                             "top", "metrics", "doctor", "import", "fleet"};
  if (any && at == 0 && !file && std::ranges::count(kRecorders, arguments[0]) > 0)
    throw Failure("'" + arguments[0] + "' is a command of flopinj: flopinj " + arguments[0] +
                  " --help");
  for (const manual::Entry& form : report_forms())
    if (any && at == 0 && !file && form.term == arguments[0])
      throw Failure("'" + form.term + "' is a form and no command: " +
                    typed("report --format " + form.term + " TRACE"));
  if (at > 0 || !any || arguments[0] == "--" ||
      arguments[0].find_first_of("./") != std::string::npos || file)
    arguments.insert(arguments.begin(), usual().name);
}

int run(std::vector<std::string> arguments) {
  manual::CommandLine line(std::string(program_name), "", usual().text);
  const std::string version = typed(FLOPINJ_VERSION);
  line.set_version_flag("--version", version, "Show the version");
  line.require_subcommand(1);
  for (const Command* command : commands()) add(line, *command);
  line.get_subcommand(usual().name)->set_version_flag("--version", version, "Show the version");
  put_options_in_groups(line);
  const manual::Program program = about(line);
  arguments = manual::help_last(std::move(arguments));
  if (const auto done = manual::answer(std::cout, program, arguments))
    return *done ? kExitFine : kExitUsage;
  put_command_first(line, arguments);
  const auto parsed = manual::parse(program, std::move(arguments), kExitUsage);
  if (!parsed.error.empty()) complain(printable(parsed.error));
  if (parsed.exit_code) return *parsed.exit_code;
  return parsed.command->action();
}

}  // namespace
}  // namespace flopinj::reduce

int main(int argc, char** argv) {
  using namespace flopinj::reduce;
  std::signal(SIGXFSZ, SIG_IGN);  // writing fails instead, and says so
  // As much as a pipe holds: its reader is woken once for it, and not for each page.
  static std::array<char, 1U << 16> output;
  if (::isatty(STDOUT_FILENO) == 0) std::setvbuf(stdout, output.data(), _IOFBF, output.size());
  if (argc > 0 && std::filesystem::path(argv[0]).filename() == "flopinj") program_name = "flopinj";
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const Failure& failure) {
    complain(failure.what());
    return failure.code();
  } catch (const std::exception& e) {
    complain(std::string("stopped: ") + e.what());
    return kExitNothing;
  }
}
