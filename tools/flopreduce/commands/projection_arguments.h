// What `project train` and `project infer` have in common: numbers, durations, peaks and results.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/arguments/arguments.h"
#include "commands/arguments/command.h"
#include "report/report.h"
#include "sections/parts/fields.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

extern const Command kTrain;

std::string scientific(double value);       // "8.1e21", four significant digits
std::string plain(double value);            // "0.3", six; from a million on scientific
std::string duration_text(double seconds);  // "3.5 days", "1.77583 ms"
// Seconds of 3.5d, 84h, 30min, 12s, 5ms or a plain number of seconds.
std::optional<double> parse_duration(std::string_view text);

// An option whose value is a number with an SI prefix: --examples 1.2M. Above 0, or also 0.
enum class Least { kAboveZero, kZero };
void add_number(manual::CommandLine& app, const char* name, std::optional<double>& value,
                const std::string& help, Least least = Least::kAboveZero);

// False where one of these options was given, which has no effect on what is asked for: `why` says
// so.
bool without_effect(const CLI::App& app, std::initializer_list<const char*> options,
                    const std::string& why);

// False where a figure is no number above 0: numbers that are too large or too small were given.
// That was said.
bool possible(const std::string& name, double value);

// Whose peak: of a GPU in the table, or given.
struct PeakArguments {
  std::string gpu;
  std::vector<std::string> precisions;
  std::optional<double> given;

  struct Choice {
    std::string precision;
    double flop_per_s = 0;
    std::string source;
  };
  void add_to(manual::CommandLine& app);
  bool any() const { return given || !gpu.empty(); }
  // In the convention of `fma`. Nothing on an error, which was said.
  std::optional<std::vector<Choice>> choose(int fma) const;
};

// Lines of a result: a figure, its value and where it comes from, for people and for programs.
class ProjectionResult {
 public:
  // False, and said, where the value is no number above 0.
  bool add(const char* key, const char* name, double value, std::string shown, std::string from);
  int write(const OutputArguments& output, const char* title) const;
  void fields(Fields& f) const;

 private:
  struct Row {
    std::string key, name;
    double value = 0;
    std::string shown, from;
  };
  std::vector<Line> lines() const;
  Table table(bool people) const;

  std::vector<Row> rows_;
};

inline bool above_zero(const std::optional<double>& value) { return value && *value > 0; }
// False where the option holds no share; that was said.
bool valid_utilization(const std::optional<double>& utilization);

// FLOP of a set of launches divided among `parts`; nothing, said, where some are unmeasured.
std::optional<double> share_of(const Work& work, double parts, const char* what);

}  // namespace flopinj::reduce
