// Gates on a command's tables: --fail-if CONDITION. The grammar is in gates/gate.h.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "gates/gate.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

class GateArguments {
 public:
  void add_to(manual::CommandLine& app, const char* example = "ratio > 2.1 or total.flop > 1.5T");
  bool any() const { return list_ || !gates_.empty(); }
  // The names of figures are what is asked for, and not the report.
  bool lists() const { return list_; }
  // Whether a condition may be on a figure with this part in its name, or names are listed.
  bool may_name(const std::string& part) const;
  // Prints the names of figures, where they are asked for, and what each gate comes to.
  std::vector<GateResult> results(std::span<const Table> tables) const;
  // Says on standard error which gates failed. kExitGate for a failed gate, and for one that is
  // decided by a figure that is not known; kExitUsage for a name that the result does not have.
  static int check(const std::vector<GateResult>& results);

 private:
  std::vector<std::string> texts_;
  std::vector<Gate> gates_;
  bool list_ = false;
};

}  // namespace flopinj::reduce
