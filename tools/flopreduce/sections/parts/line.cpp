#include "sections/parts/line.h"

#include <algorithm>

#include "support/text.h"

namespace flopinj::reduce {

Line figure_line(const ShownFigure& figure) {
  constexpr size_t kName = 15, kValue = 13;
  std::string label = "  " + std::string(figure.name);
  label.resize(std::max(label.size() + 1, kName + 2), ' ');
  const size_t pad = kValue - std::min(kValue, display_width(figure.value));
  Line line(std::move(label));
  line.then(figure.value, figure.tone);
  if (!figure.note.empty()) line.then(std::string(pad + 2, ' ') + figure.note);
  return line;
}

}  // namespace flopinj::reduce
