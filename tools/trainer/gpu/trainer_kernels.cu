// The trainer's kernels. trainer_kernels.ptx is what nvcc makes of them, and is what is loaded;
// README.md gives each kernel's exact operation counts.
//
// Layouts: activations [batch][channels][height][width] (dense: [batch][features]), dense weights
// [out][in], convolution weights [out channel][in channel][row][column]. All sums run in a fixed
// order, so a step's result does not depend on how kernels are scheduled.

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

extern "C" {

// --- dense: y = x W^T + b

// One thread per y[n][o]. The accumulator starts at the bias, so there is no separate addition.
__global__ void dense_forward(int batch, int in, int out, const float* x, const float* weight,
                              const float* bias, float* y) {
  const int o = global_x(), n = global_y();
  if (o >= out || n >= batch) return;
  float sum = bias[o];
  for (int i = 0; i < in; ++i) {
    sum = fmaf(x[n * in + i], weight[o * in + i], sum);
  }
  y[n * out + o] = sum;
}

// One thread per dweight[o][i].
__global__ void dense_weight_gradient(int batch, int in, int out, const float* x, const float* dy,
                                      float* dweight) {
  const int i = global_x(), o = global_y();
  if (i >= in || o >= out) return;
  float sum = 0.0f;
  for (int n = 0; n < batch; ++n) {
    sum = fmaf(dy[n * out + o], x[n * in + i], sum);
  }
  dweight[o * in + i] = sum;
}

// One thread per dx[n][i].
__global__ void dense_input_gradient(int batch, int in, int out, const float* dy,
                                     const float* weight, float* dx) {
  const int i = global_x(), n = global_y();
  if (i >= in || n >= batch) return;
  float sum = 0.0f;
  for (int o = 0; o < out; ++o) {
    sum = fmaf(dy[n * out + o], weight[o * in + i], sum);
  }
  dx[n * in + i] = sum;
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

// One thread per y[n][co][r][c]; as in dense_forward the bias is where the sum starts.
__global__ void conv2d_forward(int batch, int in_channels, int in_height, int in_width,
                               int out_channels, int kernel, const float* x, const float* weight,
                               const float* bias, float* y) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int index = global_x();
  if (index >= batch * out_channels * out_height * out_width) return;
  const int c = index % out_width, r = index / out_width % out_height;
  const int co = index / (out_width * out_height) % out_channels;
  const int n = index / (out_width * out_height * out_channels);
  float sum = bias[co];
  for (int ci = 0; ci < in_channels; ++ci) {
    for (int kr = 0; kr < kernel; ++kr) {
      for (int kc = 0; kc < kernel; ++kc) {
        const int xi = ((n * in_channels + ci) * in_height + r + kr) * in_width + c + kc;
        const int wi = ((co * in_channels + ci) * kernel + kr) * kernel + kc;
        sum = fmaf(x[xi], weight[wi], sum);
      }
    }
  }
  y[index] = sum;
}

// One thread per dweight[co][ci][kr][kc], summed over the batch and every output pixel.
__global__ void conv2d_weight_gradient(int batch, int in_channels, int in_height, int in_width,
                                       int out_channels, int kernel, const float* x,
                                       const float* dy, float* dweight) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int index = global_x();
  if (index >= out_channels * in_channels * kernel * kernel) return;
  const int kc = index % kernel, kr = index / kernel % kernel;
  const int ci = index / (kernel * kernel) % in_channels;
  const int co = index / (kernel * kernel * in_channels);
  float sum = 0.0f;
  for (int n = 0; n < batch; ++n) {
    for (int r = 0; r < out_height; ++r) {
      for (int c = 0; c < out_width; ++c) {
        const int yi = ((n * out_channels + co) * out_height + r) * out_width + c;
        const int xi = ((n * in_channels + ci) * in_height + r + kr) * in_width + c + kc;
        sum = fmaf(dy[yi], x[xi], sum);
      }
    }
  }
  dweight[index] = sum;
}

// One thread per dx[n][ci][r][c]. Only taps whose output pixel exists are visited: no
// multiplications by padding.
__global__ void conv2d_input_gradient(int batch, int in_channels, int in_height, int in_width,
                                      int out_channels, int kernel, const float* dy,
                                      const float* weight, float* dx) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int index = global_x();
  if (index >= batch * in_channels * in_height * in_width) return;
  const int c = index % in_width, r = index / in_width % in_height;
  const int ci = index / (in_width * in_height) % in_channels;
  const int n = index / (in_width * in_height * in_channels);
  float sum = 0.0f;
  for (int co = 0; co < out_channels; ++co) {
    for (int kr = 0; kr < kernel; ++kr) {
      const int yr = r - kr;
      if (yr < 0 || yr >= out_height) continue;
      for (int kc = 0; kc < kernel; ++kc) {
        const int yc = c - kc;
        if (yc < 0 || yc >= out_width) continue;
        const int yi = ((n * out_channels + co) * out_height + yr) * out_width + yc;
        const int wi = ((co * in_channels + ci) * kernel + kr) * kernel + kc;
        sum = fmaf(dy[yi], weight[wi], sum);
      }
    }
  }
  dx[index] = sum;
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

// One block, a power of two of threads, shared memory for one float per thread. Each thread subtracts
// its rows from 0 in a stride, then the block adds pairwise and thread 0 scales.
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
