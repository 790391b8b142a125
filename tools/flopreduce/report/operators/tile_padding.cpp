#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "report/operators/operator_facts.h"

namespace flopinj::reduce {
namespace {

// Rows and columns of the result that one thread block computes; 0: the depth is not known.
struct Tile {
  uint64_t rows = 0, columns = 0, depth = 0;
};

// Tiles that a kernel's name has, with the depth of a step where it has one: "128x128x16",
// "128x64_32x3" (depth and stages). Either side of the result may be the tile's longer one.
std::vector<Tile> tiles_in(const std::string& name) {
  static const RE2 kTile(R"((?:^|\D)(\d{1,9})x(\d{1,9})(?:x(\d{1,9})|_(\d{1,9})x[1-7](?:\D|$))?)");
  constexpr uint64_t kLeast = 8, kLargest = 1024;
  std::vector<Tile> tiles;
  re2::StringPiece rest(name);
  uint64_t rows = 0, columns = 0;
  std::string third, step;
  while (tiles.size() < 32 && RE2::FindAndConsume(&rest, kTile, &rows, &columns, &third, &step)) {
    const uint64_t depth = std::strtoull((third + step).c_str(), nullptr, 10);  // one at most
    if (std::min(rows, columns) < kLeast || std::max({rows, columns, depth}) > kLargest) continue;
    for (const uint64_t of_step : {uint64_t{0}, depth}) {
      tiles.push_back({rows, columns, of_step});
      tiles.push_back({columns, rows, of_step});
    }
  }
  return tiles;
}

uint64_t padded(uint64_t size, uint64_t tile) {
  return tile == 0 || size > UINT64_MAX - tile ? size : (size + tile - 1) / tile * tile;
}

std::string text_of(uint64_t a, uint64_t b, uint64_t c) {
  return std::to_string(a) + " x " + std::to_string(b) + (c > 0 ? " x " + std::to_string(c) : "");
}

std::optional<uint64_t> small(u128 value) {
  if (value == 0 || value > UINT64_MAX) return std::nullopt;
  return static_cast<uint64_t>(value);
}

std::optional<Gemm> product(const OperatorName& name, u128 multiply_adds) {
  const auto factors = factors_of(name);
  if (!factors) return std::nullopt;
  const Shape& a = factors->first;
  const Shape& b = factors->second;
  const bool linear = name.function() == "linear";
  if (a.size() < 2 || b.size() < 2 || a.back() <= 0) return std::nullopt;
  const auto depth = static_cast<u128>(a.back());
  const auto rows = small(linear ? elements(a) / depth : static_cast<u128>(a[a.size() - 2]));
  const auto columns = small(static_cast<u128>(linear ? b[0] : b.back()));
  if (!rows || !columns) return std::nullopt;
  const auto batch = small(multiply_adds / depth / *rows / *columns);
  if (!batch) return std::nullopt;
  return Gemm{*batch, *rows, *columns, static_cast<uint64_t>(depth)};
}

std::optional<Gemm> convolution(const OperatorName& name, u128 multiply_adds, Direction direction) {
  const std::string_view function = name.function();
  const bool gradient = function.ends_with("_backward");
  const size_t first = gradient ? 1 : 0;
  if (function.find("conv") == std::string_view::npos ||
      function.find("transpose") != std::string_view::npos || name.sizes.size() < first + 2)
    return std::nullopt;
  const Shape& input = name.sizes[first];
  const Shape& weight = name.sizes[first + 1];
  if (weight.size() < 3 || input.size() + 1 < weight.size() || input.size() > weight.size())
    return std::nullopt;
  const size_t channel = input.size() + 1 - weight.size();
  const int64_t channels = input[channel], of_group = weight[1], filters = weight[0];
  if (of_group <= 0 || filters <= 0 || channels <= 0 || channels % of_group != 0)
    return std::nullopt;
  const int64_t groups = channels / of_group;
  // Of a transposed convolution the weights are sorted by the input's channels.
  const bool plain =
      !gradient || (name.sizes[0].size() == input.size() && name.sizes[0][channel] == filters);
  if (!plain || filters % groups != 0) return std::nullopt;
  const auto taps =
      small(elements(weight) / static_cast<u128>(filters) / static_cast<u128>(of_group));
  const auto positions = small(multiply_adds / std::max<u128>(1, elements(weight)));
  const auto inputs = small(elements(input) / static_cast<u128>(channels));
  if (!taps || !positions || !inputs) return std::nullopt;
  const auto batch = static_cast<uint64_t>(groups), in = static_cast<uint64_t>(of_group),
             out = static_cast<uint64_t>(filters / groups);
  switch (direction) {
    case Direction::kForward:
      return Gemm{batch, *positions, out, in * *taps};
    case Direction::kInputGradient:
      return Gemm{batch, *inputs, in, out * *taps};
    case Direction::kWeightGradient:
      break;
  }
  return Gemm{batch, out, in * *taps, *positions};
}

}  // namespace

std::optional<Factors> factors_of(const OperatorName& name) {
  const std::string_view function = name.function();
  const bool adds = function == "addmm" || function == "baddbmm" || function == "_addmm_activation";
  const bool known =
      adds || function == "linear" || function == "mm" || function == "bmm" || function == "matmul";
  const size_t first = adds ? 1 : 0;
  if (!known || !name.has_sizes || name.sizes.size() < first + 2) return std::nullopt;
  return Factors{name.sizes[first], name.sizes[first + 1]};
}

std::optional<MatrixSizes> weight_sizes(const OperatorName& name) {
  const auto factors = factors_of(name);
  if (!factors || factors->second.size() != 2) return std::nullopt;
  return std::minmax({factors->second[0], factors->second[1]});
}

std::optional<MatrixSizes> input_sizes(const OperatorName& name) {
  const auto factors = factors_of(name);
  if (!factors || factors->first.empty()) return std::nullopt;
  const int64_t columns = factors->first.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < factors->first.size(); ++i) rows *= factors->first[i];
  return std::minmax({rows, columns});
}

std::optional<MatrixSizes> result_sizes(const OperatorName& name) {
  const auto factors = factors_of(name);
  if (!factors || factors->first.size() != 2 || factors->second.size() != 2) return std::nullopt;
  return std::minmax({factors->first[0], factors->second[1]});
}

std::optional<Gemm> gemm_of(const OperatorName& name, u128 multiply_adds, Direction direction) {
  if (!name.has_sizes || multiply_adds == 0) return std::nullopt;
  if (direction == Direction::kForward)
    if (auto found = product(name, multiply_adds)) return found;
  return convolution(name, multiply_adds, direction);
}

std::optional<std::string> explain_padding(const Gemm& gemm, const std::string& kernel,
                                           double ratio) {
  if (ratio <= 1 || gemm.rows == 0 || gemm.columns == 0 || gemm.depth == 0) return std::nullopt;
  for (const Tile& tile : tiles_in(kernel)) {
    const uint64_t rows = padded(gemm.rows, tile.rows),
                   columns = padded(gemm.columns, tile.columns),
                   depth = padded(gemm.depth, tile.depth);
    const double expected =
        quotient(rows, gemm.rows) * quotient(columns, gemm.columns) * quotient(depth, gemm.depth);
    if (std::abs(expected - ratio) > std::min(0.01 * ratio, 0.25 * (ratio - 1))) continue;
    const bool deep = tile.depth > 0;
    return text_of(gemm.rows, gemm.columns, deep ? gemm.depth : 0) + " computed as " +
           text_of(rows, columns, deep ? depth : 0) + ", tiles of " +
           text_of(tile.rows, tile.columns, tile.depth);
  }
  return std::nullopt;
}

}  // namespace flopinj::reduce
