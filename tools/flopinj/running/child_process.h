// A program that is run for the text that it prints.
#pragma once
#include <string>
#include <vector>

namespace flopinj {

struct ChildOutput {
  int exit_code = -1;  // -1: it was ended by a signal
  std::string text;
};

// `command[0]`: a path, or a name to be found in PATH. Waits for its end. Throws std::runtime_error
// with one line where it cannot be run.
ChildOutput output_of(const std::vector<std::string>& command);

}  // namespace flopinj
