#include "count.h"

#include <collector/options/options.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "commands.h"
#include "doctor_findings.h"
#include "known_kernels/rows.h"
#include "permissions.h"
#include "process.h"
#include "terminal_colors.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using known_kernels::Row;
using known_kernels::Work;
using namespace std::chrono_literals;

// Of a process: a minute is long for what takes seconds, and short enough for a kernel that hangs.
constexpr auto kMostWait = 60s;
constexpr auto kLook = 5ms;

// --- Running -------------------------------------------------------------------------------------

// A folder that goes with its user.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "flopinj-doctor-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("cannot make a folder in " + fs::temp_directory_path().string() +
                               ": " + std::strerror(errno));
    path_ = name;
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// How a process ended that ran for kMostWait at most; empty: well.
std::string run_limited(const std::vector<std::string>& command, const fs::path& said) {
  const pid_t child = ::fork();
  if (child < 0) return std::string("cannot start a process: ") + std::strerror(errno);
  if (child == 0) {
    const int file = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(command.front().c_str(), exec_words(command).data());
    ::_exit(kExitCannotRun);
  }
  const auto end = std::chrono::steady_clock::now() + kMostWait;
  while (process_runs(child)) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);  // not waited for: a driver that hangs may not let it go
      return "did not end within " + std::to_string(kMostWait.count()) + " s";
    }
    std::this_thread::sleep_for(kLook);
  }
  const int status = wait_for(child);
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "ended with " + std::to_string(WEXITSTATUS(status));
}

using Batch = std::vector<const Row*>;

// The library's diagnostic where counters are closed to this user.
constexpr std::string_view kNoPrivileges = "counters.privileges";

struct Ran {
  std::string problem;  // of the processes; empty: there is a report
  std::string said;     // by the program and the library
  Json report;
};

std::string last_line(const std::string& said) {
  std::istringstream text(said);
  std::string line, last;
  while (std::getline(text, line))
    if (!line.empty()) last = line;
  return last;
}

Ran run_once(const Batch& batch, const Scratch& scratch) {
  const InstallTree& tree = install_tree();
  const fs::path traces = scratch.path() / "traces", said = scratch.path() / "said";
  fs::remove_all(traces);
  fs::create_directory(traces);
  std::vector<std::string> command = {fs::read_symlink("/proc/self/exe").string(),
                                      "run",
                                      "--force",
                                      "--quiet",
                                      "--budget",
                                      "none",
                                      "--plan-wait-ms",
                                      "30000",
                                      "-o",
                                      (traces / "%p.pb").string(),
                                      "--findings",
                                      (scratch.path() / batch.front()->shows).string(),
                                      "--measure-ranks",
                                      "all",
                                      "--",
                                      tree.known_kernels.string()};
  for (const Row* row : batch) command.emplace_back(row->name);
  Ran ran;
  ran.problem = run_limited(command, said);
  ran.said = file_text(said.string());
  if (!ran.problem.empty()) return ran;
  for (const auto& trace : fs::directory_iterator(traces))
    ran.report =
        Json::parse(output_of({tree.reducer.string(), "--format", "json", trace.path().string()}),
                    nullptr, false);
  if (!ran.report.is_object()) ran.problem = "left no trace that can be read";
  return ran;
}

// --- Comparing -----------------------------------------------------------------------------------

enum class Verdict : uint8_t {
  kAgrees,
  kWithin,
  kDiffers,
  kNotCounted,
  kFailed,
  kNotHere,
  kDoesNotWork
};
constexpr const char* kVerdicts[] = {
    "agrees", "within its bound", "DIFFERS",           "NOT COUNTED",
    "FAILED", "not on this chip", "does not work here"};
constexpr bool is_bad(Verdict verdict) {
  return verdict == Verdict::kDiffers || verdict == Verdict::kNotCounted ||
         verdict == Verdict::kFailed;
}

std::string verdict_text(Verdict verdict) {
  const std::string text = kVerdicts[static_cast<size_t>(verdict)];
  const bool good = verdict == Verdict::kAgrees || verdict == Verdict::kWithin;
  return good || is_bad(verdict) ? painted_verdict(text, good, STDOUT_FILENO) : text;
}

// A copy's bytes of DRAM depend on what the GPU has kept of them; a kernel's time is a part of the
// time between two events around it.
constexpr double kLeastBytes = 0.8, kMostBytes = 1.25, kLeastTime = 0.5, kMostTime = 1.05;

struct Compared {
  const Row* row;
  std::string of;       // a precision, or bytes and times
  double expected = 0;  // of a launch
  std::optional<double> counted = std::nullopt;
  Verdict verdict = Verdict::kAgrees;
  std::string why = {};   // for people here
  std::string code = {};  // the same for the file, which names nothing of this machine
};

// Null where there is none.
Json find(const Json& report, const char* table, std::string_view kernel) {
  for (const Json& row : report.value(table, Json::array()))
    if (row.value("mangled", "") == kernel) return row;
  return nullptr;
}

std::optional<double> figure(const Json& row, const std::string& key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

// A figure, or the upper bound that stands in its place.
double at_most(const Json& row, const std::string& key) {
  return figure(row, key).value_or(figure(row, key + "_at_most").value_or(0));
}

std::string grouped(double value) {
  std::string digits = std::to_string(std::llround(value));
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

class Judge {
 public:
  const std::vector<Compared>& lines() const { return lines_; }
  // Metrics that counted wrong.
  const std::set<std::string>& leave_out() const { return leave_out_; }

  bool has(std::string_view name) const {
    return std::ranges::any_of(lines_, [&](const Compared& l) { return l.row->name == name; });
  }
  // What was tried, and worked with every kernel.
  std::set<std::string> shown() const {
    std::set<std::string> words, not_shown;
    for (const Compared& line : lines_)
      if (!line.row->shows.empty() && line.verdict != Verdict::kNotHere)
        (line.verdict == Verdict::kAgrees ? words : not_shown).emplace(line.row->shows);
    for (const std::string& word : not_shown) words.erase(word);
    return words;
  }

  void not_here(const Row& row) { whole(row, Verdict::kNotHere); }
  void failed(const Row& row, const std::string& why) { whole(row, Verdict::kFailed, why); }

  // `said` by the program.
  void compare(const Row& row, const Json& report, const std::string& said) {
    const Json kernel = find(report, "kernels", row.kernel);
    if (kernel.is_null()) return failed(row, "is in no trace");
    const auto launches = kernel.value("launches", uint64_t{0});
    if (launches != row.launches)
      return whole(row, Verdict::kDiffers,
                   std::to_string(launches) + " launches were recorded, not " +
                       std::to_string(row.launches));
    if (kernel.value("unmeasured_launches", launches) != 0) return not_counted(row, report);
    if (!row.shows.empty() && kernel.value("bounded_launches", uint64_t{0}) != 0)
      return whole(row, Verdict::kDoesNotWork, "its instructions were not counted");
    if (row.way == known_kernels::Way::kTimed)
      compare_copy(row, report, kernel, said);
    else
      compare_work(row, report, kernel);
  }

 private:
  // --- Operations

  void compare_work(const Row& row, const Json& report, const Json& kernel) {
    const double launches = row.launches;
    const double doubtful = figure(kernel, "flop_doubtful").value_or(0) / launches;
    std::map<std::string, double> counted;
    for (const Json& part : report.value("kernel_precisions", Json::array()))
      if (part.value("mangled", "") == row.kernel)
        counted[part.value("precision", "")] +=
            (at_most(part, "flop") + figure(part, "op").value_or(0)) / launches;
    const bool bounded = kernel.value("bounded_launches", uint64_t{0}) != 0;
    for (const Work& work : row.work) {
      if (work.precision.empty()) continue;
      const std::string precision(work.precision);
      const auto expected = static_cast<double>(known_kernels::operations(row, work));
      compare_precision(row, report, precision, expected, counted[precision], doubtful, bounded);
      counted.erase(precision);
    }
    for (const auto& [precision, got] : counted)  // what it should not have done at all
      if (!explained(row, precision, 0, got, doubtful))
        compare_precision(row, report, precision, 0, got, doubtful, bounded);
  }

  void compare_precision(const Row& row, const Json& report, const std::string& precision,
                         double expected, double got, double doubtful, bool bounded) {
    Compared line{.row = &row, .of = precision, .expected = expected, .counted = got};
    if (!explained(row, precision, expected, got, doubtful)) {
      line.verdict = row.shows.empty() ? Verdict::kDiffers : Verdict::kDoesNotWork;
      if (row.shows.empty()) blame(row, precision, report);
    } else if (bounded && got != expected) {
      line.verdict = Verdict::kWithin;
    }
    lines_.push_back(line);
  }

  // Instructions that load constants or move values may be counted, too, and all are where they
  // could only be bounded.
  static bool explained(const Row& row, std::string_view precision, double expected, double got,
                        double doubtful) {
    const double extra = got - expected;
    const bool instructions = !precision.starts_with("tensor_");
    if (extra >= 0 && extra <= (instructions ? doubtful : 0)) return true;
    return row.work[0].unit == known_kernels::kEndOfProducts.unit &&
           precision == known_kernels::kEndOfProducts.precision &&
           extra ==
               static_cast<double>(known_kernels::operations(row, known_kernels::kEndOfProducts));
  }

  // Metrics of the precision that counted anything; all of them, where none did.
  void blame(const Row& row, std::string_view precision, const Json& report) {
    std::set<std::string> all, some;
    for (const Json& sample : report.value("samples", Json::array())) {
      if (sample.value("kernel", "") != row.kernel || sample.value("precision", "") != precision)
        continue;
      all.insert(sample.value("metric", ""));
      if (figure(sample, "max").value_or(0) > 0) some.insert(sample.value("metric", ""));
    }
    leave_out_.merge(some.empty() ? all : some);
  }

  // --- Bytes and times

  void compare_copy(const Row& row, const Json& report, const Json& kernel,
                    const std::string& said) {
    const auto number = [&](const char* key) {
      return std::strtod(std::string(value_of(said, key)).c_str(), nullptr);
    };
    // GPUs that have no memory of their own count no bytes of it.
    if (const auto bytes = figure(find(report, "roofline", row.kernel), "dram_bytes"))
      compare_range(row, "DRAM bytes", 2 * number("bytes"), *bytes / row.launches, kLeastBytes,
                    kMostBytes);
    else
      not_here(row);
    compare_range(row, "time in ns", number("duration"), figure(kernel, "median_ns").value_or(0),
                  kLeastTime, kMostTime);
    double untimed = 0;
    for (const Json& device : report.value("device_time", Json::array()))
      untimed += figure(device, "launches_unplaced").value_or(0);
    if (untimed == 0) return;
    lines_.back().verdict = Verdict::kNotCounted;
    lines_.back().why = grouped(untimed) + " launches have no time";
  }

  void compare_range(const Row& row, const char* of, double expected, double got, double least,
                     double most) {
    const bool agrees = got >= least * expected && got <= most * expected;
    lines_.push_back({.row = &row,
                      .of = of,
                      .expected = expected,
                      .counted = got,
                      .verdict = agrees ? Verdict::kAgrees : Verdict::kDiffers});
  }

  // --- All of a row

  void not_counted(const Row& row, const Json& report) {
    Json first = Json::object();
    for (const Json& diagnostic : report.value("diagnostics", Json::array()))
      if (first.empty() && diagnostic.value("severity", "") != "info") first = diagnostic;
    whole(row, Verdict::kNotCounted, first.value("message", "its ledger says " + reason(report)));
    lines_.back().code = first.value("code", "");
  }

  // Of most launches that have no count.
  static std::string reason(const Json& report) {
    std::string found = "no reason";
    uint64_t most = 0;
    for (const Json& line : report.value("ledger_reasons", Json::array()))
      if (line.value("fate", "") == "unmeasured" && line.value("launches", uint64_t{0}) > most) {
        most = line.value("launches", uint64_t{0});
        found = line.value("reason", "");
      }
    return found;
  }

  void whole(const Row& row, Verdict verdict, const std::string& why = "") {
    if (!row.shows.empty() && is_bad(verdict)) verdict = Verdict::kDoesNotWork;
    const Work& work = row.work[0];
    lines_.push_back({.row = &row,
                      .of = std::string(work.precision),
                      .expected = static_cast<double>(known_kernels::operations(row, work)),
                      .verdict = verdict,
                      .why = why});
  }

  std::vector<Compared> lines_;
  std::set<std::string> leave_out_;
};

// --- Saying --------------------------------------------------------------------------------------

void print(const std::vector<Compared>& lines) {
  std::cout << std::left << std::setw(24) << "known kernel" << std::setw(14) << "precision"
            << std::right << std::setw(16) << "expected" << std::setw(16) << "counted"
            << std::setw(9) << "ratio"
            << "  verdict\n";
  for (const Compared& line : lines) {
    std::ostringstream ratio;
    if (line.counted && line.expected != 0)
      ratio << std::fixed << std::setprecision(4) << *line.counted / line.expected;
    std::cout << std::left << std::setw(24) << line.row->name << std::setw(14) << line.of
              << std::right << std::setw(16)
              << (line.verdict == Verdict::kNotHere ? "" : grouped(line.expected)) << std::setw(16)
              << (line.counted ? grouped(*line.counted) : "") << std::setw(9) << ratio.str() << "  "
              << verdict_text(line.verdict) << "\n";
    if (!line.why.empty()) std::cout << "      " << line.why << "\n";
  }
}

Json found_on(const Json& report) {
  const Json& device = report["devices"][0];
  const Json& process = report["processes"][0];
  return {{"version", 1},
          {"flopinj", process["producer"]},
          {"simulated", process["simulated"]},
          {"gpu", device["device"]},
          {"chip", device["chip"]},
          {"compute_capability", device["compute_capability"]},
          {"driver", driver_release(file_text("/proc/driver/nvidia/version"))},
          {"cuda", process["driver_version"]},
          {"cupti", process["cupti_version"]}};
}

std::string file_name(const Json& found) {
  return findings_name(found["simulated"].get<bool>(), found["chip"].get<std::string>(),
                       found["cuda"].get<uint32_t>(), found["cupti"].get<uint32_t>());
}

// Nothing in it names the machine or its user.
Json findings(const Json& report, const Judge& judge) {
  Json rows = Json::array();
  for (const Compared& line : judge.lines()) {
    Json row = {{"name", line.row->name},
                {"kernel", line.row->kernel},
                {"launch",
                 std::to_string(known_kernels::kBlocks) + "x" + std::to_string(line.row->threads)},
                {"alone", line.row->alone},
                {"of", line.of},
                {"expected", std::llround(line.expected)},
                {"counted", line.counted ? Json(std::llround(*line.counted)) : Json()},
                {"verdict", kVerdicts[static_cast<size_t>(line.verdict)]}};
    if (!line.code.empty()) row["code"] = line.code;
    rows.push_back(row);
  }
  Json found = found_on(report);
  found[kLeaveOut] = judge.leave_out();
  found[kUse] = judge.shown();
  found["rows"] = rows;
  return found;
}

// The file's name, where it was written.
std::string write_findings(const Json& found) {
  const char* const given = std::getenv("FLOPINJ_FINDINGS");
  const std::string folder =
      given != nullptr && *given != '\0' ? std::string(given) : usual_findings_folder();
  if (folder.empty()) throw std::runtime_error("neither XDG_STATE_HOME nor HOME names a folder");
  const fs::path file = fs::path(folder) / file_name(found);
  fs::create_directories(folder);
  const fs::path beside = file.string() + "." + std::to_string(::getpid());
  std::ofstream(beside) << found.dump(1) << "\n";
  fs::rename(beside, file);
  return file.string();
}

uint32_t capability_of_first_gpu() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  using Attribute = int(int*, int, int);
  auto* const attribute =
      cuda == nullptr ? nullptr : reinterpret_cast<Attribute*>(dlsym(cuda, "cuDeviceGetAttribute"));
  constexpr int kMajor = 75, kMinor = 76, kDevice = 0;
  int major = 0, minor = 0;
  if (attribute == nullptr || attribute(&major, kMajor, kDevice) != 0 ||
      attribute(&minor, kMinor, kDevice) != 0)
    throw std::runtime_error("the driver does not say which GPU it has");
  return static_cast<uint32_t>(10 * major + minor);
}

// For kernels of which it is tried whether their instructions can be counted.
void write_as_if_shown(const Json& report, std::string_view word, const Scratch& scratch) {
  const fs::path folder = scratch.path() / word;
  fs::create_directories(folder);
  Json assumed = found_on(report);
  assumed[kLeaveOut] = Json::array();
  assumed[kUse] = {kRegisters, kHandedOn};
  std::ofstream(folder / file_name(assumed)) << assumed.dump(1);
}

// Rows that run in one process: those of one text of kernels.
std::vector<Batch> batches(uint32_t capability) {
  std::vector<Batch> all;
  for (const Row& row : known_kernels::rows()) {
    if (!row.runs_on(capability)) continue;
    const bool joins = !row.alone && !all.empty() && !all.back().front()->alone &&
                       all.back().front()->module == row.module;
    if (!joins) all.emplace_back();
    all.back().push_back(&row);
  }
  return all;
}

}  // namespace

int count_known_kernels() {
  // What a job's environment says is for its programs.
  for (const RecordingOption& option : recording_options())
    if (option.variable != "FLOPINJ_CUPTI" && option.variable != "FLOPINJ_FINDINGS")
      unsetenv(std::string(option.variable).c_str());
  const uint32_t capability = capability_of_first_gpu();
  const Scratch scratch;
  Judge judge;
  Json report;
  const auto run = [&](const auto& self, const Batch& batch) -> void {
    if (const auto word = batch.front()->shows; !word.empty() && !report.is_null())
      write_as_if_shown(report, word, scratch);
    const Ran ran = run_once(batch, scratch);
    if (ran.problem.empty()) {
      for (const Row* row : batch) judge.compare(*row, ran.report, ran.said);
      report = ran.report;
    } else if (batch.size() > 1) {  // which of them was it?
      for (const Row* row : batch) self(self, {row});
    } else {
      const std::string last = last_line(ran.said);
      judge.failed(*batch.front(), ran.problem + (last.empty() ? "" : ": " + last));
    }
  };
  for (const Batch& batch : batches(capability)) run(run, batch);
  for (const Row& row : known_kernels::rows())
    if (!judge.has(row.name)) judge.not_here(row);
  print(judge.lines());
  const bool fine = std::ranges::none_of(judge.lines(),
                                         [](const Compared& line) { return is_bad(line.verdict); });
  if (report.is_null()) {
    std::cout << "FAIL  nothing was recorded, so nothing was found\n";
    return kExitCheckFailed;
  }
  if (!judge.leave_out().empty()) {
    std::cout << "Recordings on this chip, driver and CUPTI leave out groups with\n";
    for (const std::string& metric : judge.leave_out()) std::cout << "      " << metric << "\n";
  }
  std::cout << "findings: " << write_findings(findings(report, judge)) << "\n";
  const bool closed = std::ranges::any_of(
      judge.lines(), [](const Compared& line) { return line.code == kNoPrivileges; });
  return fine ? kExitOk : closed ? kExitPermission : kExitCheckFailed;
}

}  // namespace flopinj
