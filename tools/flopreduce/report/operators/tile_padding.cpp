#include "report/operators/tile_padding.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analytic/formula.h"

namespace flopinj::reduce {
namespace {

// Rows and columns of the result that one thread block computes; 0: the depth is not known.
struct Tile {
  uint64_t rows = 0, columns = 0, depth = 0;
};

// Runs of numbers with an x between: {128, 64}, {32, 3}; {128, 128, 16}.
std::vector<std::vector<uint64_t>> sizes_in(const std::string& name) {
  constexpr uint64_t kMost = 1024;
  constexpr size_t kMostRuns = 8;
  const auto digit = [&](size_t i) { return i < name.size() && name[i] >= '0' && name[i] <= '9'; };
  std::vector<std::vector<uint64_t>> runs;
  for (size_t i = 0; i < name.size() && runs.size() < kMostRuns;) {
    if (!digit(i)) {
      ++i;
      continue;
    }
    std::vector<uint64_t> run;
    for (;;) {
      uint64_t value = 0;
      for (; digit(i); ++i)
        if (value <= kMost) value = value * 10 + static_cast<uint64_t>(name[i] - '0');
      run.push_back(value);
      if (i >= name.size() || name[i] != 'x' || !digit(i + 1)) break;
      ++i;
    }
    const bool small = std::all_of(run.begin(), run.end(), [](uint64_t v) { return v <= kMost; });
    if (run.size() > 1 && small) runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<Tile> tiles_in(const std::string& name) {
  std::vector<Tile> tiles;
  const auto runs = sizes_in(name);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& run = runs[i];
    if (run[0] < 8 || run[1] < 8) continue;
    Tile tile{run[0], run[1], run.size() > 2 ? run[2] : 0};
    // "_32x3": depth and stages
    if (tile.depth == 0 && i + 1 < runs.size() && runs[i + 1].size() == 2 && runs[i + 1][1] < 8)
      tile.depth = runs[i + 1][0];
    tiles.push_back(tile);
  }
  return tiles;
}

uint64_t padded(uint64_t size, uint64_t tile) {
  return tile == 0 || size > UINT64_MAX - tile ? size : (size + tile - 1) / tile * tile;
}

std::optional<std::string> fits(const Gemm& gemm, const Tile& tile, double ratio) {
  const uint64_t rows = padded(gemm.rows, tile.rows), columns = padded(gemm.columns, tile.columns),
                 depth = padded(gemm.depth, tile.depth);
  const double expected =
      quotient(rows, gemm.rows) * quotient(columns, gemm.columns) * quotient(depth, gemm.depth);
  if (std::abs(expected - ratio) > std::min(0.01 * ratio, 0.25 * (ratio - 1))) return std::nullopt;
  const auto text = [](uint64_t a, uint64_t b, uint64_t c) {
    return std::to_string(a) + " x " + std::to_string(b) +
           (c > 0 ? " x " + std::to_string(c) : std::string());
  };
  const bool deep = tile.depth > 0;
  return text(gemm.rows, gemm.columns, deep ? gemm.depth : 0) + " computed as " +
         text(rows, columns, deep ? depth : 0) + ", tiles of " +
         text(tile.rows, tile.columns, tile.depth);
}

// Either side of the result may be the tile's longer one.
std::optional<std::string> fits_turned(const Gemm& gemm, const Tile& tile, double ratio) {
  if (auto text = fits(gemm, tile, ratio)) return text;
  return fits(gemm, {tile.columns, tile.rows, tile.depth}, ratio);
}

bool plausible(const Gemm& gemm, double ratio) {
  return ratio > 1 && gemm.rows > 0 && gemm.columns > 0 && gemm.depth > 0;
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

std::optional<Gemm> gemm_of(const OperatorName& name, u128 multiply_adds, Direction direction) {
  if (!name.has_sizes || multiply_adds == 0) return std::nullopt;
  if (direction == Direction::kForward)
    if (auto found = product(name, multiply_adds)) return found;
  return convolution(name, multiply_adds, direction);
}

std::optional<std::string> explain_padding(const Gemm& gemm, const std::string& kernel,
                                           double ratio) {
  if (!plausible(gemm, ratio)) return std::nullopt;
  for (const Tile& tile : tiles_in(kernel)) {
    if (auto text = fits_turned(gemm, {tile.rows, tile.columns, 0}, ratio)) return text;
    if (tile.depth == 0) continue;
    if (auto text = fits_turned(gemm, tile, ratio)) return text;
  }
  return std::nullopt;
}

std::optional<std::string> explain_padding_unnamed(const Gemm& gemm, double ratio) {
  if (!plausible(gemm, ratio)) return std::nullopt;
  for (const uint64_t rows : {8U, 16U, 32U, 64U, 128U})
    for (const uint64_t columns : {8U, 16U, 32U, 64U, 128U})
      if (auto text = fits(gemm, {rows, columns, 0}, ratio)) return text;
  return std::nullopt;
}

}  // namespace flopinj::reduce
