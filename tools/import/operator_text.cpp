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
  std::array<Setting, 5> settings;  // those with a name: the file has values without names
};

constexpr auto kPlaces = std::to_array<OperatorSettingPlaces>({
#define FLOPINJ_PLACES(OPERATOR, ...) {OPERATOR, {{__VA_ARGS__}}},
#include <operator_settings.def>
#undef FLOPINJ_PLACES
});
constexpr auto kNames = std::to_array<std::string_view>({
#define FLOPINJ_SETTING(NAME, ...) #NAME,
#include <operator_settings.def>
#undef FLOPINJ_SETTING
});
static_assert(std::ranges::all_of(kPlaces, [](const OperatorSettingPlaces& places) {
  return std::ranges::all_of(places.settings, [](const Setting& setting) {
    return setting.name.empty() || std::ranges::find(kNames, setting.name) != kNames.end();
  });
}));

// Types of tensors as C++ spells them, and as PyTorch does (c10/core/ScalarType.h).
struct TypeName {
  std::string_view cpp, name;
  uint8_t bytes;  // of an element
};
constexpr auto kTypes = std::to_array<TypeName>({
    {"float", "Float", 4},
    {"double", "Double", 8},
    {"c10::Half", "Half", 2},
    {"c10::BFloat16", "BFloat16", 2},
    {"at::Half", "Half", 2},
    {"at::BFloat16", "BFloat16", 2},
    {"c10::complex<float>", "ComplexFloat", 8},
    {"c10::complex<double>", "ComplexDouble", 16},
    {"c10::complex<c10::Half>", "ComplexHalf", 4},
    {"unsigned char", "Byte", 1},
    {"signed char", "Char", 1},
    {"short int", "Short", 2},
    {"short", "Short", 2},
    {"int", "Int", 4},
    {"long int", "Long", 8},
    {"long", "Long", 8},
    {"bool", "Bool", 1},
    {"unsigned short", "UInt16", 2},
    {"unsigned int", "UInt32", 4},
    {"unsigned long", "UInt64", 8},
    {"c10::Float8_e4m3fn", "Float8_e4m3fn", 1},
    {"c10::Float8_e5m2", "Float8_e5m2", 1},
    {"c10::Float8_e4m3fnuz", "Float8_e4m3fnuz", 1},
    {"c10::Float8_e5m2fnuz", "Float8_e5m2fnuz", 1},
    {"c10::Float8_e8m0fnu", "Float8_e8m0fnu", 1},
    {"c10::Float4_e2m1fn_x2", "Float4_e2m1fn_x2", 1},
    {"c10::qint8", "QInt8", 1},
    {"c10::quint8", "QUInt8", 1},
    {"c10::qint32", "QInt32", 4},
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

  // ", collective = allreduce, ranks = [8], bytes = [4096]", where all of it is known. The bytes
  // are those of nccl-tests: of what all ranks have together where parts are gathered or scattered.
  void collective(const OperatorArguments& arguments) {
    const auto in = json_whole(arguments.in_elements), out = json_whole(arguments.out_elements),
               ranks = json_whole(arguments.ranks);
    const std::string name(json_string(arguments.collective, buffer_));
    const auto type =
        std::ranges::find(kTypes, json_string(arguments.element, buffer_), &TypeName::name);
    constexpr int64_t kMost = INT64_MAX / 16;
    if (!in || !out || !ranks || type == kTypes.end() || std::min(*in, *out) < 0 ||
        std::max(*in, *out) > kMost || *ranks < 1 || name.empty() ||
        name.find_first_of(", ") != name.npos)
      return;
    text_ += ", collective = " + name + ", ranks = [" + std::to_string(*ranks) + "], bytes = [" +
             std::to_string(std::max(*in, *out) * type->bytes) + ']';
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
  Writer writer(text);
  if (!arguments.collective.empty()) writer.collective(arguments);
  if (arguments.dims.empty() || arguments.dims == "[]") return;
  writer.sizes(arguments.dims);
  writer.settings(name, arguments.concrete);
  writer.types(arguments.types);
}

}  // namespace flopinj::import
