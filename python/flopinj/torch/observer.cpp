// PyTorch's operators as ranges of libflopinj.so: what emit_nvtx(record_shapes=True) says of them,
// and the settings that it leaves out, at a fraction of its cost. Each call is named by a hash of
// its name, sizes and settings; the text is made once (injector/operators.h).
//
// Built at first use by observer.py, with the headers of the PyTorch that is imported, as it was
// built: with NDEBUG, since at::RecordFunction has a member more without.
//
// The text is that of emit_nvtx (torch/csrc/profiler/util.cpp: getNvtxStr, inputSizes), then, where
// an operator has windows, an output size or the mask of attention among its arguments, these by
// name, then the types of the tensors, each once, however many there are: they say in which
// precisions a product may run, and whether numbers are complex.
//   aten::conv2d, sizes = [[4, 3, 8, 8], [8, 3, 3, 3], [8], [], [], [], []], stride = [2, 2],
//   padding = [1, 1], dilation = [1, 1], types = [Float]
//   flash_attn::_flash_attn_forward, sizes = [...], causal = True, window_size_left = 1023,
//   window_size_right = 0, types = [BFloat16]
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "operators.h"

namespace {

const FlopinjOperators* g_operators = nullptr;

// Arguments that formulas read. Only operators that have one which tells have any.
struct Setting {
  std::string_view name;
  bool tells;
};
constexpr Setting kSettings[] = {
#define FLOPINJ_SETTING(NAME, TELLS, ...) {#NAME, TELLS},
#include "operator_settings.def"
#undef FLOPINJ_SETTING
};
constexpr size_t kMostArguments = 64;

// Which arguments of the operator are settings, a bit for each.
uint64_t settings_of(const at::RecordFunction& call) {
  const auto schema = call.operator_schema();
  if (!schema) return 0;
  const auto& arguments = schema->arguments();
  uint64_t bits = 0;
  bool tells = false;
  for (size_t i = 0; i < std::min(arguments.size(), kMostArguments); ++i)
    for (const Setting& setting : kSettings)
      if (arguments[i].name() == setting.name) {
        bits |= uint64_t{1} << i;
        tells |= setting.tells;
      }
  return tells ? bits : 0;
}

// By the name and by where it is: overloads of one name are each at a place of their own.
struct Operator {
  const char* place = nullptr;
  uint64_t name = 0;
  uint64_t settings = 0;
};
thread_local std::array<Operator, 512> t_operators;

// The product of two 64-bit numbers, its halves folded into one: a bit of either changes about half
// of the bits.
inline uint64_t mixed(uint64_t hash, uint64_t value) {
  const auto product =
      static_cast<unsigned __int128>(hash ^ 0x9e3779b97f4a7c15) * (value ^ 0xe7037ed1a0b428db);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hash_of(std::string_view text, uint64_t hash) {
  hash = mixed(hash, text.size());
  uint64_t word = 0;
  for (; text.size() > 8; text.remove_prefix(8)) {
    std::memcpy(&word, text.data(), 8);
    hash = mixed(hash, word);
  }
  word = 0;
  std::memcpy(&word, text.data(), text.size());
  return mixed(hash, word);
}

// Each kind of argument begins with a number of its own.
enum Mark : uint64_t { kNothing = 1, kTensor, kList, kNumbers, kNumber, kWord, kFlags };

uint64_t hash_of(const at::Tensor& tensor, uint64_t hash) {
  if (!tensor.defined()) return mixed(hash, kNothing);
  const auto sizes = tensor.sizes();
  const auto type = static_cast<uint64_t>(tensor.scalar_type());
  hash = mixed(hash, kTensor | sizes.size() << 8 | type << 32);
  for (const int64_t size : sizes) hash = mixed(hash, static_cast<uint64_t>(size));
  return hash;
}

uint64_t hash_of(const c10::IValue& value, bool setting, uint64_t hash) {
  if (value.isTensor()) return hash_of(value.toTensor(), hash);
  if (setting && value.isInt())
    return mixed(mixed(hash, kNumber), static_cast<uint64_t>(value.toInt()));
  if (setting && value.isBool()) return mixed(mixed(hash, kNumber), value.toBool());
  if (setting && value.isString()) return hash_of(value.toStringRef(), mixed(hash, kWord));
  if (!value.isList()) return mixed(hash, kNothing);
  const auto list = value.toListRef();
  if (setting && value.isIntList()) {
    hash = mixed(hash, kNumbers | list.size() << 8);
    for (const auto& element : list) hash = mixed(hash, static_cast<uint64_t>(element.toInt()));
    return hash;
  }
  if (setting && value.isBoolList()) {
    hash = mixed(hash, kFlags | list.size() << 8);
    for (const auto& element : list) hash = mixed(hash, element.toBool());
    return hash;
  }
  hash = mixed(hash, kList);
  for (const auto& element : list)
    if (element.isTensor() && element.toTensor().defined())
      hash = hash_of(element.toTensor(), hash);
  return mixed(hash, kNothing);  // the end of the list
}

template <class Numbers>
void write(const Numbers& numbers, std::string& text) {
  text += '[';
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  text += ']';
}

void write_flags(const c10::List<bool>& flags, std::string& text) {
  text += '[';
  for (size_t i = 0; i < flags.size(); ++i)
    text += std::string(i > 0 ? ", " : "") + (flags.get(i) ? "True" : "False");
  text += ']';
}

// Sizes of the tensors in the arguments, as emit_nvtx has them: an argument that is no tensor has
// none, and a list those of its tensors. And their types.
class Sizes {
 public:
  explicit Sizes(std::string& text) : text_(text) {}
  void add(const c10::IValue& value) {
    if (value.isTensor()) {
      tensor(value.toTensor());
      return;
    }
    bool any = false;
    if (value.isList())
      for (const auto& element : value.toListRef())
        if (element.isTensor() && element.toTensor().defined()) {
          tensor(element.toTensor());
          any = true;
        }
    if (!any) place();
  }
  const std::string& types() const { return types_; }  // in the order in which they came

 private:
  void separate() {
    if (!first_) text_ += ", ";
    first_ = false;
  }
  void place() {
    separate();
    text_ += "[]";
  }
  void tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return place();
    separate();
    write(tensor.sizes(), text_);
    const auto type = tensor.scalar_type();
    if (seen_.test(static_cast<uint8_t>(type))) return;
    seen_.set(static_cast<uint8_t>(type));
    types_ += (types_.empty() ? "" : ", ") + std::string(c10::toString(type));
  }

  std::string& text_;
  std::string types_;
  std::bitset<256> seen_;
  bool first_ = true;
};

void write_setting(const std::string& name, const c10::IValue& value, std::string& text) {
  const std::string begin = ", " + name + " = ";
  if (value.isInt())
    text += begin + std::to_string(value.toInt());
  else if (value.isBool())
    text += begin + (value.toBool() ? "True" : "False");
  else if (value.isString())
    text += begin + value.toStringRef();
  else if (value.isIntList())
    text += begin, write(value.toIntVector(), text);
  else if (value.isBoolList())
    text += begin, write_flags(value.toBoolList(), text);
}

std::string text_of(const at::RecordFunction& call, uint64_t settings) {
  std::string text = call.name();
  const auto inputs = call.inputs();
  if (inputs.empty()) return text;
  text += ", sizes = [";
  Sizes sizes(text);
  for (const auto& input : inputs) sizes.add(input);
  text += ']';
  if (settings != 0) {
    const auto schema = call.operator_schema();
    for (size_t i = 0; schema && i < std::min(inputs.size(), kMostArguments); ++i)
      if ((settings >> i & 1) != 0) write_setting(schema->arguments()[i].name(), inputs[i], text);
  }
  if (!sizes.types().empty()) text += ", types = [" + sizes.types() + "]";
  return text;
}

// Tensors without sizes (nested, symbolic) throw: then the call has its name only, as any call has
// whose arguments nobody gave.
void push(const at::RecordFunction& call) {
  const std::string_view name = call.name();
  uint64_t hash = hash_of(name, 0), settings = 0;
  try {
    Operator& known =
        t_operators[(hash ^ reinterpret_cast<uintptr_t>(name.data()) >> 4) % t_operators.size()];
    if (known.place != name.data() || known.name != hash)
      known = {name.data(), hash, settings_of(call)};
    settings = known.settings;
    const auto inputs = call.inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      hash = hash_of(inputs[i], i < kMostArguments && (settings >> i & 1) != 0, hash);
    if (g_operators->push(hash, call.seqNr()) == 0) return;
    const std::string text = text_of(call, settings);
    g_operators->push_named(hash, call.seqNr(), text.data(), text.size());
    return;
  } catch (...) {
  }
  g_operators->push_named(mixed(hash, kNothing), call.seqNr(), name.data(), name.size());
}

// What names cost: one call of so many is timed, for all of them. Beside our own part there is
// PyTorch's, of a call that is observed, twice as much (docs/frameworks.md, "What names cost").
constexpr uint32_t kTimedEach = 16, kWithPyTorchs = 3;
std::atomic<uint64_t> g_spent_ns{0};

void push_and_count(const at::RecordFunction& call) {
  thread_local uint32_t t_calls = 0;
  if (++t_calls % kTimedEach != 0) return push(call);
  const auto begin = std::chrono::steady_clock::now();
  push(call);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  g_spent_ns.fetch_add(static_cast<uint64_t>(took.count()) * kTimedEach * kWithPyTorchs,
                       std::memory_order_relaxed);
}

}  // namespace

extern "C" {

// Nanoseconds that names of operators have cost the program, on all threads.
__attribute__((visibility("default"))) uint64_t flopinj_observer_spent() {
  return g_spent_ns.load(std::memory_order_relaxed);
}

// From now on the operators of this thread, and those that autograd runs for it, are ranges. The
// result is for flopinj_observer_end().
__attribute__((visibility("default"))) uint64_t flopinj_observer_begin(
    const FlopinjOperators* operators) {
  g_operators = operators;
  return at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
            push_and_count(call);
            return nullptr;
          },
          [](const at::RecordFunction&, at::ObserverContext*) { g_operators->pop(); })
          .needsInputs(true));
}

__attribute__((visibility("default"))) void flopinj_observer_end(uint64_t handle) {
  at::removeCallback(handle);
}
}
