// Ranges of PyTorch's dispatcher, by their names: what is a call of an operator, for the recorder
// and for the reader.
#pragma once
#include <string_view>

namespace flopinj {

// Whether a range is an operator's: "aten::mul, sizes = [[64]]". Autograd's own
// ("autograd::engine::evaluate_function: ...", "torch::autograd::...") and functions in Python are
// none, nor is a name of C++ as users write it ("Net::forward").
inline bool is_operator_range(std::string_view name) noexcept {
  name = name.substr(0, name.find_first_of(", "));
  const auto lower = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  size_t at = 0;
  while (at < name.size() && lower(name[at])) ++at;
  const std::string_view space = name.substr(0, at);
  return at > 0 && name.substr(at).starts_with("::") && space != "autograd" && space != "torch";
}

}  // namespace flopinj
