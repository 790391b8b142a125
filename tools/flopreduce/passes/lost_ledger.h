// The ledger of a report: where the time of its devices went.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "passes/lost_pass.h"
#include "report/build_report.h"

namespace flopinj::reduce {

// Why the ledger ends at the kernels: what their FLOP take at peak is not known. Empty where it is.
std::string no_work(const Report& report);
// Why a report can have no ledger, before launches are looked at; empty where it can.
std::string no_ledger(const TraceTables& tables, const Totals& totals, uint64_t skip_steps,
                      const Report& report);
// Fills Report::lost and Report::communication. Of each device it keeps what is in these: a job may
// have very many.
class LostLedger {
 public:
  LostLedger(const ReportSources& from, Report& report);
  ~LostLedger();
  // What a trace's devices did: LostPass::Ended, on any thread.
  void add(uint32_t trace, const LostPass::Devices& devices);
  void finish(Collectives& collectives, const LostPass::Uneven& uneven,
              const LaunchWorths::Unknown& unknown);

 private:
  class Builder;
  std::mutex lock_;
  std::unique_ptr<Builder> builder_;
};

}  // namespace flopinj::reduce
