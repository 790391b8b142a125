#include "sections/work_tree.h"
#include "support/text.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

std::string frame(std::string_view name) {
  std::string out;
  for (const char c : printable(name)) out += c == ';' ? "\\x3B" : std::string(1, c);
  return out.empty() ? "(no name)" : out;
}

u128 weight_of(const Work& work, StackWeight weight) {
  switch (weight) {
    case StackWeight::kFlop:
      return work.flop;
    case StackWeight::kTime:
      return work.time.ns;
    case StackWeight::kLaunches:
      break;
  }
  return work.launches;
}

}  // namespace

void write_folded(std::ostream& out, const Report& report, StackWeight weight) {
  std::vector<std::string> open;  // frames from the outermost range on
  for (const WorkNode& node : work_tree(report)) {
    open.resize(node.depth - 1);
    open.push_back(frame(node.name));
    const u128 value = weight_of(node.work, weight);
    if (!node.leaf || value == 0) continue;
    for (size_t i = 0; i < open.size(); ++i) out << (i > 0 ? ";" : "") << open[i];
    out << ' ' << to_decimal(value) << '\n';
  }
}

}  // namespace flopinj::reduce
