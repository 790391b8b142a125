// Kernels of fused attention, known by their names: where no range says how long sequences are, as
// of packed ones, or where no range names an operator, the products that they executed are all that
// is known of the model's.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace flopinj::reduce {

struct AttentionKernel {
  enum class Does : uint8_t {
    kForward,
    kBackward,  // all gradients
    kKeys,      // of keys and values only: another kernel has those of queries
    kQueries,
    kBeside,  // what is prepared or put together around them: no product
  };
  Does does = Does::kForward;
  std::string_view family;  // whose kernels belong together
  // Products of queries, keys, values and their gradients that it executes, and those that the
  // model needs: without scores and gradients by them that another kernel has computed too.
  int products = 0, needed = 0;
  // Backward's kernels of that family may be of another algorithm than the usual one.
  bool varies = false;

  double share() const { return products == 0 ? 0 : static_cast<double>(needed) / products; }
};

// Of a kernel's name, mangled or not. A name is evidence of the kind of work only.
std::optional<AttentionKernel> attention_kernel(std::string_view name);
// The parts of names that it reads, in no order.
std::vector<std::string_view> attention_kernel_parts();

}  // namespace flopinj::reduce
