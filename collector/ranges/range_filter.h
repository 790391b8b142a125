// Launches chosen by the NVTX ranges that are open around them (--nvtx-include), in ncu's language.
//
//   A/          inside the push/pop range A     A        inside the start/end range A
//   A/B         B was pushed directly in A      A,B      inside both start/end ranges
//   A/+/B       one range between them          D@...    ranges of domain D; else the default one
//   A/*/B       any number, or none             X|Y      X or Y (ncu: the option given twice)
//   [A, A]      A is the first or the last of the thread's open ranges of its domain
//
// \ before a character of the language makes it part of a name. Not understood: regex:, ranges of
// several domains in one expression, ranges without a name.
#pragma once
#include <collector/identity/ids.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

class RangePathTable;

struct RangeExpression {
  enum class Part : uint8_t { kName, kOneRange, kAnyRanges };
  struct Step {
    Part part = Part::kName;
    std::string name;  // as a key (range_name.h)
  };
  std::string domain;  // empty: the default one
  // Start/end ranges, in any order; else push/pop ranges, the outermost first.
  bool process = false;
  bool from_first = false, to_last = false;
  std::vector<Step> steps;
};

// Nothing for text that is not understood.
std::optional<std::vector<RangeExpression>> parse_range_expressions(std::string_view text);

class RangeFilter {
 public:
  static constexpr size_t kMostOpen = 128;
  // Open ranges, the outermost first. Names are keys.
  struct Open {
    StringId domain;
    const std::string* key = nullptr;
  };

  // The table gives the domains their ids.
  RangeFilter(std::vector<RangeExpression>, RangePathTable&);

  // Thread-safe; no allocation. At most kMostOpen ranges.
  bool chosen_by_process(const Open* open, size_t count) const noexcept;
  bool chosen_by_thread(const Open* open, size_t count) const noexcept;

 private:
  struct Expression {
    RangeExpression text;
    StringId domain;
  };
  std::vector<Expression> expressions_;
};

}  // namespace flopinj
