#include "report/model_flop.h"

#include <algorithm>

#include "report/report.h"
#include "tables/lost_time.h"

namespace flopinj::reduce {
namespace {

// Smaller parts do not reach the fourth digit.
constexpr u128 kFourDigits = 2000;

}  // namespace

ModelFlop ModelFlop::of(const Place& place, const Work& work) {
  ModelFlop model;
  model.known_ = true;
  model.needed_ = place.needed - std::min(place.more, place.needed);
  model.off_ = place.more;
  add_saturating(model.off_, place.uncertain);
  model.covered_ = work.matrix_flop;
  model.beyond_ = std::min(place.beyond, work.matrix_flop);
  model.at_most_ = place.at_most;
  model.about_ = place.about;
  return model;
}

ModelFlop ModelFlop::without_formula(const Work& work, bool multiplies) {
  ModelFlop model;
  (multiplies ? model.products_ : model.multiply_adds_) = work.matrix_flop;
  constexpr u128 kNotKnown = u128{UINT64_MAX} * kFsInNs;
  const double ns = work.roof.compute_ns;
  if (work.matrix_flop > 0)
    (multiplies ? model.lacking_fs_ : model.perhaps_fs_) =
        ns > 0 ? static_cast<u128>(ns * kFsInNs) : kNotKnown;
  model.uncounted_ = work.incomplete();
  return model;
}

ModelFlop& ModelFlop::operator+=(const ModelFlop& o) {
  add_each(sums(*this), sums(o));
  known_ = known_ || o.known_;
  at_most_ = at_most_ || o.at_most_;
  about_ = about_ || o.about_;
  return *this;
}

ModelFlop ModelFlop::with_at_most() const {
  ModelFlop model = *this;
  model.at_most_ = known_;
  return model;
}

ModelFlop ModelFlop::with_about() const {
  ModelFlop model = *this;
  model.about_ = known_ && needed_ > 0;
  return model;
}

bool ModelFlop::has_all() const {
  return products_ == 0 && multiply_adds_ == 0 && beyond_ == 0 && uncounted_ == 0;
}

u128 ModelFlop::all_matrix() const {
  u128 all = covered_;
  add_saturating(all, products_);
  add_saturating(all, multiply_adds_);
  return all;
}

bool ModelFlop::lacks_multiply_adds() const {
  u128 lacking = products_;
  add_saturating(lacking, beyond_);
  add_saturating(lacking, multiply_adds_);
  return lacking > 0 && quotient(lacking, all_matrix()) > kRatioTolerance;
}

bool ModelFlop::lacks_some() const {
  if (uncounted_ > 0) return true;
  u128 lacking = products_;
  add_saturating(lacking, beyond_);
  return lacking > all_matrix() / kFourDigits || lacks_multiply_adds();
}

uint64_t ModelFlop::lacking_ns() const {
  u128 fs = lacking_fs_;
  if (lacks_multiply_adds()) add_saturating(fs, perhaps_fs_);
  return static_cast<uint64_t>(std::min<u128>((fs + kFsInNs - 1) / kFsInNs, UINT64_MAX));
}

Mark ModelFlop::marks() const {
  return mark_if(lacks_some(), Mark::kAtLeast) | mark_if(at_most_, Mark::kAtMost) |
         mark_if(about_ || off_ > needed_ / kFourDigits, Mark::kEstimate);
}

Mark ModelFlop::padding_marks() const {
  ModelFlop without = *this;
  without.covered_ += without.products_ + without.multiply_adds_;
  without.products_ = without.multiply_adds_ = without.uncounted_ = 0;
  const Mark of_formulas = without.marks();
  return inverse(of_formulas) |
         mark_if(lacks_some() && !has(of_formulas, Mark::kAtLeast), Mark::kAtLeast);
}

Figure ModelFlop::flop() const { return known_ ? Figure(needed_, marks()) : Figure(); }

std::string ModelFlop::coverage() const {
  if (has_all()) return "all matrix FLOP covered";
  const u128 all = all_matrix();
  if (all == 0) return "launches without a FLOP count not covered";
  // Never 100 of what is not all.
  const auto percent = static_cast<int>(quotient(covered_ - beyond_, all) * 100);
  return std::to_string(std::min(percent, 99)) + " % of matrix FLOP covered";
}

}  // namespace flopinj::reduce
