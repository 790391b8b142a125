// Which gradients backward computed of products with weights (linear, mm, convolutions): by input,
// by weights, both or none. Theory does not say which: the first layer needs none by its input
// unless that comes from something trained (an embedding, a normalisation) or asks for one itself,
// frozen layers need none by their weights or none at all.
//
// Evidence, in this order:
//   products   autograd ran products of their own (aten::mm in AddmmBackward0): whose result has
//              the sizes of the input, whose those of the weights. Joined by sequence number.
//   kernels    one operator computed both (aten::convolution_backward): kernels named for one or
//              the other. A single one is found only where every kernel that did FLOP is named for
//              it.
//   FLOP       backward's matrix FLOP against the forward formula and the executed forward FLOP,
//              both where both are known: 0.7 to 1.4 times is one gradient, 1.6 to 2.8 both. One
//              alone is told only of the first operator in the order of forward whose number any
//              backward work has: nothing before it has a gradient, so none is needed by its input.
//              Layers that share a range may differ: each gradient counts for the calls that have
//              it, by their numbers (products) or launches (kernels, where each call has at most
//              one of a kind).
//   nothing    no backward work has the operator's number, though others' was found: no gradient.
// Where more than a tenth of backward's launches that do matrix work found no forward operator,
// what is missing is no evidence. Others do not count: views have nodes whose operators launch
// nothing. Nor is it evidence for what runs inside of a torch.autograd.Function, such as a
// checkpoint's: the function has a gradient of its own.
//
// Known failures: a second input branch whose kernels' names do not say it (it is not the first
// operator, so one product for two stays unexplained); one backward range of several convolutions
// with the same sizes (unknown); Winograd or padding that turns one gradient into the FLOP of two,
// and forward passes without backward (evaluation) in the same ranges, which turn two into one,
// where only FLOP show it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "phases/operator_calls.h"
#include "phases/operators.h"
#include "report/operators/operator_facts.h"
#include "report/operators/operator_join.h"
#include "tables/id_map.h"

namespace flopinj::reduce {

// Whether a backward operator computes both gradients of a product, each half of its formula.
bool computes_both_gradients(const Formula& formula, const OperatorName& name);
// Which gradient a kernel's name says that it computes ("dgrad", "wgrad"); nothing for other names.
std::optional<Direction> gradient_direction(std::string_view kernel);
// Whether its name says that an operand is sparse: cuSPARSE's and PyG's.
bool multiplies_sparse(std::string_view kernel);
// Of one operator that computes both. `first`: it belongs to the first operator of forward that has
// gradients.
GradientEvidence gradients_of_kernels(const OperatorFacts& facts, bool first);

class GradientFinder {
 public:
  // All must outlive the finder.
  // `products`: paths whose launches do matrix work, or may.
  GradientFinder(const OperatorMap& operators, const OperatorJoin& join, const OperatorCalls& calls,
                 const std::unordered_set<uint32_t>& products);

  // Of the backward operator in this path, whose facts are these. All of them are added before
  // of().
  const GradientEvidence& add(uint32_t path, const OperatorFacts& facts);
  // Matrix FLOP of a forward operator, for evidence by FLOP; nothing where a part is not measured.
  struct MatrixFlop {
    std::optional<u128> forward, formula, backward;
  };
  GradientEvidence of(uint32_t path, const MatrixFlop& flop) const;
  // Whether no operator before this one in the order of forward has gradients, and it has.
  bool first(uint32_t path) const { return path == first_; }
  // Whether backward work of any operator was found.
  bool any() const { return first_ != kNoIndex; }

 private:
  struct Backward {
    uint32_t path = 0;
    uint64_t launches = 0, numbers = 0;
    bool shared = false;  // with other forward operators
  };
  std::optional<GradientEvidence> by_products(uint32_t path,
                                              const std::vector<Backward>& backwards) const;
  std::optional<GradientEvidence> by_kernels(const std::vector<Backward>& backwards) const;
  // The torch.autograd.Function that a path is inside of; empty where there is none.
  std::string own_gradient_around(uint32_t path) const;
  GradientEvidence by_flop(uint32_t path, const MatrixFlop& flop) const;

  const OperatorMap& operators_;
  bool complete_ = false;  // what is missing in backward is evidence
  uint32_t first_ = kNoIndex;
  std::map<uint32_t, std::vector<Backward>> backwards_;         // by forward operator's path
  std::map<uint32_t, std::vector<uint32_t>> forwards_;          // by backward operator's path
  std::unordered_map<uint32_t, GradientEvidence> by_combined_;  // by backward operator's path
};

}  // namespace flopinj::reduce
