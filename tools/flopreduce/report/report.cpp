#include "report/report.h"

#include <algorithm>

namespace flopinj::reduce {

Mark end_mark(const Report& report) {
  return mark_if(
      std::ranges::any_of(report.damage,
                          [](const DamageReport& d) { return d.kind == Damage::kStopped; }),
      Mark::kAtLeast);
}

const Work& phase_work(const Report& report, std::string_view phase) {
  static const Work kNoWork;
  for (const auto& p : report.phases)
    if (p.name == phase) return p.work;
  return kNoWork;
}

}  // namespace flopinj::reduce
