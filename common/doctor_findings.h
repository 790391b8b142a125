// What `flopinj doctor --count` has found of counters: a file for each chip, driver and CUPTI, read
// by the library before it measures with them. Other lines of the file are for people.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

// Where they are, if no other folder is named; empty: the user has no home.
inline std::string usual_findings_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value == '/' ? std::string(value) : std::string();
  };
  if (const std::string state = variable("XDG_STATE_HOME"); !state.empty())
    return state + "/flopinj";
  const std::string home = variable("HOME");
  return home.empty() ? home : home + "/.local/state/flopinj";
}

// Versions as cuDriverGetVersion() and cuptiGetVersion() have them. Findings on the simulated GPU
// have a name of their own: they do not hold for a real one.
inline std::string findings_name(bool simulated, std::string_view chip, uint32_t driver,
                                 uint32_t cupti) {
  return (simulated ? "simgpu-" : "") + std::string(chip) + "-cuda" + std::to_string(driver) +
         "-cupti" + std::to_string(cupti) + ".json";
}

inline constexpr std::string_view kLeaveOut = "leave_out", kUse = "use";
// Words of kUse. Instructions were counted of kernels
inline constexpr std::string_view kRegisters = "registers";  // whose blocks have none to spare
inline constexpr std::string_view kHandedOn = "setmaxnreg";  // whose warps hand them to others

struct Findings {
  std::vector<std::string> leave_out;  // metrics that counted wrong
  std::vector<std::string> use;        // what was shown to work

  bool shows(std::string_view word) const { return std::ranges::find(use, word) != use.end(); }
};

// The list of this name in the text that the doctor has written, in which names have no quotes and
// no brackets. Nothing where it is not so.
inline std::optional<std::vector<std::string>> names_in(std::string_view json,
                                                        std::string_view list) {
  const size_t at = json.find("\"" + std::string(list) + "\": [");
  const size_t begin = at == json.npos ? at : json.find('[', at) + 1;
  const size_t end = json.find(']', begin);
  if (end == json.npos) return std::nullopt;
  std::vector<std::string> names;
  for (std::string_view rest = json.substr(begin, end - begin);;) {
    const size_t open = rest.find('"');
    if (open == rest.npos) return names;
    const size_t close = rest.find('"', open + 1);
    if (close == rest.npos) return std::nullopt;
    names.emplace_back(rest.substr(open + 1, close - open - 1));
    rest.remove_prefix(close + 1);
  }
}

inline std::optional<Findings> parse_findings(std::string_view json) {
  auto leave_out = names_in(json, kLeaveOut), use = names_in(json, kUse);
  if (!leave_out || !use) return std::nullopt;
  return Findings{*std::move(leave_out), *std::move(use)};
}

// Nothing: there is no such file. `understood` says whether it is one of the doctor's.
inline std::optional<Findings> read_findings(const std::string& file, bool& understood) {
  constexpr size_t kMostBytes = size_t{256} << 10;
  // Of a FIFO, or a terminal, neither opening nor reading waits.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return std::nullopt;
  std::string text(kMostBytes + 1, '\0');
  struct stat status {};
  const bool regular = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t bytes = regular ? ::read(fd, text.data(), text.size()) : -1;
  ::close(fd);
  std::optional<Findings> findings;
  if (bytes >= 0 && static_cast<size_t>(bytes) <= kMostBytes)
    findings = parse_findings(std::string_view(text).substr(0, static_cast<size_t>(bytes)));
  understood = findings.has_value();
  return understood ? findings : Findings{};
}

}  // namespace flopinj
