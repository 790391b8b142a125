// Compiled as relocatable code, whose PTX calls cudaGraphSetConditional.

// No FLOP: takes one off the counter, and conditional nodes go on until it is 0.
extern "C" __global__ void count_down(unsigned long long condition, int* counter) {
  const int left = counter[0] - 1;
  counter[0] = left;
  cudaGraphSetConditional(condition, left > 0 ? 1 : 0);
}
