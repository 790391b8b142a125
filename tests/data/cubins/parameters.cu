// Kernels whose parameters lie where C++ puts the members of a structure. See make.sh.
struct Mixed {
  int a;
  double b;
  float* p;
  char c[13];
};

extern "C" __global__ void none() {}

extern "C" __global__ void pointers(float* to, const float* from, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i];
}

__global__ void by_value(Mixed mixed, char c, short s, long long l, float f) {
  if (threadIdx.x == 0) mixed.p[0] = static_cast<float>(mixed.b) + c + s + l + f + mixed.c[3];
}

extern "C" __global__ void many(int a, long long b, char c, short d, double e, float* f, int g,
                                char h, char i, char j, int k) {
  f[0] = static_cast<float>(a + b + c + d + e + g + h + i + j + k);
}
