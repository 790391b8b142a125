#pragma once
#include <cstdint>
#include <memory>

#include "passes/packets/trace_order.h"
#include "reader/damage.h"
#include "reader/input.h"

namespace flopinj::reduce {

// An input of a report.
struct TraceFile {
  std::unique_ptr<Input> input;
  uint32_t first_sequence = 0;
  DamageLog damage;
  TraceOrder order;
  bool simulated = false;  // as its first header says
};

}  // namespace flopinj::reduce
