// The tables that a report can have: what --table and SQL know.
#include <algorithm>

#include "sections/sections.h"

namespace flopinj::reduce {

std::span<const TableName> table_names() {
  static constexpr TableName kTables[] = {
      {"report", "the totals, and under which convention"},
      {"phases", "FLOP and GPU time by phase of training"},
      {"precisions", "FLOP by number format"},
      {"integer_operations", "integer operations of the tensor cores"},
      {"ratio", "backward / forward, and what it should be"},
      {"first_layers", "layers of the forward pass"},
      {"utilization", "HFU, MFU and other shares of peak"},
      {"utilization_ranges", "share of peak by range"},
      {"roofs", "peaks that were used, with their sources"},
      {"roofline", "kernels against memory and arithmetic"},
      {"steps", "wall time and GPU time of a training step"},
      {"step_list", "each training step, by process", true},
      {"numbers", "FLOP for each token, image or other number of a range"},
      {"layers", "backward / forward by layer"},
      {"operator_work", "backward / forward by operator"},
      {"operators", "executed against formula, by operator"},
      {"operator_places", "the same by range"},
      {"kernels", "kernels by name"},
      {"signatures", "kernels by name and launch shape"},
      {"samples", "what the counters gave, by signature"},
      {"estimates", "95 % intervals of estimates"},
      {"ranges", "NVTX ranges, with what is below them"},
      {"stacks", "kernels by range"},
      {"rows", "launches by process, thread, stream, range and signature", true},
      {"paths", "ranges with the phase and layer of what ran in them"},
      {"rules_used", "rules that gave launches a phase"},
      {"rules", "all rules"},
      {"ledger", "what became of every launch, by device"},
      {"ledger_reasons", "why launches are unmeasured or lost"},
      {"unmeasured", "kernels without a FLOP count"},
      {"measuring", "how counters were read, by process"},
      {"coverage_growth", "how the share with a count grew"},
      {"time", "busy and idle time, and the profiler's"},
      {"device_time", "the same by device"},
      {"idle_gaps", "gaps between kernels by length"},
      {"largest_gaps", "the longest gaps, and what is beside them"},
      {"flop_over_time", "FLOP by phase in bins of time"},
      {"rank_spread", "of more than 64 processes: quantiles"},
      {"ranks", "processes of a job side by side"},
      {"processes", "recorded processes"},
      {"devices", "devices, with their ledgers"},
      {"overhead", "what the profiler cost"},
      {"diagnostics", "messages of the recorders"},
      {"damage", "what is missing from the traces"}};
  return kTables;
}

bool needs_facts(std::string_view key) {
  return std::ranges::any_of(table_names(), [&](const TableName& table) {
    return table.facts && (key.empty() || key == table.key);
  });
}

}  // namespace flopinj::reduce
