// What became of every launch: made = measured + extrapolated + unmeasured + dropped, per device
// and in total.
#pragma once
#include "report/report.h"
#include "report/work_table.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Why a signature's launches on devices of this kind have no FLOP count; empty where they have one.
std::string reason_of(const TraceTables& tables, const WorkTable& work, uint32_t signature,
                      uint32_t chip);

// Fills report.ledger and report.devices.
void build_ledger(const TraceTables& tables, const Totals& totals, const WorkTable& work,
                  Report& report);

}  // namespace flopinj::reduce
