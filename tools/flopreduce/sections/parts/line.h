// Lines in tones, and figures with a name and a note, as people read them.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace flopinj::reduce {

enum class Tone : uint8_t { kPlain, kTitle, kWarn, kBad, kDim };

// A stretch of a line in one tone. A line may have several.
struct Line {
  std::vector<std::pair<std::string, Tone>> parts;
  Line(std::string text, Tone tone = Tone::kPlain) { parts.emplace_back(std::move(text), tone); }
  Line(const char* text, Tone tone = Tone::kPlain) { parts.emplace_back(text, tone); }
  Line& then(std::string text, Tone tone = Tone::kPlain) {
    parts.emplace_back(std::move(text), tone);
    return *this;
  }
};

// "HFU", "41 %", "executed FLOP / (wall time x peak)". Without a name: more about the one before.
struct ShownFigure {
  const char* name;
  std::string value, note;
  Tone tone = Tone::kTitle;  // of the value
};
// "  HFU                 41 %   executed FLOP / (wall time x peak)"
Line figure_line(const ShownFigure& figure);

}  // namespace flopinj::reduce
