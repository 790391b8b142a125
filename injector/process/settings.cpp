#include <collector/options/options.h>
#include <injector/process/settings.h>

#include <string_view>

#include "doctor_findings.h"
#include "printable_text.h"

namespace flopinj {
namespace {

constexpr std::string_view kPrefix = "FLOPINJ_";

// Others wrote it, and it goes to a terminal: no novels.
std::string shown(std::string_view value) { return printable(value.substr(0, 80)); }

}  // namespace

void apply_setting(Settings& settings, std::string_view entry, std::vector<std::string>& problems) {
  if (!entry.starts_with(kPrefix)) return;
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view name = entry.substr(0, equals);
  const std::string_view value = entry.substr(equals + 1);
  const RecordingOption* const known = recording_option_of(name);
  if (known == nullptr)
    problems.push_back(unknown_variable(name));
  else if (value.find('\n') != value.npos)  // one that is asked how far it is says a setting a line
    problems.push_back(std::string(name) + "=" + shown(value) +
                       " is ignored: it has a line break in it");
  else if (!known->read(settings, value))
    problems.push_back(std::string(name) + "=" + shown(value) + " is ignored: it takes " +
                       std::string(known->takes));
}

std::string apply_request(Settings& settings, std::span<const std::string> entries) {
  settings.quiet = true;   // what there is to say the answer says
  settings.force = false;  // a request changes no file that is there
  std::vector<std::string> problems;
  for (const std::string& entry : entries) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    const RecordingOption* const known = recording_option_of(name);
    if (known != nullptr && !known->by_request)
      return std::string(name) + " cannot be set in a program that runs: set it as it starts";
    apply_setting(settings, entry, problems);
    if (!problems.empty()) return problems.front();
    if (known == nullptr || entry.size() == name.size())
      return "'" + shown(entry) + "' is no setting: they are written as FLOPINJ_LEVEL=tally";
    if (known->variable == "FLOPINJ_OUTPUT" && settings.output == "-")
      return "standard output is the program's own while it runs: name a file";
  }
  return {};
}

Settings read_settings(const char* const* environment, std::vector<std::string>& problems) {
  Settings settings;
  for (; environment != nullptr && *environment != nullptr; ++environment)
    apply_setting(settings, *environment, problems);
  if (settings.findings.empty()) settings.findings = usual_findings_folder();
  return settings;
}

}  // namespace flopinj
