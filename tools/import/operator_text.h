// An operator of PyTorch's as flopinj.torch's observer names its range: the name, the sizes of its
// tensors, the settings that formulas read, and the types of its tensors
// (python/flopinj/torch/observer.cpp).
#pragma once
#include <string>
#include <string_view>

namespace flopinj::import {

// Arguments of an operator, as the profiler's file has them; empty where it has none.
struct OperatorArguments {
  std::string_view dims;      // "Input Dims": [[64, 3], [], [[2], [2]]]
  std::string_view types;     // "Input type": ["float", "Scalar", ""]
  std::string_view concrete;  // "Concrete Inputs": ["", "[1, 1]", "True"]
  // Of a collective (record_param_comms): its name, what a rank gives and gets, in elements, their
  // type, and how many ranks take part.
  std::string_view collective, in_elements, out_elements, element, ranks;
};

// Into `text`, whose memory is used again.
void write_operator(std::string_view name, const OperatorArguments&, std::string& text);

}  // namespace flopinj::import
