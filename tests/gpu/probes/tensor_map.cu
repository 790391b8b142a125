// Which words of a tensor map hold the address, and which the sizes. A launch whose parameters hold
// a tensor map is known again where only the address differs.
#include <dlfcn.h>

#include <array>
#include <cstring>

#include "probe.h"

namespace probe {
namespace {

using Words = std::array<uint32_t, sizeof(CUtensorMap) / sizeof(uint32_t)>;
using Encode = decltype(cuTensorMapEncodeTiled);

Words encoded(Encode* encode, const void* address, uint64_t columns, uint64_t rows) {
  CUtensorMap map{};
  const cuuint64_t sizes[] = {columns, rows}, strides[] = {2 * columns};
  const cuuint32_t box[] = {64, 64}, steps[] = {1, 1};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(address), sizes, strides,
             box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) say_count("error of cuTensorMapEncodeTiled", result);
  Words words{};
  std::memcpy(words.data(), &map, sizeof map);
  return words;
}

void say_difference(const std::string& what, const Words& a, const Words& b) {
  std::string text;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    char word[48];
    std::snprintf(word, sizeof word, "%s%zu: %08x", text.empty() ? "" : ", ", i, a[i] ^ b[i]);
    text += word;
  }
  say("bits of words of 4 bytes that differ by " + what, text.c_str());
}

}  // namespace

void tensor_map() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  auto* const encode =
      cuda == nullptr ? nullptr : reinterpret_cast<Encode*>(dlsym(cuda, "cuTensorMapEncodeTiled"));
  if (encode == nullptr) return say("cuTensorMapEncodeTiled", "is not there");
  const char* const memory = reinterpret_cast<const char*>(scratch);
  const Words first = encoded(encode, memory, 1024, 2048);
  say_difference("1 MiB of the address", first, encoded(encode, memory + (1 << 20), 1024, 2048));
  void* far = nullptr;
  observe(cudaMalloc(&far, size_t{256} << 20), "cudaMalloc");
  say_difference("another allocation", first, encoded(encode, far, 1024, 2048));
  say_difference("1,088 instead of 1,024 columns", first, encoded(encode, memory, 1088, 2048));
  say_difference("2,049 instead of 2,048 rows", first, encoded(encode, memory, 1024, 2049));
  say_difference("32,768 instead of 2,048 rows", first, encoded(encode, memory, 1024, 32768));
}

}  // namespace probe
