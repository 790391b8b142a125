// Launch orders as a trace defines them.
#pragma once
#include "flop_trace.pb.h"
#include "reader/damage.h"
#include "reader/pattern_table.h"

namespace flopinj::reduce {

// Ids in the rows are looked up where a batch uses them.
void add_pattern(const trace::Interned::Pattern& message, PatternTable& table, DamageLog& damage);

}  // namespace flopinj::reduce
