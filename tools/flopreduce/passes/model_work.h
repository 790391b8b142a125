// What of launches' work at peak is the model's, by formula: for MFU, and for the ledger of time.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "report/build_report.h"

namespace flopinj::reduce {

// Work at peak of the phases that count for the model, and of launches without names, which may, if
// they are of no evaluation: one number for the whole run is a share of it.
double work_of_model_ns(const ReportSources& from, const Report& report);

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
    // No more than that, where it is known.
    std::optional<double> each_most_fs = {};
    bool of_others = false;  // it is that of launches with names; of one launch it is not known
    bool complete =
        true;  // no launches are unmeasured, of the operator, or where one number is given
    double of(double least_fs) const { return each_fs.value_or(least_fs * share); }
    std::optional<double> most_of(double least_fs) const {
      return each_fs ? each_most_fs : std::optional(of(least_fs));
    }
  };
  // Nothing where it is of no formula. By TraceTables::paths, PhaseRules::rules() and
  // TraceTables::signatures: outside of operators its name says whether it is attention.
  std::optional<Part> at(uint32_t path, uint32_t rule, uint32_t signature) const;

 private:
  const ReportSources& from_;
  const Report& report_;
  std::map<std::pair<uint32_t, std::string>, Part> operators_;  // by (path, phase)
  // Of phases that may be the model's, where one number is given.
  std::optional<Part> given_;
  // Of launches without names, where those with names are drawn from all: what these are of.
  std::optional<Part> unnamed_;
};

}  // namespace flopinj::reduce
