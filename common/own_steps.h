// Training steps that flopinj.torch marks by itself (python/flopinj/torch): ranges of the process
// from the end of one step of the optimizer to the end of the next.
#pragma once
#include <string_view>

namespace flopinj {

// In which modules and operators have names, and in which they have none.
inline constexpr std::string_view kOwnStep = "flopinj step";
inline constexpr std::string_view kOwnStepWithoutNames = "flopinj step without names";
// A pass over the network without gradients, in steps of both kinds.
inline constexpr std::string_view kOwnEvaluation = "evaluation";

}  // namespace flopinj
