// Kernels that wait for other kernels, processes or devices, or for the host. In a measurement
// window a launch returns when its kernel has ended, so these can hang the program for ever: they
// are never inside one. The lists are visible and err on the side of leaving out; a user adds to
// them (FLOPINJ_NEVER_MEASURE).
//
// A pattern is a plain substring of the mangled kernel name, in any case.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

// Collectives and their kind: communication, also in a report.
std::span<const std::string_view> communication_patterns();
// Others that wait.
std::span<const std::string_view> waiting_patterns();

class NeverMeasured {
 public:
  explicit NeverMeasured(const std::vector<std::string>& more = {});
  bool contains(std::string_view mangled_name) const;

 private:
  std::vector<std::string> more_;  // lower case
};

// "PATTERN,PATTERN". Nothing when one is empty.
std::optional<std::vector<std::string>> parse_patterns(std::string_view);

}  // namespace flopinj
