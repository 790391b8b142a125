// What `flopinj doctor --count` has found of counters: a file for each chip, driver and CUPTI, read
// by the library before it measures with them. Other lines of the file are for people.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <fstream>
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

// Versions as cuDriverGetVersion() and cuptiGetVersion() have them. What was found on the simulated
// GPU says nothing of the real one.
inline std::string findings_name(bool simulated, std::string_view chip, uint32_t driver,
                                 uint32_t cupti) {
  return (simulated ? "simgpu-" : "") + std::string(chip) + "-cuda" + std::to_string(driver) +
         "-cupti" + std::to_string(cupti) + ".json";
}

struct Findings {
  bool understood = false;             // else the rest is empty
  std::vector<std::string> leave_out;  // metrics that counted wrong
};

inline constexpr std::string_view kLeaveOut = "leave_out";

// Of the text that the doctor has written, in which names have no quotes and no brackets.
inline Findings parse_findings(std::string_view json) {
  const size_t at = json.find("\"" + std::string(kLeaveOut) + "\": [");
  const size_t begin = at == json.npos ? at : json.find('[', at) + 1;
  const size_t end = json.find(']', begin);
  if (end == json.npos) return {};
  Findings findings{.understood = true, .leave_out = {}};
  for (std::string_view list = json.substr(begin, end - begin);;) {
    const size_t open = list.find('"');
    if (open == list.npos) return findings;
    const size_t close = list.find('"', open + 1);
    if (close == list.npos) return {};
    findings.leave_out.emplace_back(list.substr(open + 1, close - open - 1));
    list.remove_prefix(close + 1);
  }
}

// Nothing: there is no file.
inline std::optional<Findings> read_findings(const std::string& file) {
  constexpr size_t kMostBytes = size_t{256} << 10;
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text(kMostBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text.size() > kMostBytes ? Findings{} : parse_findings(text);
}

}  // namespace flopinj
