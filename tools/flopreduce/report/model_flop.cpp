#include "report/model_flop.h"

#include <algorithm>

#include "report/report.h"

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

bool ModelFlop::has_all() const {
  return products_ == 0 && multiply_adds_ == 0 && beyond_ == 0 && uncounted_ == 0;
}

bool ModelFlop::lacks_some() const {
  if (uncounted_ > 0) return true;
  u128 all = covered_, lacking = products_;
  add_saturating(all, products_);
  add_saturating(all, multiply_adds_);
  add_saturating(lacking, beyond_);
  if (lacking > all / kFourDigits) return true;
  add_saturating(lacking, multiply_adds_);
  return lacking > 0 && quotient(lacking, all) > kRatioTolerance;
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
  u128 all = covered_;
  add_saturating(all, products_);
  add_saturating(all, multiply_adds_);
  if (all == 0) return "launches without a FLOP count not covered";
  // Never 100 of what is not all.
  const auto percent = static_cast<int>(quotient(covered_ - beyond_, all) * 100);
  return std::to_string(std::min(percent, 99)) + " % of matrix FLOP covered";
}

}  // namespace flopinj::reduce
