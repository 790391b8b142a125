// What of launches' work at peak is the model's, by formula: for MFU, and for the ledger of time.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "report/build_report.h"

namespace flopinj::reduce {

// Work at peak of all phases but recomputation: FLOP by formula that were given are a share of it.
double work_done_once_ns(const Report& report);

// To be made when the report has its operators. May be read by several threads.
class ModelWork {
 public:
  // Both must outlive this.
  ModelWork(const ReportSources& from, const Report& report);

  // Of a launch of an operator in one place.
  struct Part {
    // Of its work at peak; more than 1 where the operator did without some of its formula's work.
    // Where launches of the operator are unmeasured, what is the model's in any case.
    double share = 0;
    // Instead of that, for MFU: the formula's time at peak, in equal parts to all launches, where
    // their work does not say whose it is.
    std::optional<double> each_fs = {};
    bool of_others = false;  // it is that of launches with names; of one launch it is not known
    bool complete =
        true;  // no launches are unmeasured, of the operator, or where one number is given
    double of(double least_fs) const { return each_fs.value_or(least_fs * share); }
  };
  // Nothing where it is of no formula. By TraceTables::paths and PhaseRules::rules().
  std::optional<Part> at(uint32_t path, uint32_t rule) const;

 private:
  const ReportSources& from_;
  std::map<std::pair<uint32_t, std::string>, Part> operators_;  // by (path, phase)
  std::optional<Part> all_;  // of work but recomputation, where one number is given
  // Of launches without names, where those with names are drawn from all: what these are of.
  std::optional<Part> unnamed_;
};

}  // namespace flopinj::reduce
