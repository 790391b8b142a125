#include "count.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
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

namespace flopinj {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using known_kernels::Row;
using known_kernels::Work;
using namespace std::chrono_literals;

// Of a process: a minute is long for what takes seconds, and short enough for a kernel that hangs.
constexpr auto kMostTime = 60s;
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

// How a process ended that ran for kMostTime at most; empty: well.
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
  const auto end = std::chrono::steady_clock::now() + kMostTime;
  while (process_runs(child)) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);  // not waited for: a driver that hangs may not let it go
      return "did not end within " + std::to_string(kMostTime.count()) + " s";
    }
    std::this_thread::sleep_for(kLook);
  }
  const int status = wait_for(child);
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "ended with " + std::to_string(WEXITSTATUS(status));
}

using Batch = std::vector<const Row*>;

struct Ran {
  std::string problem;  // of the processes; empty: there is a report
  std::string said;     // by the program and the library, last line
  Json report;
};

std::string last_line(const fs::path& file) {
  std::istringstream text(file_text(file.string()));
  std::string line, last;
  while (std::getline(text, line))
    if (!line.empty()) last = line;
  return last;
}

Ran run_once(const Batch& batch, const Scratch& scratch) {
  const InstallTree& tree = install_tree();
  const fs::path trace = scratch.path() / "trace.pb", said = scratch.path() / "said";
  std::vector<std::string> command = {fs::read_symlink("/proc/self/exe").string(),
                                      "run",
                                      "--force",
                                      "--quiet",
                                      "--budget",
                                      "none",
                                      "--plan-wait-ms",
                                      "60000",
                                      "-o",
                                      trace.string(),
                                      "--findings",
                                      scratch.path().string(),
                                      "--",
                                      tree.known_kernels.string()};
  for (const Row* row : batch) command.emplace_back(row->name);
  std::error_code error;
  fs::remove(trace, error);
  Ran ran;
  ran.problem = run_limited(command, said);
  ran.said = last_line(said);
  if (!ran.problem.empty()) return ran;
  ran.report = Json::parse(output_of({tree.reducer.string(), "--format", "json", trace.string()}),
                           nullptr, false);
  if (ran.report.is_discarded()) ran.problem = "left no trace that can be read";
  return ran;
}

// --- Comparing -----------------------------------------------------------------------------------

enum class Verdict : uint8_t { kAgrees, kDiffers, kNotCounted, kFailed, kNotHere };
constexpr const char* kVerdicts[] = {"agrees", "DIFFERS", "NOT COUNTED", "FAILED",
                                     "not on this chip"};

struct Compared {
  const Row* row;
  std::string precision;
  uint64_t expected = 0;
  std::optional<double> counted;
  Verdict verdict = Verdict::kAgrees;
  std::string why, code;  // for people here; for the file, which must name nothing of this machine
};

class Judge {
 public:
  // Metrics that counted wrong.
  const std::set<std::string>& leave_out() const { return leave_out_; }
  const std::vector<Compared>& lines() const { return lines_; }

  bool has(std::string_view name) const {
    return std::ranges::any_of(lines_,
                               [&](const Compared& line) { return line.row->name == name; });
  }

  void not_here(const Row& row) { add(row, row.work[0], Verdict::kNotHere); }
  void failed(const Row& row, const std::string& why) {
    add(row, row.work[0], Verdict::kFailed, why);
  }

  void compare(const Row& row, const Json& report) {
    const Json kernel = find(report, "kernels", row.kernel);
    if (kernel.is_null()) return add(row, row.work[0], Verdict::kFailed, "is in no trace");
    const auto launches = kernel.value("launches", uint64_t{0});
    if (launches != known_kernels::kLaunches)
      return add(row, row.work[0], Verdict::kDiffers,
                 number(launches) + " launches recorded, not " + number(known_kernels::kLaunches));
    if (kernel.value("unmeasured_launches", launches) != 0) return not_counted(row, report);
    std::map<std::string, double> counted = by_precision(row, report, launches);
    const double doubtful = exact(kernel, "flop_doubtful") / static_cast<double>(launches);
    for (const Work& work : row.work) {
      if (work.precision.empty()) continue;
      const double got = counted[std::string(work.precision)];
      counted.erase(std::string(work.precision));
      compare(row, work, got, doubtful, report);
    }
    // What it should not have done at all.
    for (const auto& [precision, got] : counted)
      if (!explained(row, precision, 0, got, doubtful))
        compare(row, Work{.precision = precision}, got, doubtful, report);
  }

 private:
  static std::string number(uint64_t value) { return std::to_string(value); }

  static Json find(const Json& report, const char* table, std::string_view kernel) {
    for (const Json& row : report.value(table, Json::array()))
      if (row.value("mangled", "") == kernel) return row;
    return nullptr;
  }

  static double exact(const Json& row, const std::string& key) {
    const Json& value = row.contains(key) ? row[key] : Json();
    return value.is_number() ? value.get<double>() : 0;
  }

  // Of a launch.
  static std::map<std::string, double> by_precision(const Row& row, const Json& report,
                                                    uint64_t launches) {
    std::map<std::string, double> counted;
    for (const Json& part : report.value("kernel_precisions", Json::array()))
      if (part.value("mangled", "") == row.kernel)
        counted[part.value("precision", "")] +=
            (exact(part, "flop") + exact(part, "op")) / static_cast<double>(launches);
    return counted;
  }

  // Instructions that load constants or move values may be counted, too.
  static bool explained(const Row& row, std::string_view precision, double expected, double got,
                        double doubtful) {
    const bool instructions = !precision.starts_with("tensor_");
    if (got >= expected && got - expected <= (instructions ? doubtful : 0)) return true;
    return row.work[0].unit == known_kernels::kEndOfProducts.unit &&
           precision == known_kernels::kEndOfProducts.precision &&
           got - expected ==
               static_cast<double>(known_kernels::operations(row, known_kernels::kEndOfProducts));
  }

  void compare(const Row& row, const Work& work, double got, double doubtful, const Json& report) {
    const uint64_t expected = known_kernels::operations(row, work);
    const bool agrees =
        explained(row, work.precision, static_cast<double>(expected), got, doubtful);
    add(row, work, agrees ? Verdict::kAgrees : Verdict::kDiffers);
    lines_.back().counted = got;
    if (!agrees) blame(row, work.precision, report);
  }

  // Metrics of the precision that counted anything; all of them, where none did.
  void blame(const Row& row, std::string_view precision, const Json& report) {
    std::set<std::string> all, some;
    for (const Json& sample : report.value("samples", Json::array())) {
      if (sample.value("kernel", "") != row.kernel || sample.value("precision", "") != precision)
        continue;
      all.insert(sample.value("metric", ""));
      if (exact(sample, "max") > 0) some.insert(sample.value("metric", ""));
    }
    leave_out_.merge(some.empty() ? all : some);
  }

  void not_counted(const Row& row, const Json& report) {
    const Json diagnostics = report.value("diagnostics", Json::array());
    const Json last = diagnostics.empty() ? Json::object() : diagnostics.front();
    add(row, row.work[0], Verdict::kNotCounted, last.value("message", "it does not say why"));
    lines_.back().code = last.value("code", "");
  }

  void add(const Row& row, const Work& work, Verdict verdict, const std::string& why = "") {
    lines_.push_back({.row = &row,
                      .precision = std::string(work.precision),
                      .expected = known_kernels::operations(row, work),
                      .counted = std::nullopt,
                      .verdict = verdict,
                      .why = why,
                      .code = ""});
  }

  std::vector<Compared> lines_;
  std::set<std::string> leave_out_;
};

// --- Saying --------------------------------------------------------------------------------------

std::string grouped(double value) {
  std::string digits = std::to_string(static_cast<uint64_t>(value + 0.5));
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

void print(const std::vector<Compared>& lines) {
  std::cout << std::left << std::setw(24) << "known kernel" << std::setw(14) << "precision"
            << std::right << std::setw(16) << "expected" << std::setw(16) << "counted"
            << std::setw(9) << "ratio"
            << "  verdict\n";
  for (const Compared& line : lines) {
    std::ostringstream ratio;
    if (line.counted && line.expected != 0)
      ratio << std::fixed << std::setprecision(4)
            << *line.counted / static_cast<double>(line.expected);
    std::cout << std::left << std::setw(24) << line.row->name << std::setw(14) << line.precision
              << std::right << std::setw(16)
              << (line.verdict == Verdict::kNotHere ? ""
                                                    : grouped(static_cast<double>(line.expected)))
              << std::setw(16) << (line.counted ? grouped(*line.counted) : "") << std::setw(9)
              << ratio.str() << "  " << kVerdicts[static_cast<size_t>(line.verdict)] << "\n";
    if (!line.why.empty()) std::cout << "      " << line.why << "\n";
  }
}

// Nothing in it names the machine or its user.
Json findings(const Json& report, const Judge& judge) {
  const Json& device = report["devices"][0];
  const Json& process = report["processes"][0];
  Json rows = Json::array();
  for (const Compared& line : judge.lines()) {
    Json row = {{"name", line.row->name},
                {"kernel", line.row->kernel},
                {"launch",
                 std::to_string(known_kernels::kBlocks) + "x" + std::to_string(line.row->threads)},
                {"precision", line.precision},
                {"expected", line.expected},
                {"counted", line.counted ? Json(*line.counted) : Json()},
                {"verdict", kVerdicts[static_cast<size_t>(line.verdict)]}};
    if (!line.code.empty()) row["code"] = line.code;
    rows.push_back(row);
  }
  return {{"version", 1},
          {"flopinj", process["producer"]},
          {"simulated", process["simulated"]},
          {"gpu", device["device"]},
          {"chip", device["chip"]},
          {"compute_capability", device["compute_capability"]},
          {"driver", driver_release(file_text("/proc/driver/nvidia/version"))},
          {"cuda", process["driver_version"]},
          {"cupti", process["cupti_version"]},
          {kLeaveOut, judge.leave_out()},
          {"rows", rows}};
}

// The file's name, where it was written.
std::string write_findings(const Json& found) {
  const char* const given = std::getenv("FLOPINJ_FINDINGS");
  const std::string folder =
      given != nullptr && *given != '\0' ? std::string(given) : usual_findings_folder();
  if (folder.empty()) throw std::runtime_error("neither XDG_STATE_HOME nor HOME names a folder");
  const fs::path file = fs::path(folder) / findings_name(found["simulated"].get<bool>(),
                                                         found["chip"].get<std::string>(),
                                                         found["cuda"].get<uint32_t>(),
                                                         found["cupti"].get<uint32_t>());
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
  const uint32_t capability = capability_of_first_gpu();
  const Scratch scratch;
  Judge judge;
  Json report;
  const auto run = [&](const auto& self, const Batch& batch) -> void {
    const Ran ran = run_once(batch, scratch);
    if (ran.problem.empty()) {
      for (const Row* row : batch) judge.compare(*row, ran.report);
      report = ran.report;
    } else if (batch.size() > 1) {  // which of them was it?
      for (const Row* row : batch) self(self, {row});
    } else {
      judge.failed(*batch.front(), ran.problem + (ran.said.empty() ? "" : ": " + ran.said));
    }
  };
  for (const Batch& batch : batches(capability)) run(run, batch);
  for (const Row& row : known_kernels::rows())
    if (!judge.has(row.name)) judge.not_here(row);
  print(judge.lines());
  const bool fine = std::ranges::all_of(judge.lines(), [](const Compared& line) {
    return line.verdict == Verdict::kAgrees || line.verdict == Verdict::kNotHere;
  });
  if (report.is_null()) {
    std::cout << "FAIL  nothing was recorded, so nothing was found\n";
    return kExitCheckFailed;
  }
  if (!judge.leave_out().empty()) {
    std::cout << "Recordings on this chip, driver and CUPTI leave out groups with\n";
    for (const std::string& metric : judge.leave_out()) std::cout << "      " << metric << "\n";
  }
  std::cout << "findings: " << write_findings(findings(report, judge)) << "\n";
  return fine ? kExitOk : kExitCheckFailed;
}

}  // namespace flopinj
