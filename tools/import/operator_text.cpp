#include <import/json_text.h>
#include <import/operator_text.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flopinj::import {
namespace {

struct Setting {
  uint8_t place;  // among the operator's arguments, from 0
  std::string_view name;
};
struct OperatorSettingPlaces {
  std::string_view name;
  std::array<Setting, 5> settings;  // those with a name
};

// Which of an operator's arguments are settings: the file has their values without their names.
// Source: the schemas of PyTorch (aten/src/ATen/native/native_functions.yaml, those of convolution
// in 1.8 to 2.15) and of flash_attn 2.7 (flash_attn_interface.py).
constexpr auto kPlaces = std::to_array<OperatorSettingPlaces>({
    {"aten::conv1d", {{{3, "stride"}, {4, "padding"}, {5, "dilation"}}}},
    {"aten::conv2d", {{{3, "stride"}, {4, "padding"}, {5, "dilation"}}}},
    {"aten::conv3d", {{{3, "stride"}, {4, "padding"}, {5, "dilation"}}}},
    {"aten::conv_transpose1d", {{{3, "stride"}, {4, "padding"}, {7, "dilation"}}}},
    {"aten::conv_transpose2d", {{{3, "stride"}, {4, "padding"}, {7, "dilation"}}}},
    {"aten::conv_transpose3d", {{{3, "stride"}, {4, "padding"}, {7, "dilation"}}}},
    {"aten::convolution", {{{3, "stride"}, {4, "padding"}, {5, "dilation"}, {6, "transposed"}}}},
    {"aten::_convolution", {{{3, "stride"}, {4, "padding"}, {5, "dilation"}, {6, "transposed"}}}},
    {"aten::convolution_overrideable",
     {{{3, "stride"}, {4, "padding"}, {5, "dilation"}, {6, "transposed"}}}},
    {"aten::convolution_backward",
     {{{4, "stride"}, {5, "padding"}, {6, "dilation"}, {7, "transposed"}}}},
    {"aten::cudnn_convolution", {{{2, "padding"}, {3, "stride"}, {4, "dilation"}}}},
    {"aten::cudnn_convolution_relu", {{{3, "stride"}, {4, "padding"}, {5, "dilation"}}}},
    {"aten::max_pool1d",
     {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "dilation"}, {5, "ceil_mode"}}}},
    {"aten::max_pool2d",
     {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "dilation"}, {5, "ceil_mode"}}}},
    {"aten::max_pool3d",
     {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "dilation"}, {5, "ceil_mode"}}}},
    {"aten::max_pool2d_with_indices",
     {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "dilation"}, {5, "ceil_mode"}}}},
    {"aten::max_pool3d_with_indices",
     {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "dilation"}, {5, "ceil_mode"}}}},
    {"aten::max_pool2d_with_indices_backward",
     {{{2, "kernel_size"}, {3, "stride"}, {4, "padding"}, {5, "dilation"}, {6, "ceil_mode"}}}},
    {"aten::avg_pool1d", {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "ceil_mode"}}}},
    {"aten::avg_pool2d", {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "ceil_mode"}}}},
    {"aten::avg_pool3d", {{{1, "kernel_size"}, {2, "stride"}, {3, "padding"}, {4, "ceil_mode"}}}},
    {"aten::avg_pool2d_backward",
     {{{2, "kernel_size"}, {3, "stride"}, {4, "padding"}, {5, "ceil_mode"}}}},
    {"aten::adaptive_avg_pool1d", {{{1, "output_size"}}}},
    {"aten::adaptive_avg_pool2d", {{{1, "output_size"}}}},
    {"aten::adaptive_avg_pool3d", {{{1, "output_size"}}}},
    {"aten::_adaptive_avg_pool2d", {{{1, "output_size"}}}},
    {"aten::_adaptive_avg_pool3d", {{{1, "output_size"}}}},
    {"aten::adaptive_max_pool2d", {{{1, "output_size"}}}},
    {"aten::adaptive_max_pool3d", {{{1, "output_size"}}}},
    {"aten::scaled_dot_product_attention", {{{5, "is_causal"}}}},
    {"aten::_scaled_dot_product_attention_math", {{{5, "is_causal"}}}},
    {"aten::_scaled_dot_product_flash_attention", {{{4, "is_causal"}}}},
    {"aten::_scaled_dot_product_flash_attention_backward", {{{11, "is_causal"}}}},
    {"aten::_scaled_dot_product_efficient_attention", {{{6, "is_causal"}}}},
    {"aten::_scaled_dot_product_efficient_attention_backward", {{{10, "is_causal"}}}},
    {"aten::_scaled_dot_product_cudnn_attention", {{{6, "is_causal"}}}},
    {"aten::_scaled_dot_product_cudnn_attention_backward", {{{14, "is_causal"}}}},
    {"aten::_flash_attention_forward",
     {{{8, "is_causal"}, {11, "window_size_left"}, {12, "window_size_right"}}}},
    {"aten::_flash_attention_backward",
     {{{11, "is_causal"}, {15, "window_size_left"}, {16, "window_size_right"}}}},
    {"aten::_efficient_attention_forward", {{{9, "custom_mask_type"}, {13, "window_size"}}}},
    {"flash_attn::_flash_attn_forward",
     {{{5, "causal"}, {6, "window_size_left"}, {7, "window_size_right"}}}},
    {"flash_attn::_flash_attn_backward",
     {{{11, "causal"}, {12, "window_size_left"}, {13, "window_size_right"}}}},
});

// Types of tensors as C++ spells them, and as PyTorch does (c10/core/ScalarType.h).
struct TypeName {
  std::string_view cpp, name;
};
constexpr auto kTypes = std::to_array<TypeName>({
    {"float", "Float"},
    {"double", "Double"},
    {"c10::Half", "Half"},
    {"c10::BFloat16", "BFloat16"},
    {"at::Half", "Half"},
    {"at::BFloat16", "BFloat16"},
    {"c10::complex<float>", "ComplexFloat"},
    {"c10::complex<double>", "ComplexDouble"},
    {"c10::complex<c10::Half>", "ComplexHalf"},
    {"unsigned char", "Byte"},
    {"signed char", "Char"},
    {"short int", "Short"},
    {"short", "Short"},
    {"int", "Int"},
    {"long int", "Long"},
    {"long", "Long"},
    {"bool", "Bool"},
    {"unsigned short", "UInt16"},
    {"unsigned int", "UInt32"},
    {"unsigned long", "UInt64"},
    {"c10::Float8_e4m3fn", "Float8_e4m3fn"},
    {"c10::Float8_e5m2", "Float8_e5m2"},
    {"c10::Float8_e4m3fnuz", "Float8_e4m3fnuz"},
    {"c10::Float8_e5m2fnuz", "Float8_e5m2fnuz"},
    {"c10::Float8_e8m0fnu", "Float8_e8m0fnu"},
    {"c10::Float4_e2m1fn_x2", "Float4_e2m1fn_x2"},
    {"c10::qint8", "QInt8"},
    {"c10::quint8", "QUInt8"},
    {"c10::qint32", "QInt32"},
});

bool is_list(std::string_view value) { return value.starts_with('['); }

// True where an element of the list is one itself.
bool holds_lists(std::string_view list) {
  bool nested = false;
  json_elements(list, [&](std::string_view element) {
    nested = is_list(element);
    return false;
  });
  return nested;
}

class Writer {
 public:
  explicit Writer(std::string& text) : text_(text) {}

  // A list of tensors is as many arguments.
  void sizes(std::string_view dims) {
    if (!is_list(dims)) return;
    text_ += ", sizes = [";
    bool first = true;
    const auto shape = [&](std::string_view numbers) {
      text_ += first ? "[" : ", [";
      first = false;
      bool begun = false;
      json_elements(numbers, [&](std::string_view number) {
        if (begun) text_ += ", ";
        text_ += number;
        begun = true;
        return true;
      });
      text_ += ']';
      return true;
    };
    json_elements(dims, [&](std::string_view argument) {
      return holds_lists(argument) ? json_elements(argument, shape) : shape(argument);
    });
    text_ += ']';
  }

  void settings(std::string_view name, std::string_view concrete) {
    if (!is_list(concrete)) return;
    const auto known = std::ranges::find(kPlaces, name, &OperatorSettingPlaces::name);
    if (known == kPlaces.end()) return;
    size_t place = 0;
    json_elements(concrete, [&](std::string_view value) {
      for (const Setting& setting : known->settings)
        if (!setting.name.empty() && setting.place == place) this->setting(setting.name, value);
      ++place;
      return true;
    });
  }

  // Each once, in the order in which they come.
  void types(std::string_view list) {
    if (!is_list(list)) return;
    seen_.clear();
    const auto type = [&](std::string_view written) {
      const auto known = std::ranges::find(kTypes, json_string(written, buffer_), &TypeName::cpp);
      if (known == kTypes.end() || std::ranges::count(seen_, known->name) != 0) return true;
      text_ += seen_.empty() ? ", types = [" : ", ";
      text_ += known->name;
      seen_.push_back(known->name);
      return true;
    };
    json_elements(list, [&](std::string_view argument) {
      return is_list(argument) ? json_elements(argument, type) : type(argument);
    });
    if (!seen_.empty()) text_ += ']';
  }

 private:
  void setting(std::string_view name, std::string_view written) {
    const std::string_view value = json_string(written, buffer_);
    if (value.empty() || value == "None") return;
    text_ += ", ";
    text_ += name;
    text_ += " = ";
    text_ += value;
  }

  std::string& text_;
  std::string buffer_;
  std::vector<std::string_view> seen_;
};

}  // namespace

void write_operator(std::string_view name, const OperatorArguments& arguments, std::string& text) {
  text = name;
  if (arguments.dims.empty() || arguments.dims == "[]") return;
  Writer writer(text);
  writer.sizes(arguments.dims);
  writer.settings(name, arguments.concrete);
  writer.types(arguments.types);
}

}  // namespace flopinj::import
