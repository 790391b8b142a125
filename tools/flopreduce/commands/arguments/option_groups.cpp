#include "commands/arguments/option_groups.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace flopinj::reduce {
namespace {

constexpr const char* kUsualOptions = "Usual";
constexpr const char* kReadOptions = "What is read";
constexpr const char* kMeaningOptions = "Phases, names and formulas";
constexpr const char* kPeakOptions = "Peaks and MFU";
constexpr const char* kOutputOptions = "Output";

// All others are usual.
struct GroupedOption {
  std::string_view option;
  const char* group;
};
constexpr GroupedOption kGroupOfOption[] = {
    {"--files-from", kReadOptions},   {"--counters", kReadOptions},
    {"--skip-steps", kReadOptions},   {"--jobs", kReadOptions},
    {"--quiet", kReadOptions},        {"--phase", kMeaningOptions},
    {"--rules", kMeaningOptions},     {"--names", kMeaningOptions},
    {"--formulas", kMeaningOptions},  {"--peak", kPeakOptions},
    {"--formula-flop", kPeakOptions}, {"--forward-flop", kPeakOptions},
    {"--batch-size", kPeakOptions},   {"--tokens-per-step", kPeakOptions},
    {"--parameters", kPeakOptions},   {"--fma", kPeakOptions},
    {"--table", kOutputOptions},      {"--top", kOutputOptions},
    {"--sort", kOutputOptions},       {"--weight", kOutputOptions},
    {"--time-range", kOutputOptions}, {"--color", kOutputOptions},
    {"--force", kOutputOptions}};

}  // namespace

void put_options_in_groups(manual::CommandLine& line) {
  for (CLI::App* below : line.get_subcommands([](CLI::App*) { return true; }))
    put_options_in_groups(dynamic_cast<manual::CommandLine&>(*below));
  constexpr size_t kMostInOneList = 8;
  const auto options = line.get_options([](CLI::Option*) { return true; });
  if (options.size() <= kMostInOneList) return;
  for (CLI::Option* option : options) {
    const std::string name = "--" + option->get_single_name();
    const GroupedOption* row =
        std::ranges::find(kGroupOfOption, std::string_view(name), &GroupedOption::option);
    option->group(row != std::end(kGroupOfOption) ? row->group : kUsualOptions);
  }
  line.groups = {kUsualOptions, kReadOptions, kMeaningOptions, kPeakOptions, kOutputOptions};
}

}  // namespace flopinj::reduce
