// What `flopinj doctor --count` has found of counters: a file for each chip, driver and CUPTI, read
// by the library before it measures with them. Other lines of the file are for people.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

inline constexpr size_t kMostFindingsBytes = size_t{256} << 10;
inline constexpr std::string_view kLeaveOut = "leave_out";

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

// Versions as cuDriverGetVersion() and cuptiGetVersion() have them.
inline std::string findings_name(std::string_view chip, uint32_t driver, uint32_t cupti) {
  return std::string(chip) + "-cuda" + std::to_string(driver) + "-cupti" + std::to_string(cupti) +
         ".json";
}

// The strings of the list `key` in an object of JSON as the doctor writes it: names without quotes
// or escapes. Nothing where it is not so.
inline std::optional<std::vector<std::string>> found_names(std::string_view json,
                                                           std::string_view key) {
  const size_t at = json.find("\"" + std::string(key) + "\": [");
  if (at == json.npos) return std::nullopt;
  std::string_view list = json.substr(json.find('[', at) + 1);
  const size_t end = list.find(']');
  if (end == list.npos) return std::nullopt;
  list = list.substr(0, end);
  std::vector<std::string> names;
  while (true) {
    const size_t begin = list.find('"');
    if (begin == list.npos) return names;
    list.remove_prefix(begin + 1);
    const size_t quote = list.find('"');
    if (quote == list.npos) return std::nullopt;
    names.emplace_back(list.substr(0, quote));
    list.remove_prefix(quote + 1);
  }
}

}  // namespace flopinj
