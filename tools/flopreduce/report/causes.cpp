#include "report/causes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Smaller differences are not asked after.
constexpr double kAgrees = 0.001;

bool contains(const std::string& text, std::string_view part) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

// The first kernel that did or may have done arithmetic whose name has one of the parts.
template <class Parts>
const OperatorKernel* kernel_with(const OperatorFacts& facts, const Parts& parts) {
  for (const auto& kernel : facts.kernels)
    for (const std::string_view part : parts)
      if (contains(kernel.name, part)) return &kernel;
  return nullptr;
}

std::string shown(const OperatorKernel& kernel) {
  return "kernel " + cut(demangle(kernel.name), 120);
}

double ratio_of(u128 a, u128 b) { return static_cast<double>(a) / static_cast<double>(b); }

// "_128x64_", "tilesize128x128x32": rows and columns of the result that one thread block computes.
struct Tile {
  uint64_t rows = 0, columns = 0;
};
std::vector<Tile> tiles_in(const std::string& name) {
  constexpr uint64_t kMost = 1024;
  const auto digit = [&](size_t i) { return i < name.size() && name[i] >= '0' && name[i] <= '9'; };
  const auto number = [&](size_t& i) {
    uint64_t value = 0;
    for (; digit(i) && value <= kMost; ++i)
      value = value * 10 + static_cast<uint64_t>(name[i] - '0');
    return value;
  };
  std::vector<Tile> tiles;
  for (size_t i = 0; i < name.size() && tiles.size() < 8;) {
    if (!digit(i)) {
      ++i;
      continue;
    }
    Tile tile;
    tile.rows = number(i);
    if (i >= name.size() || name[i] != 'x' || !digit(i + 1)) continue;
    ++i;
    tile.columns = number(i);
    if (tile.rows >= 8 && tile.columns >= 8 && tile.rows <= kMost && tile.columns <= kMost)
      tiles.push_back(tile);
  }
  return tiles;
}

// Rows and columns of the product that an operator is for the hardware; nothing for others.
struct Result {
  uint64_t rows = 0, columns = 0;
};
std::optional<Result> result_of(const OperatorFacts& facts) {
  const auto& sizes = facts.name->sizes;
  const std::string_view function = facts.name->function();
  const size_t first = function == "addmm" || function == "baddbmm" ? 1 : 0;
  const bool linear = function == "linear";
  const bool product = linear || function == "mm" || function == "bmm" || function == "addmm" ||
                       function == "baddbmm" || function == "matmul";
  if (!product || sizes.size() < first + 2) return std::nullopt;
  const Shape& a = sizes[first];
  const Shape& b = sizes[first + 1];
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  uint64_t rows = static_cast<uint64_t>(a[a.size() - 2]);
  if (linear)
    rows = static_cast<uint64_t>(elements(a) / static_cast<u128>(std::max<int64_t>(1, a.back())));
  return Result{rows, static_cast<uint64_t>(linear ? b[0] : b.back())};
}

uint64_t padded(uint64_t size, uint64_t tile) {
  return size > UINT64_MAX - tile ? size : (size + tile - 1) / tile * tile;
}

// Tensor cores compute whole tiles: of the thread block where its name tells its size, of one
// instruction (8, 16) otherwise.
std::optional<Cause> padding(const OperatorFacts& facts, double ratio) {
  const auto result = result_of(facts);
  if (!facts.tensor || ratio <= 1 || !result || result->rows == 0 || result->columns == 0)
    return std::nullopt;
  const auto text = [](uint64_t a, uint64_t b) {
    return std::to_string(a) + " x " + std::to_string(b);
  };
  const auto fits = [&](Tile tile) -> std::optional<Cause> {
    const uint64_t rows = padded(result->rows, tile.rows),
                   columns = padded(result->columns, tile.columns);
    const double expected = ratio_of(rows, result->rows) * ratio_of(columns, result->columns);
    if (std::abs(expected / ratio - 1) > 0.01) return std::nullopt;
    return Cause{"tile padding", text(result->rows, result->columns) + " computed as " +
                                     text(rows, columns) + ", tiles of " +
                                     text(tile.rows, tile.columns)};
  };
  for (const auto& kernel : facts.kernels)
    for (const Tile tile : tiles_in(kernel.name))
      for (const Tile turned : {tile, Tile{tile.columns, tile.rows}})
        if (auto cause = fits(turned)) {
          cause->evidence += ": " + shown(kernel);
          return cause;
        }
  for (const uint64_t rows : {8U, 16U, 32U, 64U, 128U})
    for (const uint64_t columns : {8U, 16U, 32U, 64U, 128U})
      if (auto cause = fits({rows, columns})) return cause;
  return std::nullopt;
}

// Algorithms that need other numbers of operations than the formula.
std::optional<Cause> algorithm(const OperatorFacts& facts) {
  struct Algorithm {
    const char* cause;
    std::array<std::string_view, 2> parts;
  };
  static constexpr Algorithm kAlgorithms[] = {
      {"Winograd", {"winograd", "winogrand"}},
      {"FFT", {"fft2d", "fft_"}},
  };
  for (const auto& a : kAlgorithms)
    if (const auto* kernel = kernel_with(facts, a.parts)) return Cause{a.cause, shown(*kernel)};
  return std::nullopt;
}

// A gradient by the input that nobody asked for, or one of the two that was not launched.
std::optional<Cause> missing_gradient(const OperatorFacts& facts, double ratio) {
  if (!facts.formula.backward || ratio < 0.4 || ratio > 0.65) return std::nullopt;
  static constexpr std::array<std::string_view, 4> kInput = {"dgrad", "input_gradient", "bwd_data",
                                                             "backward_data"};
  static constexpr std::array<std::string_view, 4> kWeight = {"wgrad", "weight_gradient",
                                                              "bwd_filter", "backward_filter"};
  if (kernel_with(facts, kInput) != nullptr) return std::nullopt;
  if (facts.first_layer)
    return Cause{"no input gradient", "the first layer, and no kernel of its computes one"};
  if (const auto* kernel = kernel_with(facts, kWeight))
    return Cause{"no input gradient", "only the weights' gradient: " + shown(*kernel)};
  return std::nullopt;
}

std::optional<Cause> fused(const OperatorFacts& facts) {
  static constexpr std::array<std::string_view, 8> kParts = {
      "fused", "triton_", "flash", "fmha", "epilogue", "gemm_relu", "gemm_bias", "_relu_"};
  if (const auto* kernel = kernel_with(facts, kParts)) return Cause{"fused", shown(*kernel)};
  return std::nullopt;
}

// A difference that is a whole number of additions for each element of the result: a bias.
std::optional<Cause> bias(const OperatorFacts& facts, u128 executed, u128 formula) {
  const auto& sizes = facts.name->sizes;
  if (executed <= formula || sizes.empty()) return std::nullopt;
  u128 result = 0;
  if (const auto product = result_of(facts))
    result = times_saturating(product->rows, product->columns);
  else if (facts.formula.backward)
    result = elements(sizes[0]);
  if (result == 0 || executed - formula != times_saturating(result, facts.calls))
    return std::nullopt;
  return Cause{facts.formula.backward ? "bias gradient" : "bias",
               "the difference is one addition per element of the result, " + to_grouped(result)};
}

// One call is several kernels: harmless here, since calls are told apart, but whoever counts the
// formula once per kernel counts too much.
std::string per_kernel(const OperatorFacts& facts) {
  if (facts.kernels.empty() || facts.calls == 0) return {};
  const uint64_t each = facts.kernels[0].launches / facts.calls;
  return each > 1 ? std::to_string(each) + " launches of one kernel per call" : std::string();
}

Cause explain(const OperatorFacts& facts, u128 executed, u128 formula) {
  const double ratio = formula == 0 ? 0 : ratio_of(executed, formula);
  if (auto cause = algorithm(facts)) return *cause;
  if (auto cause = padding(facts, ratio)) return *cause;
  if (auto cause = missing_gradient(facts, ratio)) return *cause;
  if (auto cause = bias(facts, executed, formula)) return *cause;
  if (auto cause = fused(facts)) return *cause;
  if (!facts.calls_counted && formula > 0 && ratio > 0) {
    const double parts = 1 / ratio;
    if (parts > 1.5 && std::abs(parts - std::round(parts)) < 0.01 * parts)
      return {"calls estimated", "each launch does 1/" + std::to_string(std::llround(parts)) +
                                     " of the formula: one call may be as many launches"};
  }
  return {"unexplained", ""};
}

}  // namespace

Cause cause_of(const OperatorFacts& facts) {
  const Work& work = facts.work;
  if (!work.flop_known()) return {"no hardware count", facts.unmeasured_reason};
  if (!facts.formula.flop) return {"no formula", facts.formula.why_not};
  Cause cause;
  const u128 formula = facts.formula.flop->times(facts.calls).flop(facts.fma);
  if (work.unmeasured > 0) {
    cause = {"no hardware count", std::to_string(work.unmeasured) + " of " +
                                      std::to_string(work.launches) +
                                      " launches: " + facts.unmeasured_reason};
  } else if (work.flop != formula &&
             (formula == 0 || std::abs(ratio_of(work.flop, formula) - 1) > kAgrees)) {
    cause = explain(facts, work.flop, formula);
  }
  if (facts.phase == "recompute") {
    cause.evidence = cause.cause.empty() ? "runs inside backward, and ran in forward"
                                         : cause.cause + ": " + cause.evidence;
    cause.cause = "recompute";
  }
  if (cause.cause.empty() && work.flop == 0 && facts.formula.flop->uncounted > 0)
    cause = {"not counted", "comparisons and special functions alone"};
  if (const std::string note = per_kernel(facts); !note.empty() && facts.calls_counted)
    cause.evidence += (cause.evidence.empty() ? "" : "; ") + note;
  return cause;
}

}  // namespace flopinj::reduce
