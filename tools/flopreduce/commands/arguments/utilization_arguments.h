// What the user says about peaks and formulas, for utilization.
#pragma once
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "report/report.h"

namespace flopinj::reduce {

class UtilizationArguments {
 public:
  void add_to(CLI::App& app);
  void add_peaks_to(CLI::App& app);  // --peak alone
  // After parsing; -1 to go on, or the exit code.
  int finish(UtilizationOptions& options);
  // With the report: -1 to go on, or the exit code where a --peak is of no device in it.
  static int check(const Report& report);

 private:
  std::vector<std::string> peaks_;
  std::string formula_flop_, forward_flop_, batch_size_;
};

}  // namespace flopinj::reduce
