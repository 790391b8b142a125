// One recording of a summary, made from all packets of it.
#pragma once
#include <span>

#include "passes/summary/found.h"
#include "passes/summary/known_names.h"
#include "passes/summary/recording.h"

namespace flopinj::reduce {

// Of parts of one recording, in the order in which they were written: packets that came before are
// left out. Reads them twice, and once more where ranges name operators. `damage` is what was
// found; it is in the recording.
Recording condense_recording(std::span<const Found> parts, std::span<Input* const> inputs,
                             const PhaseRules& rules, KnownNames& known, DamageLog& damage);

}  // namespace flopinj::reduce
