// The trainer's kernels. trainer_kernels.ptx is what nvcc makes of them, and is what is loaded;
// README.md gives each kernel's exact operation counts.
//
// Layouts: activations [batch][channels][height][width] (dense: [batch][features]), dense weights
// [out][in], convolution weights [out channel][in channel][row][column]. All sums run in a fixed
// order, so a step's result does not depend on how kernels are scheduled.
//
// Where several results use the same input, a thread computes kEach of them and loads it once.
constexpr int kEach = 8;

static __device__ int global_x() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
static __device__ int global_y() { return static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y); }

// 2^x and log2 x as the special-function unit has them: one instruction, and no multiplication
// around it for arguments near 0.
static __device__ float power_of_2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
static __device__ float logarithm(float x) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

template <int n>
struct Number {
  __device__ constexpr operator int() const { return n; }
};

// Calls f(number, i) for the results from the thread's first on: for kEach at once, or one by one
// where there are fewer.
template <class F>
static __device__ void for_each_result(int first, int end, F f) {
  if (first + kEach <= end) {
    f(Number<kEach>{}, first);
  } else {
    for (int i = first; i < end; ++i) f(Number<1>{}, i);
  }
}

extern "C" {

// --- dense: y = x W^T + b

// One thread per y[n][o] of kEach rows. Sums start at the bias, so there is no separate addition.
__global__ void dense_forward(int batch, int in, int out, const float* x, const float* weight,
                              const float* bias, float* y) {
  const int o = global_x();
  if (o >= out) return;
  for_each_result(global_y() * kEach, batch, [=](auto rows, int n) {
    float sum[rows];
    for (int k = 0; k < rows; ++k) sum[k] = bias[o];
    for (int i = 0; i < in; ++i) {
      const float w = weight[o * in + i];
      for (int k = 0; k < rows; ++k) sum[k] = fmaf(x[(n + k) * in + i], w, sum[k]);
    }
    for (int k = 0; k < rows; ++k) y[(n + k) * out + o] = sum[k];
  });
}

// One thread per dweight[o][i] of kEach rows.
__global__ void dense_weight_gradient(int batch, int in, int out, const float* x, const float* dy,
                                      float* dweight) {
  const int i = global_x();
  if (i >= in) return;
  for_each_result(global_y() * kEach, out, [=](auto rows, int o) {
    float sum[rows] = {};
    for (int n = 0; n < batch; ++n) {
      const float value = x[n * in + i];
      for (int k = 0; k < rows; ++k) sum[k] = fmaf(dy[n * out + o + k], value, sum[k]);
    }
    for (int k = 0; k < rows; ++k) dweight[(o + k) * in + i] = sum[k];
  });
}

// One thread per dx[n][i] of kEach rows.
__global__ void dense_input_gradient(int batch, int in, int out, const float* dy,
                                     const float* weight, float* dx) {
  const int i = global_x();
  if (i >= in) return;
  for_each_result(global_y() * kEach, batch, [=](auto rows, int n) {
    float sum[rows] = {};
    for (int o = 0; o < out; ++o) {
      const float w = weight[o * in + i];
      for (int k = 0; k < rows; ++k) sum[k] = fmaf(dy[(n + k) * out + o], w, sum[k]);
    }
    for (int k = 0; k < rows; ++k) dx[(n + k) * in + i] = sum[k];
  });
}

// One thread per channel; `pixels` is 1 for a dense layer. Sums from 0: batch * pixels additions
// per channel.
__global__ void bias_gradient(int batch, int channels, int pixels, const float* dy, float* dbias) {
  const int c = global_x();
  if (c >= channels) return;
  float sum = 0.0f;
  for (int n = 0; n < batch; ++n) {
    for (int p = 0; p < pixels; ++p) sum = sum + dy[(n * channels + c) * pixels + p];
  }
  dbias[c] = sum;
}

// --- convolution: square kernel, stride 1, no padding

// One thread per y[n][co][r][c] of kEach channels; as in dense_forward sums start at the bias.
__global__ void conv2d_forward(int batch, int in_channels, int in_height, int in_width,
                               int out_channels, int kernel, const float* x, const float* weight,
                               const float* bias, float* y) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int pixels = out_height * out_width, weights = in_channels * kernel * kernel;
  const int index = global_x();
  const int c = index % out_width, r = index / out_width % out_height;
  const int n = index / pixels % batch;
  for_each_result(index / pixels / batch * kEach, out_channels, [=](auto channels, int co) {
    float sum[channels];
    for (int k = 0; k < channels; ++k) sum[k] = bias[co + k];
    const float* w = weight + co * weights;
    for (int ci = 0; ci < in_channels; ++ci) {
      for (int kr = 0; kr < kernel; ++kr) {
        const float* from = x + ((n * in_channels + ci) * in_height + r + kr) * in_width + c;
#pragma unroll 1
        for (int kc = 0; kc < kernel; ++kc, ++from, ++w)
          for (int k = 0; k < channels; ++k) sum[k] = fmaf(*from, w[k * weights], sum[k]);
      }
    }
    for (int k = 0; k < channels; ++k)
      y[(n * out_channels + co + k) * pixels + r * out_width + c] = sum[k];
  });
}

// One thread per dweight[co][ci][kr][kc] of kEach channels, summed over the batch and every output
// pixel.
__global__ void conv2d_weight_gradient(int batch, int in_channels, int in_height, int in_width,
                                       int out_channels, int kernel, const float* x,
                                       const float* dy, float* dweight) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int pixels = out_height * out_width, weights = in_channels * kernel * kernel;
  const int index = global_x();
  const int kc = index % kernel, kr = index / kernel % kernel;
  const int ci = index / (kernel * kernel) % in_channels;
  for_each_result(index / weights * kEach, out_channels, [=](auto channels, int co) {
    float sum[channels] = {};
    for (int n = 0; n < batch; ++n) {
      const float* gradient = dy + (n * out_channels + co) * pixels;
      for (int r = 0; r < out_height; ++r) {
        const float* from = x + ((n * in_channels + ci) * in_height + r + kr) * in_width + kc;
#pragma unroll 4
        for (int c = 0; c < out_width; ++c, ++from, ++gradient)
          for (int k = 0; k < channels; ++k) sum[k] = fmaf(gradient[k * pixels], *from, sum[k]);
      }
    }
    for (int k = 0; k < channels; ++k) dweight[(co + k) * weights + index % weights] = sum[k];
  });
}

// One thread per dx[n][ci][r][c] of kEach channels. Only taps whose output pixel exists are
// visited: no multiplications by padding. Threads of a warp differ in the sample, so that they
// visit the same.
__global__ void conv2d_input_gradient(int batch, int in_channels, int in_height, int in_width,
                                      int out_channels, int kernel, const float* dy,
                                      const float* weight, float* dx) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int pixels = in_height * in_width, taps = kernel * kernel;
  const int n = global_x() % batch, index = global_x() / batch;
  const int c = index % in_width, r = index / in_width % in_height;
  for_each_result(index / pixels * kEach, in_channels, [=](auto channels, int ci) {
    float sum[channels] = {};
    for (int co = 0; co < out_channels; ++co) {
      for (int kr = 0; kr < kernel; ++kr) {
        const int yr = r - kr;
        if (yr < 0 || yr >= out_height) continue;
        const int first = max(0, c - out_width + 1), last = min(c, kernel - 1);
        const float* from =
            dy + ((n * out_channels + co) * out_height + yr) * out_width + c - first;
        const float* w = weight + (co * in_channels + ci) * taps + kr * kernel + first;
#pragma unroll 1
        for (int kc = first; kc <= last; ++kc, --from, ++w)
          for (int k = 0; k < channels; ++k) sum[k] = fmaf(*from, w[k * taps], sum[k]);
      }
    }
    for (int k = 0; k < channels; ++k)
      dx[(n * in_channels + ci + k) * pixels + r * in_width + c] = sum[k];
  });
}

// --- activation and pooling

// A selection by comparison: no floating-point operation in either direction.
__global__ void relu_forward(int count, const float* x, float* y) {
  const int i = global_x();
  if (i >= count) return;
  const float value = x[i], zero = 0.0f;
  y[i] = value > zero ? value : zero;
}

__global__ void relu_backward(int count, const float* x, const float* dy, float* dx) {
  const int i = global_x();
  if (i >= count) return;
  const float value = x[i], gradient = dy[i], zero = 0.0f;
  dx[i] = value > zero ? gradient : zero;
}

// One thread per output pixel; `planes` is batch * channels; windows of size x size do not overlap
// and cover the input. Sums from 0 (size^2 additions), then one multiplication by `scale` = 1 /
// size^2.
__global__ void average_pool_forward(int planes, int out_height, int out_width, int size,
                                     float scale, const float* x, float* y) {
  const int index = global_x();
  if (index >= planes * out_height * out_width) return;
  const int c = index % out_width, r = index / out_width % out_height;
  const int plane = index / (out_width * out_height);
  float sum = 0.0f;
  for (int kr = 0; kr < size; ++kr) {
    for (int kc = 0; kc < size; ++kc) {
      const int row = plane * out_height * size + r * size + kr;
      sum = sum + x[row * out_width * size + c * size + kc];
    }
  }
  y[index] = sum * scale;
}

// One thread per input pixel: one multiplication.
__global__ void average_pool_backward(int planes, int out_height, int out_width, int size,
                                      float scale, const float* dy, float* dx) {
  const int in_width = out_width * size, in_height = out_height * size;
  const int index = global_x();
  if (index >= planes * in_height * in_width) return;
  const int c = index % in_width, r = index / in_width % in_height;
  const int plane = index / (in_width * in_height);
  dx[index] = dy[(plane * out_height + r / size) * out_width + c / size] * scale;
}

// --- loss

// One thread per row. Writes the row's log-probability of its label and the gradient of the mean
// loss by the logits. Logits are logarithms to base 2, so that the loss is in bits and no factor
// turns one base into another; probabilities come from 2^(log p), so there is no division.
__global__ void softmax_cross_entropy(int batch, int classes, float inverse_batch,
                                      const float* logits, const int* labels, float* log_likelihood,
                                      float* dlogits) {
  const int n = global_x();
  if (n >= batch) return;
  const int label = labels[n];
  float largest = logits[n * classes];
  for (int c = 1; c < classes; ++c) {
    largest = fmaxf(largest, logits[n * classes + c]);
  }
  float sum = 0.0f;
  for (int c = 0; c < classes; ++c) {
    sum = sum + power_of_2(logits[n * classes + c] - largest);
  }
  const float log_sum = logarithm(sum);
  for (int c = 0; c < classes; ++c) {
    const float log_p = logits[n * classes + c] - largest - log_sum;
    const float target = c == label ? 1.0f : 0.0f;
    dlogits[n * classes + c] = (power_of_2(log_p) - target) * inverse_batch;
    if (c == label) log_likelihood[n] = log_p;
  }
}

// One block, a power of two of threads, shared memory for one float per thread. Each thread
// subtracts its rows from 0 in a stride, then the block adds pairwise and thread 0 scales.
__global__ void mean_loss(int batch, float inverse_batch, const float* log_likelihood,
                          float* loss) {
  extern __shared__ float partial[];
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  float sum = 0.0f;
  for (int n = thread; n < batch; n += threads) sum = sum - log_likelihood[n];
  partial[thread] = sum;
  __syncthreads();
  for (int active = threads / 2; active > 0; active /= 2) {
    if (thread < active) partial[thread] = partial[thread] + partial[thread + active];
    __syncthreads();
  }
  if (thread == 0) loss[0] = partial[0] * inverse_batch;
}

// --- optimizer

// `step` is minus the learning rate.
__global__ void sgd(int count, float step, const float* gradient, float* parameter) {
  const int i = global_x();
  if (i >= count) return;
  parameter[i] = fmaf(step, gradient[i], parameter[i]);
}

__global__ void sgd_momentum(int count, float step, float momentum, const float* gradient,
                             float* velocity, float* parameter) {
  const int i = global_x();
  if (i >= count) return;
  const float v = fmaf(momentum, velocity[i], gradient[i]);
  velocity[i] = v;
  parameter[i] = fmaf(step, v, parameter[i]);
}

}  // extern "C"
