// backward / forward and what it should be.
#pragma once
#include <vector>

#include "phases/phases.h"
#include "report/report.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// `forward_matrix`: matrix FLOP of forward-phase launches directly in each range path (not below
// it). `operators` is done.
//
// The expected ratio is that of the operators, by evidence, where they hold half of forward's
// matrix FLOP or more; else that of the layers, where backward names them too (both:
// report/operators/forward_backward.h); else the range from 2 - f1 to 2, where f1 is the share of
// the layer entered first: that every layer is trained is assumed. The ratio that is to be judged
// never has a part in it.
RatioReport backward_forward(const TraceTables& tables, const PhaseRules& rules,
                             const PhaseMap& phases, const Work& forward, const Work& backward,
                             const OperatorsReport& operators, std::vector<u128> forward_matrix);

// One range as "name", or "domain:name" outside NVTX's default domain; at most 256 bytes.
std::string range_label(const TraceTables& tables, uint32_t path);

// The path as one string, "/" between levels, at most 1 KiB.
std::string path_string(const TraceTables& tables, uint32_t path, bool escaped = false);

}  // namespace flopinj::reduce
