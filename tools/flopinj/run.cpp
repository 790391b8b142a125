#include <collector/options/cupti_file.h>
#include <collector/options/options.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>
#include <string_view>
#include <system_error>

#include "commands.h"
#include "habits.h"
#include "output.h"
#include "parent.h"
#include "printable_text.h"
#include "process.h"
#include "reducer.h"
#include "run_notice.h"
#include "shell_word.h"
#include "watch.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCudaInjection = "CUDA_INJECTION64_PATH";
constexpr const char* kNvtxInjection = "NVTX_INJECTION64_PATH";
constexpr std::string_view kOutput = "FLOPINJ_OUTPUT", kCupti = "FLOPINJ_CUPTI",
                           kQuiet = "FLOPINJ_QUIET", kForce = "FLOPINJ_FORCE",
                           kMode = "FLOPINJ_MODE", kRun = "FLOPINJ_RUN",
                           kFindings = "FLOPINJ_FINDINGS", kPlanWait = "FLOPINJ_PLAN_WAIT_MS",
                           kPreload = "LD_PRELOAD", kVariablePrefix = "FLOPINJ_";
// Of flopinj fleet, of pip install and of tools/dev.
constexpr std::string_view kVariablesOfOthers[] = {"FLOPINJ_LAKE", "FLOPINJ_ARCHIVE",
                                                   "FLOPINJ_JOBS"};

// --- The program's environment -------------------------------------------------------------------

// A variable of the program to run. `is_list`: its value goes before what the variable holds, with
// a colon between.
struct Variable {
  std::string name, value;
  bool is_list = false;
};

void apply(const std::vector<Variable>& environment) {
  for (const Variable& variable : environment) {
    const char* old = variable.is_list ? std::getenv(variable.name.c_str()) : nullptr;
    const bool any = old != nullptr && *old != '\0';
    setenv(variable.name.c_str(), (variable.value + (any ? ":" : "") + (any ? old : "")).c_str(),
           1);
  }
}

// Lines for a POSIX shell that make the same changes there.
std::string shell_exports(const std::vector<Variable>& environment) {
  std::string lines;
  for (const auto& [name, value, is_list] : environment)
    lines += "export " + name + "=" + shell_quoted(value) +
             (is_list ? "\"${" + name + ":+:$" + name + "}\"" : "") + "\n";
  return lines;
}

// --- What was asked for, and whether it can be ---------------------------------------------------

// The readers of these variables split them at such characters and know no quoting.
void require_plain(const fs::path& path, const char* separators, const char* option) {
  if (path.string().find_first_of(separators) == std::string::npos) return;
  throw std::invalid_argument(
      std::string(option) + " cannot be used from '" + path.string() +
      "': lists of paths are split at spaces and colons; install flopinj in another folder");
}

void require_file(const fs::path& path, const char* what) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return;
  throw std::runtime_error(path.string() + " is missing, " + what +
                           " needs it; build or install all of flopinj");
}

// Another tool's injection is replaced, as the variables hold one library only. A line says so.
void warn_if_taken(const char* variable, const fs::path& ours) {
  const char* other = std::getenv(variable);
  if (other == nullptr || *other == '\0') return;
  std::error_code error;
  if (fs::weakly_canonical(other, error) == ours) return;
  std::cerr << "flopinj: " << variable << " was " << other << "; replaced for this run\n";
}

// As the library will read it: what was given, else what the environment has.
std::string setting(const Options& options, std::string_view variable) {
  std::string value;
  if (const auto given = options.given.find(std::string(variable)); given != options.given.end())
    for (const std::string& one : given->second) value += (value.empty() ? "" : ",") + one;
  if (!value.empty()) return value;
  const char* const inherited = std::getenv(std::string(variable).c_str());
  return inherited != nullptr ? inherited : "";
}

std::string output_name(const Options& options) {
  std::string name = setting(options, kOutput);
  if (name.empty()) name = Settings{}.output;
  if (const std::string problem = output_name_problem(name); !problem.empty())
    throw std::invalid_argument(problem);
  return absolute_output_name(name, fs::current_path());  // whatever folder the program changes to
}

bool quiet(const Options& options) { return setting(options, kQuiet) == "1"; }

// Of a run within a run: that of the outer one.
uint64_t run_id() {
  const char* const outer = std::getenv(kRun.data());
  if (const auto token = RunToken::parse(outer != nullptr ? outer : "")) return token->id;
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// Why the page could not be written when the program has ended; empty where it can.
std::string page_problem(const std::string& page, bool force) {
  if (page.empty()) return {};
  for (const char* other : {".pdf", ".png", ".json", ".csv", ".pb"})
    if (page.ends_with(other))
      return page + ": it is written as a page for a browser; name it NAME.html";
  return output_problem(absolute_output_name(page, fs::current_path()), force);
}

// What a variable holds is as an option's value. The library would say what is wrong only in a
// program that starts CUDA.
void refuse_wrong_values(const Options& options) {
  for (const RecordingOption& option : recording_options()) {
    if (option.option.empty()) continue;  // it is no user's
    const std::string variable(option.variable);
    const char* const value = std::getenv(variable.c_str());
    const bool given = options.given.contains(variable) && !options.given.at(variable).empty();
    Settings ignored;
    if (value == nullptr || *value == '\0' || given || option.read(ignored, value)) continue;
    constexpr size_t kShown = 80;
    throw std::invalid_argument(variable + "=" + printable(std::string(value).substr(0, kShown)) +
                                " is not understood: it takes " + std::string(option.takes));
  }
}

// A misspelt variable would be as if it were not set; the library says so only in a program that
// starts CUDA. It is dropped, so that the library does not say it again.
void drop_unknown_variables() {
  for (const std::string& name : unknown_variables()) {
    say(unknown_variable(name));
    unsetenv(name.c_str());
  }
}

// What would leave the program unprofiled is found now, and not after hours. Returns the socket of
// the run's watcher, empty where there is none.
std::string prepare_recording(const Options& options, const std::string& output,
                              const RunSocket* listener) {
  if (setting(options, kMode) == "off") {
    if (!quiet(options)) std::cerr << "flopinj: mode off: nothing is recorded\n";
    return {};
  }
  const bool force = setting(options, kForce) == "1";
  if (const std::string problem = output_problem(output, force); !problem.empty())
    throw CannotRecord(problem + ". Nothing was started");
  if (const std::string why = where_it_is_not_seen(options.program);
      !why.empty() && !quiet(options))
    say(why);
  RunToken token;
  token.id = run_id();
  if (force) token.started_ns = output_clock_ns(output);
  if (listener != nullptr)
    token.socket = listener->name();
  else if (!quiet(options))
    token.socket = start_watcher(options.program.front(), options.simulate);
  setenv(kRun.data(), token.text().c_str(), 1);
  return token.socket;
}

int exec_program(const std::vector<std::string>& program, const std::vector<std::string>& typed,
                 const std::string& watcher) {
  execvp(program.front().c_str(), exec_words(program).data());
  const int error = errno;
  if (!watcher.empty()) send_run_notice(watcher, {RunEvent::kRefused, {}});
  std::cerr << "flopinj: cannot run '" << program.front() << "': ";
  if (error == ENOENT) {
    std::cerr << "no such program, or its interpreter is missing"
              << instead_of_program(program, typed) << "\n";
    return kExitNotFound;
  }
  const fs::path& name = program.front();
  std::error_code ignored;
  std::cerr << std::strerror(error)
            << (error != EACCES ? ""
                : fs::is_directory(name, ignored)
                    ? ": it is a folder; name a program in it"
                    : ": chmod +x makes a file a program; or name its "
                      "interpreter before it, as in flopinj run -- bash " +
                          shell_quoted(program.front()))
            << "\n";
  return kExitNotExecutable;
}

// --- With a summary, or a page -------------------------------------------------------------------

// `flopinj run --summary`, `--report`: the program as a child, and at its end a summary in the
// place of each trace, or the report of all as a page.
//
// Without them `flopinj run` becomes the program, so that nothing of ours outlives it; a scheduler
// may end a job's processes as soon as the program has gone. To make either then, it stays the
// program's parent: it hands signals on, and ends as the program did.

// "job/rank0.sum" of "job/rank0.pb".
std::string summary_name(const std::string& trace) {
  constexpr std::string_view kTrace = ".pb";
  const bool usual = trace.ends_with(kTrace);
  return trace.substr(0, trace.size() - (usual ? kTrace.size() : 0)) + ".sum";
}

// A trace is removed when its summary is whole, and else is kept. The files that there are then.
std::vector<std::string> condense(const std::vector<std::string>& traces, bool force, bool quiet) {
  std::vector<std::string> made, kept;
  for (const std::string& trace : traces) {
    const std::string summary = summary_name(trace);
    std::error_code error;
    std::vector<std::string> words = {"merge", "-o", summary, trace};
    if (force) words.emplace_back("--force");
    if (!fs::is_regular_file(trace, error) || reduce(words) != 0) {
      kept.push_back(trace);
      continue;
    }
    made.push_back(summary);
    if (!fs::remove(trace, error)) say("cannot remove " + trace + ": " + error.message());
  }
  if (!kept.empty())
    say("no summary could be made of" + names_text(kept) + ", which is kept. Next: flopinj report" +
        names_text(kept));
  if (!made.empty() && !quiet)
    say((made.size() == 1 ? "condensed the trace"
                          : "condensed " + std::to_string(made.size()) + " traces") +
        ". Next: flopinj report" + names_text(made));
  made.insert(made.end(), kept.begin(), kept.end());
  return made;
}

// What is made says what was recorded, so that the library need not. It is made when the program
// has ended, and the processes of the run have said so to the socket.
int run_to_the_end(const Options& options, std::vector<Variable> environment) {
  const std::string output = output_name(options), page = options.page;
  const char* const option = options.summary ? "--summary" : "--report";
  const bool force = setting(options, kForce) == "1";
  std::error_code error;
  if (output == "-" || output.starts_with("unix:") || fs::is_fifo(output, error) ||
      fs::is_character_file(output, error))
    throw std::invalid_argument(std::string(option) + " needs traces in files, and -o " + output +
                                " is none");
  if (const std::string problem = page_problem(page, force); !problem.empty())
    throw CannotRecord("--report: " + problem + ". Nothing was started");
  require_file(install_tree().reducer, option);
  RunSocket socket;
  if (socket.name().empty())
    throw std::runtime_error(std::string("no socket can be opened, which ") + option + " needs");
  const std::string name = prepare_recording(options, output, &socket);
  if (options.summary) environment.push_back({std::string(kQuiet), "1"});
  const pid_t program = start_program([&] {
    apply(environment);
    return exec_program(options.program, options.typed, name);
  });
  if (program < 0)
    throw std::system_error(errno, std::generic_category(), "cannot start a process");
  RunRecord record(options.program.front(), options.simulate);
  const int status = wait_and_listen(program, socket, record);
  const bool silent = quiet(options);
  std::vector<std::string> files = record.traces(process_runs);
  if (options.summary) files = condense(files, force, silent);
  if (!page.empty() && files.empty())
    say("no page was written: nothing was recorded");
  else if (!page.empty() && write_page(page, files, force) && !silent)
    say("the report as a page: " + page);
  if (!silent)
    for (const std::string& line : record.last_words(process_runs, false)) say(line);
  return end_as(status);
}

// --- The environment that the options ask for ----------------------------------------------------

// The libcupti that the user named; empty where none was.
std::string named_cupti(const Options& options) {
  const std::string named = setting(options, kCupti);
  if (named.empty()) return {};
  const CuptiFile found = find_cupti_file(named, fs::current_path());
  if (found.problem.empty()) return found.path;
  throw std::invalid_argument("--cupti: " + found.problem);
}

// The simulated GPU in the place of the machine's.
std::vector<Variable> simulator_environment(const Options& options) {
  const fs::path& simgpu = install_tree().simgpu;
  require_plain(simgpu, ":;", "--simulate");
  require_file(simgpu / "libcuda.so.1", "--simulate");
  std::vector<Variable> environment = {{"LD_LIBRARY_PATH", simgpu, true}};
  if (options.sim_devices)
    environment.push_back({"SIMGPU_DEVICES", std::to_string(*options.sim_devices)});
  if (!options.sim_chip.empty()) environment.push_back({"SIMGPU_CHIP", options.sim_chip});
  return environment;
}

// What the user has not set otherwise. On the simulated GPU all counters of a launch are known from
// its one run, and reading them takes the program no time: so every launch is measured, from the
// first one on, which waits for its plan.
void add_simulated_settings(const Options& options, std::vector<Variable>& environment) {
  const std::pair<std::string_view, std::string> settings[] = {
      {kMode, name_of(Mode::kFull)}, {kPlanWait, std::to_string(kMostPlanWaitMs)}};
  for (const auto& [variable, value] : settings)
    if (setting(options, variable).empty())
      environment.push_back({std::string(variable), value, false});
}

std::vector<Variable> injection_environment(const Options& options) {
  const InstallTree& tree = install_tree();
  require_file(tree.library, "run");
  std::vector<Variable> environment = {{kCudaInjection, tree.library},
                                       {kNvtxInjection, tree.library}};
  for (auto& [name, value] : recording_variables(options)) environment.push_back({name, value});
  if (const std::string cupti = named_cupti(options); !cupti.empty()) {
    require_plain(cupti, " :", "--cupti");
    environment.push_back({std::string(kPreload), cupti, true});
  }
  if (options.preload) {
    require_plain(tree.library, " :", "--preload");
    environment.push_back({std::string(kPreload), tree.library, true});
  }
  if (options.torch) {
    require_plain(tree.torch, ":", "--torch");
    require_file(tree.torch / "sitecustomize.py", "--torch");
    environment.push_back({"PYTHONPATH", tree.torch, true});
  }
  if (options.simulate) {
    for (const Variable& variable : simulator_environment(options)) environment.push_back(variable);
    add_simulated_settings(options, environment);
  }
  return environment;
}

}  // namespace

const InstallTree& install_tree() {
  static const InstallTree tree = [] {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (error) throw std::runtime_error("cannot read /proc/self/exe: " + error.message());
    const fs::path root = self.parent_path().parent_path();
    return InstallTree{
        .library = fs::weakly_canonical(root / "lib" / "libflopinj.so"),
        .reducer = root / "bin" / "flopreduce",
        .importer = root / "bin" / "flopimport",
        .simgpu = fs::weakly_canonical(root / "lib" / "flopinj" / "simgpu"),
        .torch = fs::weakly_canonical(root / "lib" / "flopinj" / "torch"),
        .known_kernels = root / "lib" / "flopinj" / "known_kernels" / "known_kernels",
        .trainer = root / "lib" / "flopinj" / "trainer" / "trainer"};
  }();
  return tree;
}

std::vector<std::string> unknown_variables() {
  std::vector<std::string> unknown;
  for (const char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view all = *entry;
    const std::string_view name = all.substr(0, all.find('='));
    if (name.starts_with(kVariablePrefix) && std::ranges::count(kVariablesOfOthers, name) == 0 &&
        recording_option_of(name) == nullptr)
      unknown.emplace_back(name);
  }
  return unknown;
}

std::vector<std::pair<std::string, std::string>> recording_variables(const Options& options) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const RecordingOption& option : recording_options()) {
    const auto given = options.given.find(std::string(option.variable));
    std::string value = given != options.given.end() ? setting(options, option.variable) : "";
    if (option.variable == kOutput) {
      value = output_name(options);
    } else if (option.variable == kQuiet) {
      if (value.empty() && !quiet(options)) value = "0";
    } else if (option.variable == kCupti && !value.empty()) {
      value = named_cupti(options);
    } else if (option.variable == kFindings && !value.empty()) {
      value = (fs::current_path() / value).string();
    }
    // Answers of the library about itself have a setting a line.
    if (value.find('\n') != value.npos)
      throw std::invalid_argument(std::string(option.option.substr(option.option.find(',') + 1)) +
                                  ": '" + printable(value) + "' has a line break in it");
    if (!value.empty()) variables.emplace_back(option.variable, value);
  }
  return variables;
}

int doctor_of_simulator(const Options& options) {
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe").string(), "doctor"};
  if (options.count) words.emplace_back("--count");
  apply(simulator_environment(options));
  return exec_program(words, {}, {});
}

int run(const Options& options) {
  const std::vector<Variable> environment = injection_environment(options);
  if (options.print_env) {
    std::cout << shell_exports(environment) << std::flush;
    return kExitOk;
  }
  if (const std::string cupti = named_cupti(options); !cupti.empty() && !quiet(options))
    say(cupti + " is preloaded, in place of a CUPTI of the program's own");
  refuse_wrong_values(options);
  drop_unknown_variables();
  warn_if_taken(kCudaInjection, install_tree().library);
  warn_if_taken(kNvtxInjection, install_tree().library);
  if ((options.summary || !options.page.empty()) && setting(options, kMode) != "off")
    return run_to_the_end(options, environment);
  apply(environment);
  return exec_program(options.program, options.typed,
                      prepare_recording(options, output_name(options), nullptr));
}

}  // namespace flopinj
