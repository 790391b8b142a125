#include <array>

#include "commands/arguments/command.h"

namespace flopinj::reduce {

std::span<const Command* const> commands() {
  static constexpr std::array kCommands = {&kReport, &kAnonymize, &kCompare, &kExplain, &kMerge,
                                           &kPeaks,  &kProject,   &kQuery,   &kRules,   &kSchema};
  return kCommands;
}

}  // namespace flopinj::reduce
