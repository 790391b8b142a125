// What backward computed of a product: of weights both gradients, one or none. Theory does not say
// which: the first layer needs none by its input unless that comes from something trained (an
// embedding, a normalisation) or asks for one itself, frozen layers need none by their weights or
// none at all, and a teacher's calls have none.
//
// So it is summed up over calls: the formulas of all backward operators that a call's number joins
// to it, over that of all forward calls.
//   products   autograd ran products of their own (aten::mm in AddmmBackward0): each by its sizes.
//   kernels    one operator computed both gradients (aten::convolution_backward): kernels named for
//              one or the other. A single one is found only where every kernel that did FLOP is
//              named for it. Where no name says it, one gradient alone is possible of only the
//              first operator in the order of forward whose number any backward work has: nothing
//              before it has a gradient, so none is needed by its input.
//              An output_mask in the operator's name says it of each call, and needs no kernels.
//   nothing    no backward work has the operator's number, though others' was found: no gradient.
// Where more than a tenth of backward's launches that do matrix work found no forward operator,
// what is missing is no evidence. Others do not count: views have nodes whose operators launch
// nothing. Nor is it evidence for what runs inside of a torch.autograd.Function: the function has a
// gradient of its own.
//
// Such a function (bitsandbytes' MatMul4Bit, Liger's fused loss, what torch.compile made) has one
// node for all products inside. So all of these have together what the node's products are of them,
// by their sizes: none where its gradients were computed in forward. Nothing is known where the
// node does matrix work outside of products, or evaluates other nodes, as a checkpoint's does.
//
// Where no recorder says which launches begin a call, calls with and without backward can be told
// apart only where each number is one call. FLOP of backward are evidence for causes and for MFU,
// and for no expectation.
#pragma once
#include <algorithm>
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
// gradients, `beside`: perhaps to others too.
GradientEvidence gradients_of_kernels(const OperatorFacts& facts, bool first, bool beside);

// Of one forward operator's range.
struct ForwardCalls {
  u128 multiply_adds = 0;  // of all calls: by formula, or executed where one has none
  uint64_t calls = 0;
};
// Backward's multiply-adds over forward's.
struct ExpectedBackward {
  enum class Found : uint8_t {
    kUnknown,
    kKnown,
    kMixed,  // calls that have gradients and others may be among them
  };
  Found found = Found::kUnknown;
  double least = 0, most = 0;
  bool assumed = false;
  bool again = false;  // several backward passes went over its graph
  std::string what{},
      text{};  // in words, and the evidence; no evidence where all gradients are there
};

class GradientFinder {
 public:
  // All must outlive the finder.
  // `products`: paths whose launches do matrix work, or may. `attention`: backward operators that
  // are the gradient of fused attention, of whatever lengths.
  GradientFinder(const OperatorMap& operators, const OperatorJoin& join, const OperatorCalls& calls,
                 const std::unordered_set<uint32_t>& products,
                 std::unordered_set<uint32_t> attention);

  // Of the backward operator in this path, whose facts are these. All of them are added before
  // of().
  const GradientEvidence& add(uint32_t path, const OperatorFacts& facts);
  // Of a forward operator; `all`: what theory says of all gradients / forward; `weights`: it may
  // need one by its input and one by its weights.
  ExpectedBackward of(uint32_t path, const ForwardCalls& forward, double all, bool weights) const;
  // The torch.autograd.Function around a path that has one node for all inside; kNoIndex where
  // there is none.
  uint32_t function_around(uint32_t path) const;
  // Of all products inside of such a function together; `inside`: their paths.
  ExpectedBackward of_function(uint32_t function, const std::vector<uint32_t>& inside,
                               u128 multiply_adds) const;
  // Whether a product of its nodes is as large as a forward product's weights, and its gradient by
  // the other operand is not.
  bool of_weights(uint32_t path) const;
  // Whether no operator before this one in the order of forward has gradients, and it has.
  bool first(uint32_t path) const { return path == first_; }
  // Whether backward work was found of more calls of an operator than calls(path) of it.
  template <class Calls>
  bool has_more_than(Calls&& calls) const {
    return std::ranges::any_of(differentiated_,
                               [&](const auto& of) { return of.second > calls(of.first); });
  }
  // Whether backward work of any operator was found.
  bool any() const { return first_ != kNoIndex; }

 private:
  struct Backward {
    uint64_t launches = 0, calls = 0, numbers = 0;
    bool shared = false;  // with other forward operators
  };
  struct Sum {
    double least = 0, most = 0;  // multiply-adds
    bool unknown = false, assumed = false;
    std::string what, text;  // as in ExpectedBackward
  };
  struct BackwardWork {
    std::optional<double> multiply_adds;  // of a call, by formula
    GradientEvidence evidence;            // where one operator computes both
    double outside = 0;  // executed multiply-adds of a launch, where it is no product
  };
  // `each`: multiply-adds of all gradients of a call, if they are attention's and no formula has
  // them.
  void add_backward(uint32_t at, const Backward& backward, bool first, double each, Sum& sum) const;
  bool has_own_gradient(uint32_t path) const;
  // The torch.autograd.Function that a path is inside of; empty where there is none.
  std::string own_gradient_around(uint32_t path) const;

  // Multiply-adds that the nodes joined to this operator executed outside of products.
  double outside_of_products(uint32_t home) const;

  const OperatorMap& operators_;
  std::unordered_set<uint32_t> attention_;   // as given
  std::unordered_set<uint32_t> evaluating_;  // ranges of nodes that evaluate others
  bool complete_ = false;                    // what is missing in backward is evidence
  uint32_t first_ = kNoIndex;
  bool recorded_ = false;
  // By paths of the forward operator and of the backward one.
  std::map<uint32_t, std::map<uint32_t, Backward>> backwards_;
  std::unordered_map<uint32_t, uint64_t> differentiated_;  // calls, by forward operator's path
  std::map<uint32_t, std::vector<uint32_t>> forwards_;     // by backward operator's path
  std::unordered_map<uint32_t, BackwardWork> work_;        // by backward operator's path
};

}  // namespace flopinj::reduce
