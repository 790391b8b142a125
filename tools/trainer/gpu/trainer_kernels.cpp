// The trainer's kernels: one source for nvcc and for simgpu. README.md gives each kernel's exact
// operation counts.
//
// Layouts: activations [batch][channels][height][width] (dense: [batch][features]), dense weights
// [out][in], convolution weights [out channel][in channel][row][column]. All sums run in a fixed
// order, so a step's result does not depend on how kernels are scheduled.
#include <simgpu/kernel.h>

GPU_DEVICE int global_x() {
  return static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
}
GPU_DEVICE int global_y() {
  return static_cast<int>(gpu::block_index().y * gpu::block_dim().y + gpu::thread_index().y);
}

// --- dense: y = x W^T + b

// One thread per y[n][o]. The accumulator starts at the bias, so there is no separate addition.
GPU_KERNEL dense_forward(int batch, int in, int out, gpu::ptr<const gpu::f32> x,
                         gpu::ptr<const gpu::f32> weight, gpu::ptr<const gpu::f32> bias,
                         gpu::ptr<gpu::f32> y) {
  const int o = global_x(), n = global_y();
  if (o >= out || n >= batch) return;
  gpu::f32 sum = bias[o];
  for (int i = 0; i < in; ++i) {
    sum = gpu::fma(gpu::f32(x[n * in + i]), gpu::f32(weight[o * in + i]), sum);
  }
  y[n * out + o] = sum;
}

// One thread per dweight[o][i].
GPU_KERNEL dense_weight_gradient(int batch, int in, int out, gpu::ptr<const gpu::f32> x,
                                 gpu::ptr<const gpu::f32> dy, gpu::ptr<gpu::f32> dweight) {
  const int i = global_x(), o = global_y();
  if (i >= in || o >= out) return;
  gpu::f32 sum = 0.0f;
  for (int n = 0; n < batch; ++n) {
    sum = gpu::fma(gpu::f32(dy[n * out + o]), gpu::f32(x[n * in + i]), sum);
  }
  dweight[o * in + i] = sum;
}

// One thread per dx[n][i].
GPU_KERNEL dense_input_gradient(int batch, int in, int out, gpu::ptr<const gpu::f32> dy,
                                gpu::ptr<const gpu::f32> weight, gpu::ptr<gpu::f32> dx) {
  const int i = global_x(), n = global_y();
  if (i >= in || n >= batch) return;
  gpu::f32 sum = 0.0f;
  for (int o = 0; o < out; ++o) {
    sum = gpu::fma(gpu::f32(dy[n * out + o]), gpu::f32(weight[o * in + i]), sum);
  }
  dx[n * in + i] = sum;
}

// One thread per channel; `pixels` is 1 for a dense layer. Sums from 0: batch * pixels additions
// per channel.
GPU_KERNEL bias_gradient(int batch, int channels, int pixels, gpu::ptr<const gpu::f32> dy,
                         gpu::ptr<gpu::f32> dbias) {
  const int c = global_x();
  if (c >= channels) return;
  gpu::f32 sum = 0.0f;
  for (int n = 0; n < batch; ++n) {
    for (int p = 0; p < pixels; ++p) sum = sum + gpu::f32(dy[(n * channels + c) * pixels + p]);
  }
  dbias[c] = sum;
}

// --- convolution: square kernel, stride 1, no padding

// One thread per y[n][co][r][c]; as in dense_forward the bias is where the sum starts.
GPU_KERNEL conv2d_forward(int batch, int in_channels, int in_height, int in_width, int out_channels,
                          int kernel, gpu::ptr<const gpu::f32> x, gpu::ptr<const gpu::f32> weight,
                          gpu::ptr<const gpu::f32> bias, gpu::ptr<gpu::f32> y) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int index = global_x();
  if (index >= batch * out_channels * out_height * out_width) return;
  const int c = index % out_width, r = index / out_width % out_height;
  const int co = index / (out_width * out_height) % out_channels;
  const int n = index / (out_width * out_height * out_channels);
  gpu::f32 sum = bias[co];
  for (int ci = 0; ci < in_channels; ++ci) {
    for (int kr = 0; kr < kernel; ++kr) {
      for (int kc = 0; kc < kernel; ++kc) {
        const int xi = ((n * in_channels + ci) * in_height + r + kr) * in_width + c + kc;
        const int wi = ((co * in_channels + ci) * kernel + kr) * kernel + kc;
        sum = gpu::fma(gpu::f32(x[xi]), gpu::f32(weight[wi]), sum);
      }
    }
  }
  y[index] = sum;
}

// One thread per dweight[co][ci][kr][kc], summed over the batch and every output pixel.
GPU_KERNEL conv2d_weight_gradient(int batch, int in_channels, int in_height, int in_width,
                                  int out_channels, int kernel, gpu::ptr<const gpu::f32> x,
                                  gpu::ptr<const gpu::f32> dy, gpu::ptr<gpu::f32> dweight) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int index = global_x();
  if (index >= out_channels * in_channels * kernel * kernel) return;
  const int kc = index % kernel, kr = index / kernel % kernel;
  const int ci = index / (kernel * kernel) % in_channels;
  const int co = index / (kernel * kernel * in_channels);
  gpu::f32 sum = 0.0f;
  for (int n = 0; n < batch; ++n) {
    for (int r = 0; r < out_height; ++r) {
      for (int c = 0; c < out_width; ++c) {
        const int yi = ((n * out_channels + co) * out_height + r) * out_width + c;
        const int xi = ((n * in_channels + ci) * in_height + r + kr) * in_width + c + kc;
        sum = gpu::fma(gpu::f32(dy[yi]), gpu::f32(x[xi]), sum);
      }
    }
  }
  dweight[index] = sum;
}

// One thread per dx[n][ci][r][c]. Only taps whose output pixel exists are visited: no
// multiplications by padding.
GPU_KERNEL conv2d_input_gradient(int batch, int in_channels, int in_height, int in_width,
                                 int out_channels, int kernel, gpu::ptr<const gpu::f32> dy,
                                 gpu::ptr<const gpu::f32> weight, gpu::ptr<gpu::f32> dx) {
  const int out_height = in_height - kernel + 1, out_width = in_width - kernel + 1;
  const int index = global_x();
  if (index >= batch * in_channels * in_height * in_width) return;
  const int c = index % in_width, r = index / in_width % in_height;
  const int ci = index / (in_width * in_height) % in_channels;
  const int n = index / (in_width * in_height * in_channels);
  gpu::f32 sum = 0.0f;
  for (int co = 0; co < out_channels; ++co) {
    for (int kr = 0; kr < kernel; ++kr) {
      const int yr = r - kr;
      if (yr < 0 || yr >= out_height) continue;
      for (int kc = 0; kc < kernel; ++kc) {
        const int yc = c - kc;
        if (yc < 0 || yc >= out_width) continue;
        const int yi = ((n * out_channels + co) * out_height + yr) * out_width + yc;
        const int wi = ((co * in_channels + ci) * kernel + kr) * kernel + kc;
        sum = gpu::fma(gpu::f32(dy[yi]), gpu::f32(weight[wi]), sum);
      }
    }
  }
  dx[index] = sum;
}

// --- activation and pooling

// A selection by comparison: no floating-point operation in either direction.
GPU_KERNEL relu_forward(int count, gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
  const int i = global_x();
  if (i >= count) return;
  const gpu::f32 value = x[i], zero = 0.0f;
  y[i] = value > zero ? value : zero;
}

GPU_KERNEL relu_backward(int count, gpu::ptr<const gpu::f32> x, gpu::ptr<const gpu::f32> dy,
                         gpu::ptr<gpu::f32> dx) {
  const int i = global_x();
  if (i >= count) return;
  const gpu::f32 value = x[i], gradient = dy[i], zero = 0.0f;
  dx[i] = value > zero ? gradient : zero;
}

// One thread per output pixel; `planes` is batch * channels; windows of size x size do not overlap
// and cover the input. Sums from 0 (size^2 additions), then one multiplication by `scale` = 1 /
// size^2.
GPU_KERNEL average_pool_forward(int planes, int out_height, int out_width, int size, gpu::f32 scale,
                                gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
  const int index = global_x();
  if (index >= planes * out_height * out_width) return;
  const int c = index % out_width, r = index / out_width % out_height;
  const int plane = index / (out_width * out_height);
  gpu::f32 sum = 0.0f;
  for (int kr = 0; kr < size; ++kr) {
    for (int kc = 0; kc < size; ++kc) {
      const int row = plane * out_height * size + r * size + kr;
      sum = sum + gpu::f32(x[row * out_width * size + c * size + kc]);
    }
  }
  y[index] = sum * scale;
}

// One thread per input pixel: one multiplication.
GPU_KERNEL average_pool_backward(int planes, int out_height, int out_width, int size,
                                 gpu::f32 scale, gpu::ptr<const gpu::f32> dy,
                                 gpu::ptr<gpu::f32> dx) {
  const int in_width = out_width * size, in_height = out_height * size;
  const int index = global_x();
  if (index >= planes * in_height * in_width) return;
  const int c = index % in_width, r = index / in_width % in_height;
  const int plane = index / (in_width * in_height);
  dx[index] = gpu::f32(dy[(plane * out_height + r / size) * out_width + c / size]) * scale;
}

// --- loss

// One thread per row. Writes the row's log-probability of its label and the gradient of the mean
// loss by the logits. Probabilities come from exp(log p), so there is no division.
GPU_KERNEL softmax_cross_entropy(int batch, int classes, gpu::f32 inverse_batch,
                                 gpu::ptr<const gpu::f32> logits, gpu::ptr<const int> labels,
                                 gpu::ptr<gpu::f32> log_likelihood, gpu::ptr<gpu::f32> dlogits) {
  const int n = global_x();
  if (n >= batch) return;
  const int label = labels[n];
  gpu::f32 largest = logits[n * classes];
  for (int c = 1; c < classes; ++c) {
    largest = gpu::max(largest, gpu::f32(logits[n * classes + c]));
  }
  gpu::f32 sum = 0.0f;
  for (int c = 0; c < classes; ++c) {
    sum = sum + gpu::exp(gpu::f32(logits[n * classes + c]) - largest);
  }
  const gpu::f32 log_sum = gpu::log(sum);
  for (int c = 0; c < classes; ++c) {
    const gpu::f32 log_p = gpu::f32(logits[n * classes + c]) - largest - log_sum;
    const gpu::f32 target = c == label ? 1.0f : 0.0f;
    dlogits[n * classes + c] = (gpu::exp(log_p) - target) * inverse_batch;
    if (c == label) log_likelihood[n] = log_p;
  }
}

// One block, a power of two of threads, shared memory for one f32 per thread. Each thread subtracts
// its rows from 0 in a stride, then the block adds pairwise and thread 0 scales.
GPU_KERNEL mean_loss(int batch, gpu::f32 inverse_batch, gpu::ptr<const gpu::f32> log_likelihood,
                     gpu::ptr<gpu::f32> loss) {
  auto* partial = gpu::shared<gpu::f32>();
  const int thread = static_cast<int>(gpu::thread_index().x);
  const int threads = static_cast<int>(gpu::block_dim().x);
  gpu::f32 sum = 0.0f;
  for (int n = thread; n < batch; n += threads) sum = sum - gpu::f32(log_likelihood[n]);
  partial[thread] = sum;
  gpu::sync();
  for (int active = threads / 2; active > 0; active /= 2) {
    if (thread < active) partial[thread] = partial[thread] + partial[thread + active];
    gpu::sync();
  }
  if (thread == 0) loss[0] = partial[0] * inverse_batch;
}

// --- optimizer

// `step` is minus the learning rate.
GPU_KERNEL sgd(int count, gpu::f32 step, gpu::ptr<const gpu::f32> gradient,
               gpu::ptr<gpu::f32> parameter) {
  const int i = global_x();
  if (i >= count) return;
  parameter[i] = gpu::fma(step, gpu::f32(gradient[i]), gpu::f32(parameter[i]));
}

GPU_KERNEL sgd_momentum(int count, gpu::f32 step, gpu::f32 momentum,
                        gpu::ptr<const gpu::f32> gradient, gpu::ptr<gpu::f32> velocity,
                        gpu::ptr<gpu::f32> parameter) {
  const int i = global_x();
  if (i >= count) return;
  const gpu::f32 v = gpu::fma(momentum, gpu::f32(velocity[i]), gpu::f32(gradient[i]));
  velocity[i] = v;
  parameter[i] = gpu::fma(step, v, gpu::f32(parameter[i]));
}

GPU_MODULE_BEGIN
GPU_EXPORT(dense_forward)
GPU_EXPORT(dense_weight_gradient)
GPU_EXPORT(dense_input_gradient)
GPU_EXPORT(bias_gradient)
GPU_EXPORT(conv2d_forward)
GPU_EXPORT(conv2d_weight_gradient)
GPU_EXPORT(conv2d_input_gradient)
GPU_EXPORT(relu_forward)
GPU_EXPORT(relu_backward)
GPU_EXPORT(average_pool_forward)
GPU_EXPORT(average_pool_backward)
GPU_EXPORT(softmax_cross_entropy)
GPU_EXPORT_SYNC(mean_loss)
GPU_EXPORT(sgd)
GPU_EXPORT(sgd_momentum)
GPU_MODULE_END
