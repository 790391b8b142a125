// Backward / forward, and what it should be.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/figure.h"
#include "support/wide.h"

namespace flopinj::reduce {

struct Limits {
  double low = 0, high = 0;
};

struct LayerReport {
  std::string path;
  u128 forward_matrix_flop = 0;
  bool first = false;
};

// What backward / forward of matrix work should be, by theory and by what is known of the gradients
// that were computed (report/operators/gradients.h). From `least` to `most` where something is not
// known.
struct ExpectedRatio {
  double least = 0, most = 0;
  std::string basis;  // what is not plain about it, and what is assumed; may be empty
  // Why it is no evidence, in one line: of some products nothing shows which gradients were
  // computed, and both are taken for granted; or it is of a part of the matrix work. Empty where
  // it rests on calls that were seen, and on all of them.
  std::string lacks{};
  bool assumed() const { return !lacks.empty(); }
  // The share of forward's matrix work that operators do that are known to be no products
  // (a softmax's multiply-adds), where it is more than kRatioTolerance: theory leaves it out.
  double beside = 0;
  bool estimated() const { return assumed() || beside > 0; }
  bool certain() const { return most - least <= 1e-9 * most; }
  // Nothing where it is a range.
  std::optional<double> value() const { return certain() ? std::optional(most) : std::nullopt; }
};

// Whether backward / forward of matrix work is as expected, kRatioTolerance left aside.
enum class RatioVerdict : uint8_t {
  kNone,       // the ratio is not known, or nothing names layers or operators
  kInside,     // of the expected range, or at the expected value
  kOutside,    // the whole 95 % interval of the ratio is
  kUndecided,  // RatioReport::undecided says why
};
// Their names, for programs and gates. The first is of none.
inline constexpr std::array<std::string_view, 4> kRatioVerdicts = {"", "inside", "outside",
                                                                   "undecided"};
// What padded tiles and multiply-adds outside of products may add without a mention: a convention.
inline constexpr double kRatioTolerance = 0.01;
// The most that ExpectedRatio::beside may be for a verdict, which then leaves as much aside.
inline constexpr double kMostBesideProducts = 0.05;

// backward / forward. A product with weights costs twice its forward work in backward, a gradient
// for its weights and one for its input; what needs none for its input (as a rule the first layer,
// f1 of the forward pass's matrix FLOP) costs once: 2 - f1, where evidence says that it is so.
struct RatioReport {
  // All FLOP; not known where a part is unmeasured or forward is 0. At most, where launches
  // of PhasePart::kUnclear may have run forward.
  Figure ratio;
  std::optional<double> ratio_partial;  // of the measured launches, where both sides have some
  // Of fused multiply-adds and tensor work only: compare this with `expected`.
  Figure matrix_ratio;
  std::optional<Limits> matrix_interval;  // of 95 %, where launches vary
  RatioVerdict verdict = RatioVerdict::kNone;
  std::string undecided;  // why, where the verdict is kUndecided
  // Takes a verdict back, where there is one.
  void leave_undecided(std::string why) {
    if (verdict == RatioVerdict::kNone) return;
    verdict = RatioVerdict::kUndecided;
    undecided = std::move(why);
  }
  // f1 and its parts: matrix FLOP of first layers, and of the forward ranges that have layers.
  std::optional<double> first_layer_share;
  u128 first_layers_flop = 0, layered_flop = 0;
  std::optional<ExpectedRatio> expected;
  std::string expected_missing;  // why nothing is expected, where more than evidence is missing
  std::vector<LayerReport> layers;
};

}  // namespace flopinj::reduce
