// Any text as a gate: parsed, and evaluated where it is one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gates/gate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj::reduce;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Gate gate;
  std::string error;
  if (!Gate::parse(text, gate, error)) {
    if (error.empty()) std::abort();
    return 0;
  }
  // Figures of every kind, told apart by their names' length.
  size_t asked = 0;
  const auto result = gate.evaluate([&](const FigurePath& path) {
    ++asked;
    if (path.empty()) std::abort();
    const auto length = static_cast<double>(path[0].size());
    switch (path[0].size() % 5) {
      case 0:
        return FoundFigure{Figure(length, Mark::kNone)};
      case 1:
        return FoundFigure{Figure(length, Mark::kAtLeast)};
      case 2:
        return FoundFigure{Figure(length, Mark::kAtMost)};
      case 3:
        return FoundFigure{Figure()};
      default:
        return FoundFigure{.wrong = "no figure"};
    }
  });
  // A gate without figures is decided by its numbers.
  if (asked == 0 && result.verdict != Verdict::kPassed && result.verdict != Verdict::kFailed)
    std::abort();
  return 0;
}
