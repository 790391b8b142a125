// Gates on a command's JSON result: --fail-if CONDITION. The grammar is in gates/gate.h.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "gates/gate.h"

namespace flopinj::reduce {

class GateArguments {
 public:
  void add_to(CLI::App& app, const char* example = "ratio > 2.1 or total.flop > 1.5T");
  // After parsing; -1 to go on, or the exit code of a condition that cannot be read.
  int finish();
  bool any() const { return !gates_.empty(); }
  // Says on standard error which gates failed. kExitGate for a failed gate, and for one that is
  // decided by a figure that is not known; kExitUsage for a name that the result does not have.
  int check(const nlohmann::ordered_json& result) const;

 private:
  std::vector<std::string> texts_;
  std::vector<Gate> gates_;
};

}  // namespace flopinj::reduce
