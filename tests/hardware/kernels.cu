// Kernels of our own with the arithmetic of some that were read on a real GPU. Each thread has one
// element, but for the product of a matrix and a vector, of which it has a row.
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kElements = 1 << 12, kBlock = 256, kColumns = 64;
__device__ int place() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void swish(const float* x, float* y) {
  const int i = place();
  y[i] = x[i] / (1.0f + expf(-x[i]));
}
__global__ void swish_gradient(const float* x, const float* y, const float* dy, float* dx) {
  const int i = place();
  dx[i] = dy[i] * (y[i] + (1.0f - y[i]) / (1.0f + expf(-x[i])));
}
__global__ void sigmoid(const float* x, float* y) {
  const int i = place();
  y[i] = 1.0f / (1.0f + expf(-x[i]));
}
__global__ void triad(const float* x, float* y, float scale) {
  const int i = place();
  y[i] = x[i] + scale * y[i];
}
// Of a separable filter of 17 taps; the rows' ends wrap.
__global__ void filter_row(const float* x, const float* taps, float* y) {
  const int i = place();
  float sum = 0;
  for (int k = 0; k < 17; ++k) sum += taps[k] * x[(i + k) % kElements];
  y[i] = sum;
}
__global__ void matrix_times_vector(const float* matrix, const float* vector, float* result) {
  const int row = place();
  float sum = 0;
  for (int k = 0; k < kColumns; ++k) sum += matrix[(row + k) % kElements] * vector[k];
  result[row] = sum;
}
// Particles go on by their velocity; what energy each has.
__global__ void move(const float* acceleration, float* velocity, float* position, float* energy,
                     float dt) {
  const int i = place();
  float v[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int at = (i + axis) % kElements;
    v[axis] = velocity[at] + acceleration[at] * dt;
    position[at] += v[axis] * dt;
  }
  energy[i] = acceleration[i] * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}
// One element of a product of 3 x 3 complex matrices.
__global__ void complex_product(const float2* a, const float2* b, float2* c) {
  const int i = place() / 2;  // memory of kElements floats has half as many of these
  float2 sum = {0, 0};
  for (int k = 0; k < 3; ++k) {
    const float2 x = a[(i + k) % (kElements / 2)], y = b[(i + 3 * k) % (kElements / 2)];
    sum.x += x.x * y.x - x.y * y.y;
    sum.y += x.x * y.y + x.y * y.x;
  }
  c[i] = sum;
}
// Of the loss of pairs that are to be a margin apart.
__global__ void ranking_gradient(const float* sign, const float* x, const float* up, float* first,
                                 float* second, float margin) {
  const int i = place();
  const float y = sign[i], o = up[i];
  const float distance = -y * (x[i] - second[i]) + margin;
  first[i] = distance < 0.f ? 0.f : -y * o;
  second[i] = distance < 0.f ? 0.f : y * o;
}
// A colour of Gauss-Seidel with over-relaxation, and its squared change.
__global__ void relax(const float* weight, const float* centre, const float* source, float* field,
                      float* change) {
  constexpr float kOmega = 1.85f;
  const int i = place();
  float sum = source[i];
  for (int k = 0; k < 4; ++k)
    sum += weight[(i + k) % kElements] * field[(i + 2 * k + 1) % kElements];
  const float old = field[i], next = old * (1.0f - kOmega) + kOmega * (sum / centre[i]);
  change[i] = (next - old) * (next - old);
  field[i] = next;
}
__global__ void add_carry(const float* carry, float* sums) { sums[place()] += carry[blockIdx.x]; }
// Charged particles in a field on a mesh, in double precision. A step takes them on; the first is
// half a step back, and of the velocity alone. Memory of kElements floats has half as many doubles.
constexpr double kCell = 1e-4, kStep = 1e-9;
__device__ double field_at(double position, const double* field) {
  const double at = position / kCell;
  const int cell = static_cast<int>(at);
  const double part = at - cell;
  return field[cell] * (1 - part) + field[cell + 1] * part;
}
__global__ void push(double* position, double* velocity, const double* field, double charge) {
  const int i = place() / 2;
  const double next = velocity[i] + kStep * charge * field_at(position[i], field);
  velocity[i] = next;
  position[i] += kStep * next;
}
__global__ void rewind(const double* position, double* velocity, const double* field,
                       double charge) {
  const int i = place() / 2;
  velocity[i] -= 0.5 * kStep * charge * field_at(position[i], field);
}

int main() {
  float* memory[5];
  for (float*& one : memory)
    if (cudaMalloc(&one, kElements * sizeof(float)) != cudaSuccess) return 1;
  // About 0.75, and 4.8e-4 in double precision: in a field's fifth cell.
  const auto fill = [&] {
    for (float* const one : memory) cudaMemset(one, 0x3f, kElements * sizeof(float));
  };
  fill();
  auto [a, b, c, d, e] = memory;
  constexpr int kBlocks = kElements / kBlock;
  swish<<<kBlocks, kBlock>>>(a, b);
  swish_gradient<<<kBlocks, kBlock>>>(a, b, c, d);
  sigmoid<<<kBlocks, kBlock>>>(a, b);
  triad<<<kBlocks, kBlock>>>(a, b, 2.0f);
  filter_row<<<kBlocks, kBlock>>>(a, b, c);
  matrix_times_vector<<<kBlocks, kBlock>>>(a, b, c);
  move<<<kBlocks, kBlock>>>(a, b, c, d, 0.1f);
  complex_product<<<kBlocks, kBlock>>>(reinterpret_cast<float2*>(a), reinterpret_cast<float2*>(b),
                                       reinterpret_cast<float2*>(c));
  ranking_gradient<<<kBlocks, kBlock>>>(a, b, c, d, e, 0.5f);
  relax<<<kBlocks, kBlock>>>(a, b, c, d, e);
  add_carry<<<kBlocks, kBlock>>>(a, b);
  fill();
  const auto doubles = [](float* p) { return reinterpret_cast<double*>(p); };
  push<<<kBlocks, kBlock>>>(doubles(a), doubles(b), doubles(c), 1.0);
  rewind<<<kBlocks, kBlock>>>(doubles(d), doubles(e), doubles(c), 1.0);
  return cudaDeviceSynchronize() != cudaSuccess;
}
