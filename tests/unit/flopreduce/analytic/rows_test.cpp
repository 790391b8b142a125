// Every row of every table of formulas has a case: what does one thing for each element, and
// operators that are others under another name. A row without a case fails the last test here.
#include <functional>
#include <iterator>
#include <set>
#include <sstream>

#include "analytic/tables.h"
#include "counted.h"
#include "operator_names.h"

using namespace flopinj::reduce;
using namespace flopinj::test;

namespace {

// Names with a space between.
using Names = const char*;

std::vector<std::string> each(std::string_view names) {
  std::istringstream words{std::string(names)};
  return {std::istream_iterator<std::string>(words), {}};
}

// What is done for one element: to numbers that may be any, and so nothing is folded.
struct Definition {
  Names names;
  std::function<void(Counted a, Counted b)> one;
};

const std::vector<Definition> kDefinitions = {
    // Moving data is no operation.
    {"copy _to_copy to clone contiguous fill zero zeros ones full zeros_like ones_like "
     "full_like cat stack repeat repeat_interleave reshape flip roll tril triu "
     "constant_pad_nd reflection_pad2d replication_pad2d pixel_shuffle pixel_unshuffle "
     "channel_shuffle im2col slice_backward select_backward index index_select gather "
     "masked_select scatter one_hot embedding upsample_nearest1d upsample_nearest2d "
     "upsample_nearest3d _foreach_copy _foreach_zero",
     [](Counted, Counted) {}},
    {"add rsub sub sum nansum mean cumsum scatter_add index_add embedding_dense_backward "
     "reflection_pad2d_backward replication_pad2d_backward col2im "
     "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward "
     "max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
     "adaptive_max_pool2d_backward adaptive_max_pool3d_backward nll_loss nll_loss_nd "
     "nll_loss2d nll_loss_forward nll_loss2d_forward _foreach_add _foreach_sub",
     [](Counted a, Counted b) { (void)(a + b); }},
    {"mul square prod cumprod nll_loss_backward nll_loss2d_backward _foreach_mul",
     [](Counted a, Counted b) { (void)(a * b); }},
    {"div true_divide reciprocal _foreach_div _foreach_reciprocal",
     [](Counted a, Counted b) { (void)(a / b); }},
    {"addcmul _foreach_addcmul", [](Counted a, Counted b) { (void)fused(0.5 * a, b, 1.0); }},
    {"addcdiv _foreach_addcdiv", [](Counted a, Counted b) { (void)fused(0.5, a / b, 1.0); }},
    {"lerp _foreach_lerp", [](Counted a, Counted b) { (void)fused(0.3, b - a, a); }},
    {"_masked_scale native_dropout_backward",
     [](Counted dy, Counted mask) { (void)(dy * mask * 2.0); }},
    {"dropout native_dropout _fused_dropout",
     [](Counted x, Counted drawn) { (void)(x * (drawn > 0.5 ? 1.0 : 0.0) * 2.0); }},
    {"var var_mean std std_mean",
     [](Counted x, Counted) {
       Counted sum, squares;
       sum += x;
       const Counted d = x - 0.1;
       squares = fused(d, d, squares);
     }},
    {"norm linalg_vector_norm _foreach_norm", [](Counted x, Counted) { (void)fused(x, x, 0); }},
    {"logsumexp",
     [](Counted x, Counted) {
       Counted sum, most = max(x, 0.9);
       sum += exp(x - most);
     }},
    {"cosine_similarity",
     [](Counted a, Counted b) {
       (void)fused(a, b, 0), (void)fused(a, a, 0), (void)fused(b, b, 0);
     }},
    // One of what no FLOP counter counts.
    {"neg abs sign sgn floor ceil round trunc sqrt rsqrt exp exp2 expm1 log log2 log10 "
     "log1p sin cos tan atan2 erf erfinv pow _foreach_sqrt _foreach_rsqrt _foreach_exp "
     "_foreach_log _foreach_tanh _foreach_pow _foreach_neg _foreach_abs _foreach_sign",
     [](Counted x, Counted) { (void)abs(x); }},
    {"clamp_min clamp_max maximum minimum where masked_fill eq ne lt le gt ge isnan "
     "isfinite amax amin max min argmax argmin topk sort argsort max_pool1d max_pool2d "
     "max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
     "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d threshold relu "
     "threshold_backward _foreach_max _foreach_maximum _foreach_minimum _foreach_clamp_max "
     "_foreach_clamp_min",
     [](Counted a, Counted b) { (void)max(a, b); }},
    {"clamp isinf", [](Counted x, Counted) { (void)min(max(x, 0), 1); }},
    {"_amp_foreach_non_finite_check_and_unscale",
     [](Counted x, Counted) { (void)(x > 1e30), (void)(x * 0.5); }},
    {"_prelu_kernel", [](Counted x, Counted w) { (void)(-x > 0 ? x : w * -x); }},
    {"_prelu_kernel_backward",
     [](Counted x, Counted w) { (void)(x > 0), (void)(w * 0.9), (void)(x * 0.9); }},
    {"log_sigmoid_forward",
     [](Counted x, Counted) { (void)(min(x, 0) - log(1.0 + exp(-abs(x)))); }},
    {"_safe_softmax",
     [](Counted x, Counted most) {
       Counted sum, y = exp(x - max(x, most));
       sum += y;
       (void)(y / sum);
     }},
    // Per element of the gradient: the weights' products, then into each neighbour.
    {"upsample_linear1d_backward",
     [](Counted g, Counted w) {
       for (int i = 0; i < 2; ++i) (void)fused(g, w, 0);
     }},
    {"upsample_bilinear2d_backward",
     [](Counted g, Counted w) {
       for (int row = 0; row < 2; ++row) {
         const Counted of_row = g * w;
         for (int column = 0; column < 2; ++column) (void)fused(of_row, w, 0);
       }
     }},
    {"upsample_trilinear3d_backward",
     [](Counted g, Counted w) {
       for (int plane = 0; plane < 2; ++plane) {
         const Counted of_plane = g * w;
         for (int row = 0; row < 2; ++row) {
           const Counted of_row = of_plane * w;
           for (int column = 0; column < 2; ++column) (void)fused(of_row, w, 0);
         }
       }
     }},
    {"upsample_bicubic2d_backward",
     [](Counted g, Counted w) {
       for (int row = 0; row < 4; ++row) {
         const Counted of_row = g * w;
         for (int column = 0; column < 4; ++column) (void)fused(of_row, w, 0);
       }
     }},
};

const Definition* definition_of(std::string_view function) {
  for (const Definition& d : kDefinitions)
    for (const std::string& name : each(d.names))
      if (function == name) return &d;
  return nullptr;
}

OperatorFlop counted(const Definition& d) {
  Counted::tally = {};
  d.one(0.3, 0.7);
  return {Counted::tally.fused, Counted::tally.single, Counted::tally.other};
}

// An operator of one dimension more or less, or with another name: `count` multiply-adds.
struct Product {
  Names names;
  std::vector<Shape> sizes;
  uint64_t count;
};

const std::vector<Product> kProducts = {
    {"mm _scaled_mm _scaled_mm_v2", {{4, 5}, {5, 6}}, 4 * 5 * 6},
    {"addmm _addmm_activation", {{6}, {4, 5}, {5, 6}}, 4 * 5 * 6},
    {"bmm", {{3, 4, 5}, {3, 5, 6}}, 3 * 4 * 5 * 6},
    {"baddbmm", {{3, 4, 6}, {3, 4, 5}, {3, 5, 6}}, 3 * 4 * 5 * 6},
    {"addbmm", {{4, 6}, {3, 4, 5}, {3, 5, 6}}, 3 * 4 * 5 * 6},
    {"_grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2", {{3, 4, 5}, {3, 5, 6}}, 3 * 4 * 5 * 6},
    {"matmul", {{4, 5}, {5, 6}}, 4 * 5 * 6},
    {"linear _weight_int8pack_mm", {{4, 5}, {6, 5}, {6}}, 4 * 5 * 6},
    {"linear_backward", {{4, 5}, {4, 6}, {6, 5}}, 2 * 4 * 5 * 6},
    {"bilinear", {{3, 4}, {3, 5}, {2, 4, 5}}, 3 * 2 * 5 * (4 + 1)},
    {"mv", {{4, 5}, {5}}, 4 * 5},
    {"addmv", {{4}, {4, 5}, {5}}, 4 * 5},
    {"dot vdot", {{5}, {5}}, 5},
    {"addr", {{4, 5}, {4}, {5}}, 4 * 5},
    // One step of a cell: both products of each unit's gates.
    {"lstm_cell", {{3, 5}, {3, 6}, {3, 6}, {24, 5}, {24, 6}}, 3 * 24 * (5 + 6)},
    {"gru_cell", {{3, 5}, {3, 6}, {18, 5}, {18, 6}}, 3 * 18 * (5 + 6)},
    {"rnn_tanh_cell rnn_relu_cell", {{3, 5}, {3, 6}, {6, 5}, {6, 6}}, 3 * 6 * (5 + 6)},
    // Four steps of three samples.
    {"lstm", {{4, 3, 5}, {1, 3, 6}, {24, 5}, {24, 6}}, 4 * 3 * 24 * (5 + 6)},
    {"gru", {{4, 3, 5}, {1, 3, 6}, {18, 5}, {18, 6}}, 4 * 3 * 18 * (5 + 6)},
    {"rnn_tanh rnn_relu", {{4, 3, 5}, {1, 3, 6}, {6, 5}, {6, 6}}, 4 * 3 * 6 * (5 + 6)},
    {"_cudnn_rnn", {{4, 3, 5}, {24, 5}, {24, 6}, {}}, 4 * 3 * 24 * (5 + 6)},
    {"_cudnn_rnn_backward", {{4, 3, 5}, {24, 5}, {24, 6}, {}}, 2 * 4 * 3 * 24 * (5 + 6)},
    {"embedding_bag _embedding_bag _embedding_bag_forward_only",
     {{100, 16}, {12}, {3}, {}, {}, {}, {12}, {}, {}},
     12 * 16},
};

// Queries 2 x 3 heads x 7 x 4, keys and values of 9: heads before positions, or behind them.
struct Attention {
  Names names;
  bool heads_first, backward;
};
const std::vector<Attention> kAttention = {
    {"scaled_dot_product_attention _scaled_dot_product_attention_math "
     "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
     "_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable",
     true, false},
    {"_scaled_dot_product_flash_attention_backward "
     "_scaled_dot_product_efficient_attention_backward "
     "_scaled_dot_product_cudnn_attention_backward "
     "_scaled_dot_product_fused_attention_overrideable_backward",
     true, true},
    {"_flash_attention_forward _efficient_attention_forward _flash_attn_forward "
     "_flash_attn_varlen_forward flash_attn_3::fwd efficient_attention_forward_cutlass",
     false, false},
    {"_flash_attention_backward _efficient_attention_backward _flash_attn_backward "
     "_flash_attn_varlen_backward flash_attn_3::bwd efficient_attention_backward_cutlass",
     false, true},
};

// Convolutions of 2 x 3 channels of 4 x ... with 5 filters of 2 x ..., without padding: 3 x ...
struct Convolution {
  Names names;
  size_t dimensions;
  enum { kPlain, kTransposed, kGradient } kind;
};
const std::vector<Convolution> kConvolutions = {
    {"conv1d", 1, Convolution::kPlain},
    {"conv2d convolution _convolution convolution_overrideable cudnn_convolution "
     "cudnn_convolution_relu cudnn_convolution_add_relu thnn_conv2d _slow_conv2d_forward "
     "slow_conv_dilated2d _conv_depthwise2d",
     2, Convolution::kPlain},
    {"conv3d slow_conv3d slow_conv_dilated3d conv_depthwise3d", 3, Convolution::kPlain},
    {"conv_transpose1d", 1, Convolution::kTransposed},
    {"conv_transpose2d slow_conv_transpose2d cudnn_convolution_transpose", 2,
     Convolution::kTransposed},
    {"conv_transpose3d slow_conv_transpose3d", 3, Convolution::kTransposed},
    {"convolution_backward convolution_backward_overrideable cudnn_convolution_backward "
     "_slow_conv2d_backward",
     2, Convolution::kGradient},
};

// Windows of 2 by steps of 2: 4 to 2.
struct Pooling {
  Names names;
  size_t dimensions;
  bool backward;
};
const std::vector<Pooling> kPoolings = {
    {"avg_pool1d adaptive_avg_pool1d", 1, false},
    {"avg_pool2d adaptive_avg_pool2d _adaptive_avg_pool2d", 2, false},
    {"avg_pool3d adaptive_avg_pool3d _adaptive_avg_pool3d", 3, false},
    {"avg_pool2d_backward _adaptive_avg_pool2d_backward", 2, true},
    {"avg_pool3d_backward _adaptive_avg_pool3d_backward", 3, true},
};

// The same work as another operator, which definitions_test.cpp holds against the algorithm.
struct Alias {
  const char* name;
  std::vector<Shape> sizes;
  const char* other;
  std::vector<Shape> of_other;
};
const Shape kRow{2, 24}, kWeight{24};
const std::vector<Alias> kAliases = {
    {"native_layer_norm", {kRow, {}, kWeight, kWeight}, "layer_norm", {kRow, {}, kWeight, kWeight}},
    {"group_norm", {kRow, {}, kWeight, kWeight}, "layer_norm", {kRow, {}, kWeight, kWeight}},
    {"_fused_rms_norm", {kRow, {}, kWeight, {}}, "rms_norm", {kRow, {}, kWeight, {}}},
    {"instance_norm", {kRow, kWeight, kWeight, {}, {}}, "batch_norm", {kRow, kWeight, kWeight, {}}},
    {"_batch_norm_impl_index", {kRow, {}, {}, {}, {}}, "batch_norm", {kRow, {}, {}, {}}},
    {"native_batch_norm", {kRow, {}, {}, {}, {}}, "batch_norm", {kRow, {}, {}, {}}},
    {"_native_batch_norm_legit", {kRow, {}, {}, {}, {}}, "batch_norm", {kRow, {}, {}, {}}},
    {"cudnn_batch_norm", {kRow, kWeight, kWeight, {}}, "batch_norm", {kRow, kWeight, kWeight, {}}},
    // The name alone says that the batch's statistics are taken, whatever else is there.
    {"_batch_norm_with_update",
     {kRow, kWeight, kWeight, kWeight, kWeight},
     "batch_norm",
     {kRow, kWeight, kWeight, {}}},
};

// Held against loops and definitions in the other files.
const char* const kElsewhere =
    "native_layer_norm_backward native_group_norm native_group_norm_backward layer_norm "
    "rms_norm _fused_rms_norm_backward batch_norm native_batch_norm_backward "
    "cudnn_batch_norm_backward batch_norm_stats batch_norm_elemt "
    "batch_norm_backward_reduce batch_norm_backward_elemt _thnn_fused_lstm_cell "
    "_thnn_fused_gru_cell _thnn_fused_lstm_cell_backward "
    "_thnn_fused_lstm_cell_backward_impl _thnn_fused_gru_cell_backward upsample_linear1d "
    "upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d leaky_relu "
    "leaky_relu_backward prelu relu6 hardtanh hardtanh_backward hardsigmoid "
    "hardsigmoid_backward hardswish hardswish_backward elu elu_backward selu celu sigmoid "
    "sigmoid_backward log_sigmoid log_sigmoid_backward tanh tanh_backward softplus "
    "softplus_backward silu silu_backward mish mish_backward gelu gelu_backward glu "
    "glu_backward softmax _softmax _softmax_backward_data log_softmax _log_softmax "
    "_log_softmax_backward_data cross_entropy_loss mse_loss mse_loss_backward l1_loss "
    "smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward kl_div "
    "binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits "
    "_foreach_sigmoid _fused_adam _fused_adamw _fused_sgd _fused_adagrad";

// Names say what leaves the work open.
const char* const kNever =
    "_int_mm grid_sampler_2d grid_sampler_3d grid_sampler_2d_backward "
    "grid_sampler_3d_backward";

std::string call(const std::string& name, const std::vector<Shape>& sizes) {
  const std::string aten = range(name, sizes);
  return name.find("::") == name.npos ? aten : aten.substr(6);
}

uint64_t power(uint64_t base, size_t exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

Shape with_dimensions(Shape shape, size_t dimensions, int64_t size) {
  shape.insert(shape.end(), dimensions, size);
  return shape;
}

}  // namespace

TEST_CASE("operators that do one thing for each element, by their definitions") {
  const Shape x{3, 5};
  for (const ElementwiseRow& row : elementwise_operators())
    for (const std::string& name : each(row.functions)) {
      const Definition* d = definition_of(name);
      if (d == nullptr) continue;
      CHECK(flop_of(range(name, {x, x, x, x})) == counted(*d).times(15));
      CHECK(formula_of(range(name, {x, x, x, x})).backward == name.ends_with("_backward"));
    }
}

TEST_CASE("list operators in each of their forms") {
  const std::vector<Shape> list{{3, 5}, {7}};
  for (const ListRow& row : list_operators())
    for (const std::string& name : each(row.functions))
      for (const std::string& form : each(row.arguments)) {
        const Definition* d = definition_of(name);
        if (d == nullptr) continue;
        std::vector<Shape> sizes;
        for (const char kind : form)
          if (kind == 'P')
            sizes.insert(sizes.end(), list.begin(), list.end());
          else
            sizes.resize(sizes.size() + (kind == 'S' ? list.size() : 1));
        INFO(name << " " << form);
        // Two lists and alpha look like one list and a number, and so does a tensor of one value
        // and alpha.
        const bool alike = (name == "_foreach_add" || name == "_foreach_sub") && form != "P.";
        if (alike)
          CHECK_FALSE(formula_of(range(name, sizes)).flop);
        else
          CHECK(flop_of(range(name, sizes)) == counted(*d).times(15 + 7));
      }
}

TEST_CASE("products, cells and layers under each of their names") {
  for (const Product& p : kProducts)
    for (const std::string& name : each(p.names)) CHECK(macs(call(name, p.sizes)) == p.count);
  for (const char* name : {"outer", "ger"})  // added to nothing
    CHECK(flop_of(range(name, {{4}, {5}})) == OperatorFlop{0, 20, 0});
}

TEST_CASE("attention under each of its names") {
  for (const Attention& a : kAttention) {
    const Shape q = a.heads_first ? Shape{2, 3, 7, 4} : Shape{2, 7, 3, 4};
    const Shape k = a.heads_first ? Shape{2, 3, 9, 4} : Shape{2, 9, 3, 4};
    const std::vector<Shape> sizes =
        a.backward ? std::vector<Shape>{q, q, k, k, q} : std::vector<Shape>{q, k, k};
    for (const std::string& name : each(a.names)) {
      CHECK(macs(call(name, sizes)) == 2 * 3 * 7 * 9 * 4 * (a.backward ? 5 : 2));
      CHECK(formula_of(call(name, sizes)).backward == a.backward);
    }
  }
}

TEST_CASE("convolutions of each kind under each of their names") {
  for (const Convolution& c : kConvolutions) {
    const Shape input = with_dimensions({2, 3}, c.dimensions, 4),
                output = with_dimensions({2, 5}, c.dimensions, 3),
                weight = with_dimensions({5, 3}, c.dimensions, 2);
    const uint64_t products = 2 * 5 * power(3, c.dimensions) * 3 * power(2, c.dimensions);
    for (const std::string& name : each(c.names))
      if (c.kind == Convolution::kTransposed)  // ends swapped
        CHECK(macs(range(name, {output, weight, {}}), {.output = &input}) == products);
      else if (c.kind == Convolution::kGradient)
        CHECK(macs(range(name, {output, input, weight})) == 2 * products);
      else
        CHECK(macs(range(name, {input, weight, {}}), {.output = &output}) == products);
  }
}

TEST_CASE("average pooling under each of its names") {
  for (const Pooling& p : kPoolings) {
    const Shape input = with_dimensions({2, 3}, p.dimensions, 4),
                output = with_dimensions({2, 3}, p.dimensions, 2);
    const uint64_t operations = 6 * (power(4, p.dimensions) + power(2, p.dimensions));
    for (const std::string& name : each(p.names)) {
      const std::vector<Shape> sizes =
          p.backward ? std::vector<Shape>{output, input} : std::vector<Shape>{input, {}};
      CHECK(
          flop_of(range(name, sizes), {.output = p.backward ? nullptr : &output,
                                       .module = "AvgPool(kernel_size=2, stride=2, padding=0)"}) ==
          OperatorFlop{0, operations, 0});
    }
  }
}

TEST_CASE("norms under other names") {
  for (const Alias& a : kAliases)
    CHECK(flop_of(range(a.name, a.sizes)) == flop_of(range(a.other, a.of_other)));
  // Running statistics: x - mean, by sigma, then scale and shift.
  CHECK(flop_of(range("_native_batch_norm_legit_no_training",
                      {kRow, kWeight, kWeight, kWeight, kWeight, {}, {}})) ==
        OperatorFlop{48, 2 * 48, 0});
}

TEST_CASE("every row of every table has a case") {
  std::set<std::string> cases = {"_native_batch_norm_legit_no_training", "outer", "ger"};
  const auto add = [&](const Names& names) {
    for (const std::string& name : each(names)) cases.insert(name);
  };
  for (const Definition& d : kDefinitions) add(d.names);
  for (const Product& p : kProducts) add(p.names);
  for (const Attention& a : kAttention) add(a.names);
  for (const Convolution& c : kConvolutions) add(c.names);
  for (const Pooling& p : kPoolings) add(p.names);
  for (const Alias& a : kAliases) cases.insert(a.name);
  add(kElsewhere);
  add(kNever);
  std::set<std::string> rows;
  for (const std::string_view name : operators_with_formula()) rows.emplace(name);
  for (const std::string& row : rows) {
    INFO(row);
    CHECK(cases.contains(row));
  }
  for (const std::string& one : cases) {  // no case that nothing is looked up by
    INFO(one);
    CHECK(rows.contains(one));
  }
  for (const std::string& name : each(kNever)) {
    const Formula formula = formula_of(range(name, {{2, 3}, {3, 4}}));
    CHECK_FALSE(formula.flop);
    CHECK(*formula.why_not != '\0');
  }
}
