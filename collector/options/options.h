// The settings of a recording, as one table. From it the library reads its environment; `flopinj
// run` has its options and their checks from it (their help: tools/flopinj/option_help.h), and with
// these the manual page and the shell completions.
#pragma once
#include <collector/options/settings.h>

#include <span>
#include <string>
#include <string_view>

namespace flopinj {

struct RecordingOption {
  std::string_view option;    // of flopinj run: "--level", "-o,--output"; empty: there is none
  std::string_view variable;  // of the library: "FLOPINJ_LEVEL"
  std::string_view value;  // what help calls its value; empty: a flag, whose variable takes 0 or 1
  std::span<const std::string_view> choices;  // all it takes; empty: see `takes`
  std::string_view takes;                     // for messages: "launches or tally"
  // False, and nothing is changed, where the text is not understood.
  bool (*read)(Settings&, std::string_view text);
  // A running program takes it from a request (flopinj attach), too. Who may ask needs only the
  // right to read the process, so such an option loads no code, changes no existing file, and has
  // no kernel measured that was excluded at the start.
  bool by_request = false;
  bool many = false;  // may be given several times; the variable takes them with commas between
};

std::span<const RecordingOption> recording_options();

// Null where there is none.
const RecordingOption* recording_option_of(std::string_view variable);
// That `name` is none of theirs and changes nothing, and which one it may have meant.
std::string unknown_variable(std::string_view name);

}  // namespace flopinj
