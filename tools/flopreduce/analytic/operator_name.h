// What a range's name says of an operator: PyTorch's emit_nvtx form, with the settings that
// flopinj.torch adds to it, autograd nodes, and the module annotations of PyProf. Any bytes may
// come in; nothing is allocated beyond the sizes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace flopinj::reduce {

class GivenFormula;

// Elements along each dimension; empty for a scalar and for an argument that is no tensor.
using Shape = std::vector<int64_t>;

enum class OperatorKind : uint8_t {
  kFunction,  // "aten::conv2d", "flash_attn::_flash_attn_forward"
  kAutograd,  // "autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0"
  kModule,    // "Conv2d(3, 64, kernel_size=(3, 3), stride=(1, 1))": settings, no sizes
  kRange,     // a range of the program's, or a kernel, with a formula of the user's own
};

// Settings that emit_nvtx leaves out; a module's annotation has them, and so has flopinj.torch's
// own name of an operator. One value per dimension, or one for all; empty where no name says.
struct OperatorSettings {
  Shape kernel{}, stride{}, padding{}, dilation{}, output{};
  bool padding_same = false;        // padding=same: the output is as large as the input
  std::optional<bool> ceil_mode{};  // pooling: the last window may reach beyond the input
  std::optional<bool> transposed{};
  // Of a convolution's backward: which gradients it computes.
  struct GradientMask {
    bool input = true, weight = true;
    bool operator==(const GradientMask&) const = default;
  };
  std::optional<GradientMask> gradients{};
  // Of attention: which keys a query sees.
  std::optional<bool> causal{};
  std::optional<int64_t> window_left{}, window_right{};  // keys on either side; below 0: all
  std::optional<int64_t> chunk{};      // keys of its own chunk of so many only; 0: no chunks
  std::optional<int64_t> mask_type{};  // xFormers': 0 none, 1 causal from the first, 2 the last key
  std::optional<int64_t> window{};     // likewise: so many keys up to its own
  bool operator==(const OperatorSettings&) const = default;
};

// Views point into the name that was parsed.
struct OperatorName {
  OperatorKind kind = OperatorKind::kFunction;
  std::string_view name;  // "aten::conv2d"; of autograd nodes without its number: "AddmmBackward"
  std::optional<uint64_t> sequence;  // autograd sequence number; usually cut out by the recorder
  bool own_number = false;           // inside of an autograd node it has a number of its own
  bool has_sizes = false;            // false too where the name was cut inside them
  bool complex = false;              // of an argument it is said that its numbers are
  std::string_view types;            // of the arguments: "BFloat16, BFloat16, -"; empty: not said
  std::vector<Shape> sizes;          // of the arguments, in order; tensor lists are flattened
  OperatorSettings settings;         // of kModule, and of kFunction from flopinj.torch
  // The user's own; of kRange null where the program gives the range its FLOP.
  const GivenFormula* given = nullptr;

  bool has_given_formula() const { return given != nullptr || kind == OperatorKind::kRange; }

  // The name without its namespace: "conv2d".
  std::string_view function() const;
};

// What autograd's engine puts before the name of the node that it evaluates.
inline constexpr std::string_view kEvaluateFunction = "autograd::engine::evaluate_function: ";

// The field of an operator that has a sequence number of its own inside of an autograd node,
// whatever the number (proto/FORMAT.md, range paths).
inline constexpr std::string_view kOwnNumber = ", seq = #";

// Arguments and dimensions beyond these make the sizes unknown. A name as long as the recorder
// writes them has no more arguments.
inline constexpr size_t kMaxArguments = 8192;
inline constexpr size_t kMaxDimensions = 16;

// Nothing where the name is none of an operator. Forms that are read:
//   aten::conv2d, seq = 3, op_id = 7, sizes = [[64, 3, 224, 224], [], [64]], input_op_ids = [(5,0)]
//   (torch.autograd.profiler.emit_nvtx: torch/csrc/profiler/util.cpp, getNvtxStr)
//   aten::conv2d, sizes = [[4, 3, 8, 8], [8, 3, 3, 3], []], stride = [2, 2], padding = [1, 1]
//   aten::_flash_attention_forward, sizes = [...], is_causal = True, window_size_left = 1023
//   aten::mm, sizes = [[4, 4], [4, 4]], types = [ComplexFloat, ComplexFloat]
//   aten::convolution_backward, sizes = [...], output_mask = [False, True, False]
//   (flopinj.torch: python/flopinj/torch/observer.cpp)
//   autograd::engine::evaluate_function: ConvolutionBackward0, op_id = 9
//   aten::mul, seq = #, sizes = [[64], []]      (the recorder's: inside of an autograd node)
//   ConvolutionBackward0, seq = 3, op_id = 10, sizes = [[64, 64, 112, 112]]
//   {'mod': 'Conv2d', 'strRepr': '3, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)'}
//   (PyProf, apex/pyprof/nvtx/nvmarker.py), and the same as Conv2d(3, 64, kernel_size=...)
//   {'mod': 'torch', 'op': 'matmul', 'args': [{'type': 'tensor', 'shape': (64, 32), ...}, ...]}
std::optional<OperatorName> parse_operator_name(std::string_view range);

}  // namespace flopinj::reduce
