// What the user says about peaks and formulas, for utilization.
#pragma once
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "report/report.h"

namespace flopinj::reduce {

class UtilizationArguments {
 public:
  void add_to(manual::CommandLine& app);
  void add_peaks_to(manual::CommandLine& app);  // only --peak
  void finish(UtilizationOptions& options);     // after parsing
  // With the report: fails where a --peak is of no device in it.
  static void check(const Report& report);

 private:
  std::vector<std::string> peaks_;
  std::string formula_flop_, forward_flop_, batch_size_, tokens_per_step_, parameters_;
  uint64_t skip_steps_ = 0;
};

}  // namespace flopinj::reduce
