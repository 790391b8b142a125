// The GPT's kernels. gpt_kernels.ptx is what nvcc makes of them, and is what is loaded; README.md
// gives each kernel's exact operation counts. Multiply-adds are written out: nvcc makes no others.
//
// Activations and weights are bf16, sums are fp32. All sums run in a fixed order, so a step's
// result does not depend on how kernels are scheduled.
#include <cuda_bf16.h>

#include "kernel_types.h"

#define KERNEL extern "C" __global__ void

using trainer::AdamW;
using trainer::AdamWState;
using trainer::kTile;
using trainer::Matrices;
using bf16 = __nv_bfloat16;

__device__ float load(const bf16* from) { return __bfloat162float(*from); }
__device__ void store(bf16* to, float value) { *to = __float2bfloat16_rn(value); }

__device__ int global_x() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// --- products: a warp a tile of kTile x kTile, by tensor cores

// The matrix of this block, whose z is sequence * heads + head.
template <class T>
__device__ T* matrix(const Matrices& m) {
  const int sequence = static_cast<int>(blockIdx.z) / m.heads, head = blockIdx.z % m.heads;
  return reinterpret_cast<T*>(m.address) + sequence * m.per_sequence + head * m.per_head;
}

// Rows are padded, so that eight of them lie in different banks.
using Tile = bf16[kTile][kTile + 8];

__device__ void copy_tile(Tile& tile, const bf16* from, int row) {
  constexpr int kVector = 8, kPerRow = kTile / kVector;
  for (int i = threadIdx.x; i < kTile * kPerRow; i += 32) {
    const int r = i / kPerRow, c = i % kPerRow * kVector;
    *reinterpret_cast<uint4*>(&tile[r][c]) = *reinterpret_cast<const uint4*>(&from[r * row + c]);
  }
}

// Four matrices of 8 x 8, as mma's fragments have them; each lane names a row of one.
template <bool kTransposed>
__device__ void load_fragments(unsigned (&to)[4], const bf16* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
  }
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The inner dimension is the columns of a and b in memory, or the rows of those that are
// kByRows. Where c is fp32, sums start at its values.
template <bool kARows, bool kBRows, class Result>
__device__ void product(int inner, const Matrices& ma, const Matrices& mb, const Matrices& mc) {
  __shared__ __align__(16) Tile a_tile, b_tile;
  const int lane = threadIdx.x, m0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile;
  const bf16* a = matrix<const bf16>(ma) + (kARows ? m0 : m0 * ma.row);
  const bf16* b = matrix<const bf16>(mb) + (kBRows ? n0 : n0 * mb.row);
  Result* const c = matrix<Result>(mc) + (m0 + lane / 4) * mc.row + n0 + lane % 4 * 2;

  float sum[2][4][4] = {};  // by m16, n8
  if constexpr (sizeof(Result) == sizeof(float)) {
    for (int m = 0; m < 2; ++m)
      for (int n = 0; n < 4; ++n)
        for (int i = 0; i < 4; ++i) sum[m][n][i] = c[(m * 16 + i / 2 * 8) * mc.row + n * 8 + i % 2];
  }
  // Fragments of a are ordered by rows, then by the inner dimension; those of b the other way.
  const int first = lane / 8 % 2 * 8, second = lane / 16 * 8, r = lane % 8;
  for (int k0 = 0; k0 < inner; k0 += kTile) {
    copy_tile(a_tile, a, ma.row);
    copy_tile(b_tile, b, mb.row);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kTile; k += 16) {
      unsigned fa[2][4], fb[2][4];
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const int o = x * 16;
        load_fragments<kARows>(fa[x], kARows ? &a_tile[k + second + r][o + first]
                                             : &a_tile[o + first + r][k + second]);
        load_fragments<kBRows>(fb[x], kBRows ? &b_tile[k + first + r][o + second]
                                             : &b_tile[o + second + r][k + first]);
      }
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply(sum[m][n], fa[m], &fb[n / 2][n % 2 * 2]);
    }
    __syncwarp();
    a += kARows ? kTile * ma.row : kTile;
    b += kBRows ? kTile * mb.row : kTile;
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        Result* const to = c + (m * 16 + i / 2 * 8) * mc.row + n * 8;
        if constexpr (sizeof(Result) == sizeof(float))
          *reinterpret_cast<float2*>(to) = make_float2(sum[m][n][i], sum[m][n][i + 1]);
        else
          *reinterpret_cast<__nv_bfloat162*>(to) =
              __floats2bfloat162_rn(sum[m][n][i], sum[m][n][i + 1]);
      }
}

// c = a b^T, as y = x W^T
KERNEL product_nt(int inner, Matrices a, Matrices b, Matrices c) {
  product<false, false, bf16>(inner, a, b, c);
}
// c = a b, as dx = dy W
KERNEL product_nn(int inner, Matrices a, Matrices b, Matrices c) {
  product<false, true, bf16>(inner, a, b, c);
}
// c = a^T b
KERNEL product_tn(int inner, Matrices a, Matrices b, Matrices c) {
  product<true, true, bf16>(inner, a, b, c);
}
// c = c + a^T b, as dW = dW + dy^T x
KERNEL product_tn_add(int inner, Matrices a, Matrices b, Matrices c) {
  product<true, true, float>(inner, a, b, c);
}

// --- a thread an element

// The second operand begins again after `period` elements.
KERNEL add(int count, int period, const bf16* a, const bf16* b, bf16* y) {
  const int i = global_x();
  if (i < count) store(y + i, load(a + i) + load(b + i % period));
}

// GELU by tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
constexpr float kGelu1 = 0.7978845608f, kGelu3 = 0.7978845608f * 0.044715f;
__device__ float tanh_approximate(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
KERNEL gelu(int count, const bf16* x, bf16* y) {
  const int i = global_x();
  if (i >= count) return;
  const float v = load(x + i), half = 0.5f * v;
  const float t = tanh_approximate(v * fmaf(v * v, kGelu3, kGelu1));
  store(y + i, fmaf(half, t, half));
}
KERNEL gelu_backward(int count, const bf16* x, const bf16* dy, bf16* dx) {
  const int i = global_x();
  if (i >= count) return;
  const float v = load(x + i), square = v * v;
  const float t = tanh_approximate(v * fmaf(square, kGelu3, kGelu1));
  const float of_tanh = 0.5f * v * fmaf(-t, t, 1.0f);
  const float slope = fmaf(of_tanh, fmaf(square, 3.0f * kGelu3, kGelu1), fmaf(0.5f, t, 0.5f));
  store(dx + i, load(dy + i) * slope);
}

// y[n] = table[index[n]]; `count` is rows * width.
KERNEL embedding(int count, int width, const int* index, const bf16* table, bf16* y) {
  const int i = global_x();
  if (i < count) y[i] = table[index[i / width] * width + i % width];
}
// A thread an element of the table's gradient, which is added to.
KERNEL embedding_backward(int count, int width, int rows, const int* index, const bf16* dy,
                          float* dtable) {
  const int i = global_x();
  if (i >= count) return;
  const int entry = i / width, column = i % width;
  float sum = dtable[i];
  for (int row = 0; row < rows; ++row)
    if (index[row] == entry) sum += load(dy + row * width + column);
  dtable[i] = sum;
}

// y[i] = sum over `terms` of x[term * count + i].
KERNEL sum_leading(int count, int terms, const bf16* x, bf16* y) {
  const int i = global_x();
  if (i >= count) return;
  float sum = 0;
  for (int term = 0; term < terms; ++term) sum += load(x + term * count + i);
  store(y + i, sum);
}

// --- a warp a row, four in a block

struct Row {
  int row, lane;
};
__device__ Row row_of_warp() { return {global_x() / 32, static_cast<int>(threadIdx.x % 32)}; }

__device__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d != 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}
__device__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d != 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}
__device__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ float log2_approximate(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
constexpr float kLog2E = 1.4426950409f, kLn2 = 0.6931471806f;

// Keeps mean and 1 / standard deviation of each row.
KERNEL layer_norm(int width, float inverse_width, float epsilon, const bf16* x, const bf16* weight,
                  const bf16* bias, bf16* y, float* means, float* scales) {
  const auto [row, lane] = row_of_warp();
  x += row * width;
  float sum = 0, squares = 0;
  for (int i = lane; i < width; i += 32) sum += load(x + i);
  const float mean = warp_sum(sum) * inverse_width;
  for (int i = lane; i < width; i += 32) {
    const float d = load(x + i) - mean;
    squares = fmaf(d, d, squares);
  }
  const float scale = rsqrtf(fmaf(warp_sum(squares), inverse_width, epsilon));
  for (int i = lane; i < width; i += 32) {
    const float normal = (load(x + i) - mean) * scale;
    store(y + row * width + i, fmaf(normal, load(weight + i), load(bias + i)));
  }
  if (lane == 0) {
    means[row] = mean;
    scales[row] = scale;
  }
}
KERNEL layer_norm_backward(int width, float inverse_width, const bf16* x, const bf16* weight,
                           const float* means, const float* scales, const bf16* dy, bf16* dx) {
  const auto [row, lane] = row_of_warp();
  x += row * width;
  dy += row * width;
  const float mean = means[row], scale = scales[row];
  float sum = 0, product = 0;
  for (int i = lane; i < width; i += 32) {
    const float normal = (load(x + i) - mean) * scale, g = load(dy + i) * load(weight + i);
    sum += g;
    product = fmaf(g, normal, product);
  }
  sum = warp_sum(sum) * inverse_width;
  product = warp_sum(product) * inverse_width;
  for (int i = lane; i < width; i += 32) {
    const float normal = (load(x + i) - mean) * scale, g = load(dy + i) * load(weight + i);
    store(dx + row * width + i, fmaf(-normal, product, g - sum) * scale);
  }
}
// A thread a column: adds to the gradients by weight and bias.
KERNEL layer_norm_weight_gradient(int rows, int width, const bf16* x, const float* means,
                                  const float* scales, const bf16* dy, float* dweight,
                                  float* dbias) {
  const int column = global_x();
  if (column >= width) return;
  float by_weight = dweight[column], by_bias = dbias[column];
  for (int row = 0; row < rows; ++row) {
    const float g = load(dy + row * width + column);
    const float normal = (load(x + row * width + column) - means[row]) * scales[row];
    by_weight = fmaf(g, normal, by_weight);
    by_bias += g;
  }
  dweight[column] = by_weight;
  dbias[column] = by_bias;
}

// Of the scores by scale, in place; row t of each context sees columns 0 to t. `to_exponent` is
// scale log2(e).
KERNEL causal_softmax(int context, float to_exponent, bf16* x) {
  const auto [row, lane] = row_of_warp();
  x += static_cast<size_t>(row) * context;
  const int last = row % context;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i <= last; i += 32) most = fmaxf(most, load(x + i));
  most = warp_max(most) * to_exponent;
  for (int i = lane; i < context; i += 32) {
    const float e = exp2_approximate(fmaf(load(x + i), to_exponent, -most));
    sum += i <= last ? e : 0.0f;
  }
  const float inverse = reciprocal_approximate(warp_sum(sum));
  for (int i = lane; i < context; i += 32) {
    const float e = exp2_approximate(fmaf(load(x + i), to_exponent, -most));
    store(x + i, i <= last ? e * inverse : 0.0f);
  }
}
// The gradient by the scores, in the place of that by the probabilities.
KERNEL causal_softmax_backward(int context, float scale, const bf16* y, bf16* dy) {
  const auto [row, lane] = row_of_warp();
  y += static_cast<size_t>(row) * context;
  dy += static_cast<size_t>(row) * context;
  float product = 0;
  for (int i = lane; i < context; i += 32) product = fmaf(load(dy + i), load(y + i), product);
  product = warp_sum(product);
  for (int i = lane; i < context; i += 32)
    store(dy + i, (load(dy + i) - product) * load(y + i) * scale);
}

// --- loss

KERNEL log_softmax(int classes, const bf16* x, float* y) {
  const auto [row, lane] = row_of_warp();
  x += static_cast<size_t>(row) * classes;
  y += static_cast<size_t>(row) * classes;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < classes; i += 32) most = fmaxf(most, load(x + i));
  most = warp_max(most);
  for (int i = lane; i < classes; i += 32) sum += exp2_approximate((load(x + i) - most) * kLog2E);
  const float log_sum = fmaf(log2_approximate(warp_sum(sum)), kLn2, most);
  for (int i = lane; i < classes; i += 32) y[i] = load(x + i) - log_sum;
}
// One warp: adds -scale times the sum of all rows' log-probabilities of their labels to the loss.
// Lane 0 adds up the lanes' sums.
KERNEL nll_loss(int rows, int classes, float scale, const int* labels, const float* log_p,
                float* loss) {
  __shared__ float sums[32];
  const int lane = threadIdx.x;
  float sum = 0;
  for (int row = lane; row < rows; row += 32) sum += log_p[row * classes + labels[row]];
  sums[lane] = sum;
  __syncwarp();
  if (lane != 0) return;
  float total = 0;
  for (int i = 0; i < 32; ++i) total += sums[i];
  *loss = fmaf(total, -scale, *loss);
}
KERNEL nll_loss_backward(int count, int classes, float scale, const int* labels, float* dlog_p) {
  const int i = global_x();
  if (i < count) dlog_p[i] = i % classes == labels[i / classes] ? -scale : 0.0f;
}
KERNEL log_softmax_backward(int classes, const float* y, const float* dy, bf16* dx) {
  const auto [row, lane] = row_of_warp();
  y += static_cast<size_t>(row) * classes;
  dy += static_cast<size_t>(row) * classes;
  float sum = 0;
  for (int i = lane; i < classes; i += 32) sum += dy[i];
  sum = warp_sum(sum);
  for (int i = lane; i < classes; i += 32)
    store(dx + static_cast<size_t>(row) * classes + i,
          fmaf(-exp2_approximate(y[i] * kLog2E), sum, dy[i]));
}

// --- AdamW

KERNEL adamw_advance(AdamW options, AdamWState* state) {
  state->power1 *= options.beta1;
  state->power2 *= options.beta2;
  state->step = options.step * reciprocal_approximate(1.0f - state->power1);
  state->root = rsqrtf(1.0f - state->power2);
}
KERNEL adamw(int count, AdamW options, const AdamWState* state, const float* gradient,
             float* moment1, float* moment2, float* master, bf16* copy) {
  const int i = global_x();
  if (i >= count) return;
  const float g = gradient[i], square = g * g;
  const float m = fmaf(options.beta1, moment1[i] - g, g);
  const float v = fmaf(options.beta2, moment2[i] - square, square);
  moment1[i] = m;
  moment2[i] = v;
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
  const float change = m * reciprocal_approximate(fmaf(root, state->root, options.epsilon));
  const float value = fmaf(-state->step, change, fmaf(-options.decay, master[i], master[i]));
  master[i] = value;
  store(copy + i, value);
}
