#include "sections/parts/terms.h"

#include <algorithm>
#include <array>

namespace flopinj::reduce {
namespace {

constexpr std::array kFigures = {
    Term{"HFU", "hardware FLOP utilization: executed FLOP / (wall time x peak)", "utilization"},
    Term{"MFU",
         "model FLOP utilization: FLOP that the model needs by formula / (wall time x peak); work "
         "that is done twice (recomputation) counts once",
         "utilization"},
    Term{
        "Peak lost",
        "how far MFU is below the peak (HFU where no formula is known), and where that part of the "
        "peak went, the largest shares first",
        "", "lost"},
    Term{"Time lost",
         "without FLOP counts: the share of wall time in which no kernel ran but those of "
         "communication, and what it was lost to, the largest shares first",
         "", "lost"},
    Term{"Executed",
         "floating-point operations that the GPU executed, padding of tiles included; where none "
         "were counted, about those of operators' formulas",
         "total"},
    Term{"Per step", "median time of a step, and its FLOP and kernel time", "", "steps"},
    Term{"Kernel time", "sum of the durations of all kernels; kernels that overlap count each",
         "utilization"},
    Term{"Backward/fwd",
         "executed FLOP of backward / those of forward; about 2, and less where the first layer "
         "needs no gradient of its input",
         "ratio"},
    Term{"Coverage", "share of launches that have a FLOP count, measured or extrapolated", "",
         "ledger,coverage"},
    Term{"Profiler cost",
         "time that the profiler took from the program: callbacks, reading counters, start", "",
         "measuring"},
};

}  // namespace

std::span<const Term> figure_terms() { return kFigures; }

const char* meaning_of_figure(std::string_view name) {
  const auto* const found = std::ranges::find(kFigures, name, &Term::key);
  return found == kFigures.end() ? "" : found->meaning;
}

}  // namespace flopinj::reduce
