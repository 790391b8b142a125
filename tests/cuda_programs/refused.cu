// A texture: refused, and said once.
#include "check.h"

int main() {
  cudaArray_t array;
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  EXPECT(cudaMallocArray(&array, &floats, 16, 16) == cudaErrorNotSupported);
  EXPECT(cudaMallocArray(&array, &floats, 16, 16) == cudaErrorNotSupported);
  cudaTextureObject_t texture;
  const cudaResourceDesc resource{};
  const cudaTextureDesc reading{};
  EXPECT(cudaCreateTextureObject(&texture, &resource, &reading, nullptr) == cudaErrorNotSupported);
}
