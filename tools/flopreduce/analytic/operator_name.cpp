#include "analytic/operator_name.h"

#include <algorithm>
#include <charconv>

#include "analytic/operator_flop.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kCustomNode = "torch::autograd::";

bool is_word(char c) { return is_alnum(c) || c == '_'; }

// Reads "[..]" and "(..)" lists of whole numbers.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : text_(text) {}

  // A list of lists, however deep: every innermost list is a shape. False where the text ends
  // before the list does, or is none.
  bool shapes(std::vector<Shape>& out) {
    int depth = 0;
    Shape shape;
    bool innermost = false;  // no list has closed since the last one opened
    do {
      skip_separators();
      if (at_ == text_.size()) return false;
      const char c = text_[at_];
      if (c == '[' || c == '(') {
        ++at_;
        if (++depth > kMostDepth) return false;
        shape.clear();
        innermost = true;
      } else if (c == ']' || c == ')') {
        ++at_;
        // A shape ends here unless this list held lists; an empty outermost list holds nothing.
        if (innermost && depth > 1 && !add(out, shape)) return false;
        innermost = false;
        --depth;
      } else if (!innermost || !number(shape)) {
        return false;
      }
    } while (depth > 0);
    return true;
  }

  // "(3, 3)" or "3".
  bool numbers(Shape& out) {
    const bool list = at_ < text_.size() && (text_[at_] == '(' || text_[at_] == '[');
    if (!list) return number(out);
    ++at_;
    while (true) {
      skip_separators();
      if (at_ == text_.size()) return false;
      if (text_[at_] == ')' || text_[at_] == ']') return true;
      if (!number(out)) return false;
    }
  }

 private:
  static constexpr int kMostDepth = 8;

  static bool add(std::vector<Shape>& out, const Shape& shape) {
    if (out.size() >= kMaxArguments) return false;
    out.push_back(shape);
    return true;
  }
  void skip_separators() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == ',')) ++at_;
  }
  bool number(Shape& out) {
    int64_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [next, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc{} || value < 0 || out.size() >= kMaxDimensions) return false;
    at_ = static_cast<size_t>(next - text_.data());
    out.push_back(value);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Where the field that begins at `from` ends: at the next ", " outside of brackets, or at the end.
size_t end_of_field(std::string_view name, size_t from) {
  int depth = 0;
  for (size_t i = from; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') depth = std::max(depth - 1, 0);
    if (c == ',' && depth == 0 && name.substr(i).starts_with(", ")) return i;
  }
  return name.size();
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

// Ways to read a setting's value, as common/operator_settings.def names them.
struct Read {
  static void sizes(std::string_view value, OperatorSettings&, Shape& to) {
    if (!ListReader(value).numbers(to)) to.clear();
  }
  static void padding(std::string_view value, OperatorSettings& all, Shape& to) {
    sizes(value, all, to);
    all.padding_same = value.starts_with("same") || value.starts_with("'same");
  }
  static void flag(std::string_view value, OperatorSettings&, std::optional<bool>& to) {
    to.reset();
    if (value.starts_with("True")) to = true;
    if (value.starts_with("False")) to = false;
  }
  // "[True, False, True]": by input, by weight, by bias.
  static void gradients(std::string_view value, OperatorSettings&,
                        std::optional<OperatorSettings::GradientMask>& to) {
    to.reset();
    std::optional<bool> input, weight;
    OperatorSettings unused;
    if (!value.starts_with('[')) return;
    flag(value.substr(1), unused, input);
    const size_t next = value.find(", ");
    if (next != value.npos) flag(value.substr(next + 2), unused, weight);
    if (input && weight) to = {*input, *weight};
  }
  static void whole(std::string_view value, OperatorSettings&, std::optional<int64_t>& to) {
    to = whole_number(value);
  }
};

// False where there is no such setting.
bool read_setting(std::string_view key, std::string_view value, OperatorSettings& out) {
#define FLOPINJ_SETTING(NAME, TELLS, READ, MEMBER) \
  if (key == #NAME) return Read::READ(value, out, out.MEMBER), true;
#include "operator_settings.def"
#undef FLOPINJ_SETTING
  return false;
}

// The fields after the first. True when one of them is of emit_nvtx.
bool read_fields(std::string_view name, size_t at, OperatorName& out) {
  bool known = false;
  while (at < name.size()) {
    const size_t next = end_of_field(name, at + 2);
    std::string_view field = name.substr(at + 2, next - at - 2);
    at = next;
    const size_t equals = field.find(" = ");
    if (equals == field.npos) continue;
    const std::string_view key = field.substr(0, equals);
    const std::string_view value = field.substr(equals + 3);
    if (key == "sizes") {
      out.has_sizes = ListReader(value).shapes(out.sizes);
      if (!out.has_sizes) out.sizes.clear();
    } else if (key == "seq") {
      uint64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error == std::errc{} && end == value.data() + value.size()) out.sequence = number;
      out.own_number = value == "#";
    } else if (key == "types") {
      out.complex = value.find("Complex") != value.npos;
      if (value.starts_with('[') && value.ends_with(']'))
        out.types = value.substr(1, value.size() - 2);
    } else if (read_setting(key, value, out.settings) ||
               (key != "op_id" && key != "input_op_ids")) {
      continue;
    }
    known = true;
  }
  return known;
}

// "AddmmBackward0" without its number; empty where the name is none of an autograd node.
std::string_view autograd_node(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && (is_digit(name[end - 1]) || name[end - 1] == '#')) --end;
  const std::string_view stem = name.substr(0, end);
  const bool word = std::all_of(stem.begin(), stem.end(), is_word);
  return word && stem.size() > 8 && stem.ends_with("Backward") ? stem : std::string_view{};
}

// The value of "key=" in a module's settings, as text up to the next comma outside of brackets.
std::string_view setting(std::string_view settings, std::string_view key) {
  for (size_t at = settings.find(key); at != settings.npos; at = settings.find(key, at + 1)) {
    const size_t value = at + key.size();
    const bool whole = at == 0 || !is_word(settings[at - 1]);
    if (whole && value < settings.size() && settings[value] == '=')
      return settings.substr(value + 1, end_of_field(settings, value + 1) - value - 1);
  }
  return {};
}

void read_settings(std::string_view text, OperatorSettings& out) {
  for (const std::string_view key :
       {"kernel_size", "stride", "dilation", "padding", "output_size", "ceil_mode"})
    read_setting(key, setting(text, key), out);
  // Other padding than by zeros is an operator of its own, before this one.
  if (!setting(text, "padding_mode").empty()) {
    out.padding.clear();
    out.padding_same = false;
  }
}

// The value of 'key' in a Python dictionary as str() prints it: a quoted word. Empty without one.
std::string_view quoted(std::string_view dictionary, std::string_view key, size_t from = 0) {
  const size_t at = dictionary.find(key, from);
  if (at == dictionary.npos) return {};
  std::string_view rest = dictionary.substr(at + key.size());
  if (!rest.starts_with("'") && !rest.starts_with("\"")) return {};
  const char quote = rest[0];
  rest.remove_prefix(1);
  return rest.substr(0, rest.find(quote));
}

// PyProf's dictionaries: a module with its settings, or a function with its arguments.
std::optional<OperatorName> parse_pyprof(std::string_view range) {
  OperatorName out;
  const std::string_view module = quoted(range, "'mod': ");
  if (module.empty()) return std::nullopt;
  if (const std::string_view settings = quoted(range, "'strRepr': "); !settings.empty()) {
    out.kind = OperatorKind::kModule;
    out.name = module;
    read_settings(settings, out.settings);
    return out;
  }
  out.name = quoted(range, "'op': ");
  const size_t arguments = range.find("'args': [");
  if (out.name.empty() || arguments == range.npos) return std::nullopt;
  out.has_sizes = true;
  // Each argument is a dictionary; one that is no tensor counts as a scalar.
  size_t close = 0;
  for (size_t at = range.find('{', arguments); at != range.npos; at = range.find('{', close)) {
    close = range.find('}', at);
    const std::string_view argument = range.substr(at, close - at);
    Shape shape;
    const size_t key = argument.find("'shape': ");
    const bool fits = out.sizes.size() < kMaxArguments &&
                      (key == argument.npos || ListReader(argument.substr(key + 9)).numbers(shape));
    if (!fits || close == range.npos) {
      out.has_sizes = false;
      out.sizes.clear();
      break;
    }
    out.sizes.push_back(std::move(shape));
  }
  return out;
}

// "Conv2d(3, 64, kernel_size=(3, 3), ...)"
std::optional<OperatorName> parse_module(std::string_view range) {
  const size_t open = range.find('(');
  if (open == range.npos || open == 0 || !is_upper(range[0]) || !range.ends_with(")"))
    return std::nullopt;
  const std::string_view name = range.substr(0, open);
  if (!std::all_of(name.begin(), name.end(), is_word)) return std::nullopt;
  OperatorName out;
  out.kind = OperatorKind::kModule;
  out.name = name;
  read_settings(range.substr(open + 1, range.size() - open - 2), out.settings);
  return out;
}

}  // namespace

std::string_view OperatorName::function() const {
  const size_t colons = name.rfind("::");
  return colons == name.npos ? name : name.substr(colons + 2);
}

std::optional<OperatorName> parse_operator_name(std::string_view range) {
  if (range.starts_with("{'")) return parse_pyprof(range);
  OperatorName out;
  std::string_view rest = range;
  const bool evaluate = rest.starts_with(kEvaluateFunction);
  if (evaluate) rest.remove_prefix(kEvaluateFunction.size());
  const size_t first = end_of_field(rest, 0);
  out.name = rest.substr(0, first);
  const bool fields = read_fields(rest, first, out);
  const std::string_view node = autograd_node(out.name);
  if (evaluate || !node.empty() || out.name.starts_with(kCustomNode)) {
    out.kind = OperatorKind::kAutograd;
    if (!node.empty()) out.name = node;
    return out;
  }
  // "aten::mm": a namespace and a name, both words.
  const size_t colons = out.name.find("::");
  const bool qualified =
      colons != out.name.npos && colons > 0 && colons + 2 < out.name.size() &&
      std::all_of(out.name.begin(), out.name.end(), [](char c) { return is_word(c) || c == ':'; });
  if (qualified) keep_arguments(out);
  if (qualified || (fields && out.has_sizes)) return out;
  return parse_module(range);
}

}  // namespace flopinj::reduce
