#include "habits.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "shell_word.h"

namespace flopinj {
namespace {

using Words = std::vector<std::string>;
constexpr std::string_view kToRun = "run --", kToAttach = "attach", kToReport = "report";

// --- Commands ------------------------------------------------------------------------------------

// What people type who know perf, nsys, ncu, py-spy, memray or git, and the command that they mean.
constexpr std::pair<std::string_view, std::string_view> kHabits[] = {
    {"record", kToRun},
    {"profile", kToRun},
    {"launch", kToRun},
    {"exec", kToRun},
    {"trace", kToRun},
    {"start", kToAttach},
    {"stop", "detach"},
    {"kill", "detach"},
    {"end", "detach"},
    {"cancel", "detach"},
    {"ps", "status"},
    {"list", "status"},
    {"live", "top"},
    {"watch", "top"},
    {"show", kToReport},
    {"stats", kToReport},
    {"stat", kToReport},
    {"analyze", kToReport},
    {"analyse", kToReport},
    {"view", kToReport},
    {"print", kToReport},
    {"summary", kToReport},
    {"info", kToReport},
    {"cat", kToReport},
    {"less", kToReport},
    {"head", kToReport},
    {"open", "report --format html -o report.html"},
    {"ui", "report --format html -o report.html"},
    {"gui", "report --format html -o report.html"},
    {"web", "report --format html -o report.html"},
    {"serve", "metrics --port 9178"},
    {"annotate", "report --sections kernels"},
    {"plot", "report --format html -o report.html"},
    {"export", "report --format csv -o tables/"},
    {"table", "report --all"},
    {"diff", "compare"},
    {"convert", "import"},
    {"version", "--version"},
    {"completion", "--generate bash"},
    {"completions", "--generate bash"},
    {"check", "doctor"},
    {"why", "explain"},
    {"sql", "query"},
    {"html", "report --format html -o report.html"},
    {"json", "report --format json"},
    {"csv", "report --format csv -o tables/"},
    {"markdown", "report --format markdown"},
    {"sqlite", "report --format sqlite -o report.db"},
    {"flamegraph", "report --format folded"}};

// Programs of every machine that work on files and processes: nobody profiles them.
constexpr std::string_view kOfFiles[] = {"rm",    "mv",      "cp",    "ls",    "find",
                                         "chmod", "chown",   "touch", "mkdir", "which",
                                         "pkill", "killall", "grep"};

std::string quoted(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += " " + shell_quoted(word);
  return text;
}

std::string run_line(const Words& options, const Words& program) {
  return "flopinj run" + quoted(options) + " --" + quoted(program);
}

// The form that is asked for by --type sqlite, say, or --to=json, which leaves `words`; or empty.
std::string take_form(Words& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string option = words[i].substr(0, equals);
    if (option != "--type" && option != "--format" && option != "--to" && option != "-t") continue;
    const bool alone = equals == option.npos;
    if (alone && i + 1 == words.size()) return "";
    const std::string form = alone ? words[i + 1] : words[i].substr(equals + 1);
    words.erase(words.begin() + static_cast<ptrdiff_t>(i),
                words.begin() + static_cast<ptrdiff_t>(i + (alone ? 2 : 1)));
    return form;
  }
  return "";
}

// As a shell would find it: a program by its path, or in a folder of PATH.
bool is_program(const std::string& word) {
  const auto may_run = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  if (word.find('/') != std::string::npos) return may_run(word);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (may_run(folder + "/" + word)) return true;
  return false;
}

bool is_script(const std::string& word) { return word.ends_with(".py"); }

// A script with the interpreter that there is.
Words with_interpreter(Words program) {
  const bool only_3 = !is_program("python") && is_program("python3");
  if (is_script(program.front())) program.insert(program.begin(), only_3 ? "python3" : "python");
  return program;
}

// "4711", of -p 4711, -p4711, --pid 4711 or --pid=4711 before a program; empty: there is none.
std::string process_in(const Words& words) {
  const auto is_id = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--" || is_program(words[i]) || is_script(words[i])) break;
    for (const std::string_view option : {"--pid=", "-p", "--pid"}) {
      if (word == option && i + 1 < words.size() && is_id(words[i + 1])) return words[i + 1];
      if (word.starts_with(option) && is_id(word.substr(option.size())))
        return std::string(word.substr(option.size()));
    }
  }
  return "";
}

// The options from `words[at]` on. Those that the command does not have are left out, with what may
// be their values: words that are no operand of it.
Words options_of(const Words& words, size_t& at, const CLI::App& command,
                 bool (*is_operand)(const std::string&)) {
  Words options;
  while (at < words.size() && words[at].starts_with("-") && words[at] != "--") {
    const std::string& word = words[at++];
    const CLI::Option* const option = command.get_option_no_throw(word.substr(0, word.find('=')));
    const bool alone = word.find('=') != word.npos || at == words.size();
    if (option != nullptr) {
      options.push_back(word);
      if (!alone && option->get_items_expected_max() > 0) options.push_back(words[at++]);
    } else if (!alone && !words[at].starts_with("-") && !is_operand(words[at])) {
      ++at;
    }
  }
  return options;
}

// Options go before "--", and the program behind it.
std::string run_meant_by(const Words& words, const CLI::App& run) {
  size_t at = 0;
  const Words options = options_of(
      words, at, run, [](const std::string& word) { return is_program(word) || is_script(word); });
  if (at < words.size() && words[at] == "--") ++at;
  const Words program(words.begin() + static_cast<ptrdiff_t>(at), words.end());
  return run_line(options,
                  program.empty() ? Words{"python", "train.py"} : with_interpreter(program));
}

bool is_file(const std::string& word) {
  std::error_code error;
  return std::filesystem::is_regular_file(word, error);
}

std::string command_meant_by(const Words& words, const CLI::App& command) {
  Words kept;
  for (size_t at = 0; at < words.size(); ++at) {
    for (std::string& option : options_of(words, at, command, is_file))
      kept.push_back(std::move(option));
    if (at < words.size() && words[at] != "--") kept.push_back(words[at]);
  }
  return quoted(kept);
}

// --- Programs ------------------------------------------------------------------------------------

// Of a shell, which are no programs.
constexpr std::string_view kOfShells[] = {"cd",    "export", "set",  "ulimit", "umask",
                                          "alias", "unset",  "eval", ".",      "source"};
constexpr std::string_view kOperators[] = {"&&", "||", ";", "|", ">", ">>", "<", "2>&1", "&"};

bool is_operator(std::string_view word) { return std::ranges::count(kOperators, word) > 0; }

// "NAME=VALUE"
bool is_assignment(const std::string& word) {
  const size_t name =
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  return name != word.npos && name > 0 && word[name] == '=' && (word[0] < '0' || word[0] > '9');
}

// Only a shell can do it.
bool is_of_shell(const Words& words) {
  return std::ranges::count(kOfShells, words.front()) > 0 ||
         std::ranges::any_of(words, is_operator);
}

// As one word, for a shell.
std::string script_of(const Words& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + (is_operator(word) ? word : shell_quoted(word));
  return text;
}

}  // namespace

std::string line_meant_by(const Words& words, const CLI::App& root) {
  Words rest(words.begin() + 1, words.end());
  const auto habit_named = [](std::string_view name) {
    return std::ranges::find(kHabits, name, &std::pair<std::string_view, std::string_view>::first);
  };
  const auto* habit = habit_named(words.front());
  if (words.front() == "export")
    if (const auto* const form = habit_named(take_form(rest));
        form != std::end(kHabits) && form->second.starts_with(kToReport))
      habit = form;
  if (habit != std::end(kHabits)) {
    const std::string_view command = habit->second;
    if (command.starts_with("--")) return "flopinj " + std::string(command);
    if (const std::string process = process_in(rest); !process.empty())
      return "flopinj " +
             std::string(command == kToRun || command.starts_with(kToReport) ? kToAttach
                                                                             : command) +
             " " + process;
    // perf stat -- PROGRAM
    if (command == kToRun || (!rest.empty() && rest.front() == "--"))
      return run_meant_by(rest, *root.get_subcommand("run"));
    const std::string name(command.substr(0, command.find(' ')));
    return "flopinj " + std::string(command) + command_meant_by(rest, *root.get_subcommand(name));
  }
  if (std::ranges::count(kOfFiles, words.front()) > 0) return "";
  // A single word such as `login` is taken for a command of another tool: few programs that a user
  // would profile have such a name and no arguments.
  const bool is_path = words.front().find('/') != std::string::npos;
  if (is_script(words.front()) || (is_program(words.front()) && (words.size() > 1 || is_path)))
    return run_line({}, with_interpreter(words));
  if (is_file(words.front())) return "flopinj report" + quoted(words);
  return "";
}

std::string instead_of_program(const Words& program, const Words& typed) {
  const std::string& name = program.front();
  const auto meant = [&](const Words& words) {
    return ". Did you mean: " + run_line(typed, words);
  };
  if (name.find(' ') != name.npos) {
    std::istringstream text(name);
    Words words;
    for (std::string word; text >> word;) words.push_back(word);
    words.insert(words.end(), program.begin() + 1, program.end());
    if (!words.empty() && is_assignment(words.front())) words.insert(words.begin(), "env");
    if (!words.empty() && !is_of_shell(words))
      return ". It is one word; leave the quotes out: " +
             run_line(typed, with_interpreter(std::move(words)));
    if (!words.empty()) return meant({"sh", "-c", script_of(words)});
  }
  if (is_of_shell(program))
    return meant({name == "source" ? "bash" : "sh", "-c", script_of(program)});
  if (is_assignment(name)) {
    Words words = program;
    words.insert(words.begin(), "env");
    return meant(words);
  }
  if (is_script(name)) return meant(with_interpreter(program));
  for (const std::string_view unit : {"s", "sec", "seconds", "m", "min", "minutes", "h", "hours"})
    if (name == unit && !typed.empty())
      return ". A time and its unit are one word: " + typed.back() + std::string(1, name[0]);
  return ". Is it in a folder of PATH, or else written with its path?";
}

std::string instead_of_command(const std::string& command, const Words& program) {
  constexpr std::string_view kOfRunning[] = {"top", "status", "metrics"};
  const Words some{"python", "train.py"};
  const bool of_running = std::ranges::count(kOfRunning, command) > 0;
  return run_line({}, with_interpreter(program.empty() ? some : program)) +
         (of_running ? ", and while it runs flopinj " + command : "");
}

// Programs that start another one where the variables of this one do not come, unless one of
// `unless` is among their words; and what to type instead, with "*" for the program behind it.
struct Elsewhere {
  std::string_view program;
  std::vector<std::string_view> unless;
  std::string_view instead;
};
const Elsewhere kElsewhere[] = {
    {"sudo", {"-E", "--preserve-env"}, "sudo clears variables: sudo flopinj run -- *"},
    {"su",
     {"-m", "-p", "--preserve-environment"},
     "su clears variables: su -c 'flopinj run -- ...'"},
    {"ssh", {}, "ssh takes no variables along: ssh HOST flopinj run -- PROGRAM"},
    {"docker",
     {"CUDA_INJECTION64_PATH"},
     "a container has variables and files of its own: docker run --gpus all IMAGE flopinj run -- "
     "PROGRAM, where flopinj is in the image"},
    {"podman",
     {"CUDA_INJECTION64_PATH"},
     "a container has variables and files of its own: podman run IMAGE flopinj run -- PROGRAM, "
     "where flopinj is in the image"},
    {"kubectl",
     {"CUDA_INJECTION64_PATH"},
     "a pod has variables and files of its own: kubectl exec POD -- flopinj run -- PROGRAM, where "
     "flopinj is in the image"}};

std::string where_it_is_not_seen(const Words& program) {
  const std::string name = std::filesystem::path(program.front()).filename();
  const auto* const found = std::ranges::find(kElsewhere, name, &Elsewhere::program);
  if (found == std::end(kElsewhere)) return "";
  for (const std::string& word : program)
    for (const std::string_view other : found->unless)
      if (word.find(other) != word.npos) return "";
  size_t at = 1;
  while (at < program.size() && program[at].starts_with("-")) ++at;
  const size_t star = found->instead.find('*');
  std::string text = "no program that " + name + " starts is recorded: ";
  text += found->instead.substr(0, star);
  if (star == found->instead.npos) return text;
  const std::string rest = quoted({program.begin() + static_cast<ptrdiff_t>(at), program.end()});
  return text + (rest.empty() ? "PROGRAM" : rest.substr(1));
}

// --- Options -------------------------------------------------------------------------------------

std::vector<manual::OthersOption> others_options() {
  return {
      {{"--metrics", "--metric", "--section", "--set", "--event", "--gpu-metrics-devices"},
       "flopinj chooses the counters that FLOP and bytes need"},
      {{"-p", "--pid"}, "a process is a word of its own: flopinj top PID", {"top"}},
      {{"-p", "--pid"}, "a process is a word of its own: flopinj status PID", {"status"}},
      {{"-p", "--pid"}, "a process is a word of its own: flopinj metrics PID", {"metrics"}},
      {{"-p", "--pid"}, "a process is a word of its own: flopinj detach PID", {"detach"}},
      {{"-p"},
       "ranges are chosen by --nvtx-include 'NAME/'; flopinj attach PID records a running process",
       {"run"}},
      {{"-p", "--pid"}, "a process is a word of its own: flopinj attach PID"},
      {{"--target-processes", "--subprocesses", "--follow-fork", "--trace-children",
        "--trace-fork-before-exec"},
       "the program's children are recorded too, each in a trace"},
      {{"--html", "--page"}, "here it is --report FILE.html"},
      {{"--csv", "--json", "--sqlite", "--export", "--markdown"},
       "it is for flopinj report, when the program has ended: flopinj report --format csv -o "
       "tables/",
       {"run", "attach"}},
      {{"--warmup", "--warm-up", "--skip", "--skip-steps"},
       "flopinj report --skip-steps N leaves the first steps out; here there is --start-after TIME",
       {"run"}},
      {{"--sampling-rate", "--sampling-frequency", "--frequency", "--rate", "--overhead"},
       "here it is --budget PERCENT"},
      {{"--all"}, "without a PID all processes are listed", {"status", "top"}},
      {{"--nvtx", "--kernels", "--cuda", "-t", "--trace"},
       "kernels, copies and NVTX ranges are always recorded"},
      {{"-f", "--force-overwrite"}, "here it is --force"},
      {{"--sample"}, "there is no sampling of the CPU; nothing has to be switched off"},
      {{"--stats"},
       "here it is --report FILE.html, or flopinj report when the program has ended",
       {"run"}},
      {{"-m", "--module"},
       "a module is the interpreter's: flopinj run -- python -m MODULE",
       {"run"}},
      {{"-n", "-np", "--np", "--nproc", "--nproc-per-node", "--nproc_per_node"},
       "ranks are the launcher's: flopinj run -o job-%r.pb -- torchrun --nproc-per-node N train.py",
       {"run"}},
      {{"--gpu", "--gpus", "--device", "--devices"},
       "all GPUs that the program uses are recorded; CUDA_VISIBLE_DEVICES=0 flopinj run -- python "
       "train.py gives it one",
       {"run"}},
      {{"--gpu", "--gpus", "--device", "--devices"},
       "all GPUs are looked at; CUDA_VISIBLE_DEVICES=0 flopinj doctor looks at the first",
       {"doctor"}},
      {{"-y", "--delay"}, "here it is --start-after TIME", {"run", "attach"}},
      {{"-d", "--for", "--timeout"}, "here it is --duration TIME"},
      {{"-d", "--delay", "-i", "--interval", "--refresh"}, "here it is --every SECONDS"},
      {{"-n", "--iterations"}, "here it is --once", {"top"}},
      {{"--kernel-regex", "--kernel-name-regex"}, "here it is --kernel-name regex:EXPRESSION"},
      {{"--profile-from-start"}, "here it is --capture-range cudaProfilerApi"},
      {{"--capture-range nvtx"}, "a range is chosen by --nvtx-include 'NAME/'"},
      {{"--project", "--experiment", "--run-name", "--group"},
       "here it is --label project=NAME, or --job NAME",
       {"run"}},
      {{"--tags", "--tag"}, "here it is --label NAME=VALUE", {"run"}},
      {{"--kernel-id", "--filter"}, "here it is --kernel-name NAME"},
      {{"--unit", "--units", "--print-units"}, "flopinj report says the unit of each number"},
      {{"-n", "-w", "--watch", "-f", "--follow", "--live"},
       "here it is flopinj top PID",
       {"status"}},
      {{"-w", "--wait"},
       "flopinj run ends with the program, and needs no option for that",
       {"run"}},
      {{"--live", "--watch"}, "here it is flopinj top, beside the program"},
      {{"--native"}, "kernels are counted whatever language launches them"},
      {{"--steps"},
       "here it is --launch-count N, in kernels; flopinj report --skip-steps N leaves steps out"},
      {{"--rank"},
       "it is read from RANK, SLURM_PROCID and their like; -o job-%r.pb names a file by it",
       {"run"}},
      {{"--listen"}, "here it is flopinj metrics --port PORT --address ADDRESS"},
      {{"--format", "--type", "--from", "--input-format"},
       "import sees in a file which profiler has written it: leave the option out",
       {"import"}},
      {{"--peak", "--fail-if", "--format", "--sections"},
       "it is an option of flopinj report, when the program has ended"},
      {{"--completion", "--install-completion", "--show-completion"},
       "flopinj --generate bash prints it (or zsh, or fish)"},
      {{"-v"}, "here it is --version, or --log-level debug of flopinj run"},
      {{"-v"}, "here it is --log-level debug", {"run"}},
      {{"-V"}, "here it is --version"},
      {{"-v", "-V"}, "here it is flopinj --version"}};
}

}  // namespace flopinj
