// What the model needed of some launches, by formula: the only source of figures of the model.
//
// What counts: docs/phases-and-operators.md, "What counts for MFU". A figure of it is a lower bound
// where matrix work of these launches has no formula, and an estimate where formulas are more than
// what was executed and nothing explains it: as much counts as was executed.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>

#include "report/figure.h"
#include "support/members.h"
#include "support/wide.h"

namespace flopinj::reduce {

struct Work;

class ModelFlop {
 public:
  // Of a formula and what was executed of it.
  struct Place {
    u128 needed = 0;       // by formula, of what was computed
    u128 more = 0;         // of it: beyond what was executed, and nothing explains it
    u128 beyond = 0;       // matrix FLOP beyond the formula that the model may have needed too
    u128 uncertain = 0;    // of `needed`: so much it may be off, since calls are estimated
    bool at_most = false;  // perhaps not all of it was computed
    bool about = false;    // how much of it a mask leaves in is not known
  };

  ModelFlop() = default;
  static ModelFlop of(const Place& place, const Work& work);
  // `multiplies`: it is known to be products of matrices, or ran on tensor cores. Else its
  // multiply-adds may be of elementwise work, which has no formula and needs none.
  static ModelFlop without_formula(const Work& work, bool multiplies);

  ModelFlop& operator+=(const ModelFlop& o);
  ModelFlop with_at_most() const;
  ModelFlop with_about() const;

  bool known() const { return known_; }  // something has a formula
  // Not all that the model needed is in it, or perhaps not.
  bool lacks_some() const;
  // Nothing without a formula multiplies or adds.
  bool has_all() const;
  // At peak, of what has no formula and may be the model's.
  uint64_t lacking_ns() const;
  bool may_need_more() const { return beyond_ > 0; }  // of what is beyond the formulas
  Mark marks() const;
  Figure flop() const;
  Figure flop_where_any() const { return needed_ > 0 ? flop() : Figure(); }
  // Of what was executed beyond the formulas.
  Mark padding_marks() const;
  // "all matrix FLOP covered", "87 % of matrix FLOP covered".
  std::string coverage() const;

  // What is added up and shared out.
  template <typename Self>
  static auto sums(Self& of) {
    auto& [known, needed, off, covered, products, multiply_adds, beyond, uncounted, lacking_fs,
           perhaps_fs, at_most, about] = of;
    return std::tie(needed, off, covered, products, multiply_adds, beyond, uncounted, lacking_fs,
                    perhaps_fs);
  }

 private:
  u128 all_matrix() const;  // executed
  bool lacks_multiply_adds() const;

  bool known_ = false;
  u128 needed_ = 0;
  u128 off_ = 0;            // by so much `needed_` may be more or less
  u128 covered_ = 0;        // executed matrix FLOP that have a formula
  u128 products_ = 0;       // executed matrix FLOP of products that have no formula
  u128 multiply_adds_ = 0;  // executed multiply-adds of other work that has no formula
  u128 beyond_ = 0;         // of covered_: Place::beyond
  uint64_t uncounted_ = 0;  // launches without a formula and without a count
  u128 lacking_fs_ = 0;     // at peak, of all that launches with products_ executed
  u128 perhaps_fs_ = 0;     // likewise of those with multiply_adds_
  bool at_most_ = false, about_ = false;
};

}  // namespace flopinj::reduce
