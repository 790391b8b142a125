// Which recordings belong together. A trace has no id of its run, so this goes by what is in its
// header and by when it ran.
#pragma once
#include "report/report.h"

namespace flopinj::reduce {

// Fills Report::runs and TraceReport::run. report.traces and report.time must be filled.
//
// Recordings are of several runs where their jobs or world sizes differ; where two processes have
// one rank; where ranks without a job ran more than an hour apart; and, where nobody says a rank,
// where they ran one after another (of one job: on different hosts), or without a job on different
// hosts. Recordings of one process, as of repeated attaching, are of one run. A recording whose
// header is lost is of the first run: nothing is known of it.
void build_runs(Report& report);

}  // namespace flopinj::reduce
