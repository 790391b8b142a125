// libFuzzer's mutations of traces are ours (trace_mutations.h).
#include <cstdint>
#include <cstring>

#include "trace_mutations.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  flopinj::test::TraceRandom random(seed);
  const std::string made = flopinj::test::changed_trace(view(data, size), max_size, random);
  if (made.empty()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, made.data(), made.size());
  return made.size();
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1,
                                            const uint8_t* data2, size_t size2, uint8_t* out,
                                            size_t max_size, unsigned seed) {
  flopinj::test::TraceRandom random(seed);
  const std::string made =
      flopinj::test::crossed_traces(view(data1, size1), view(data2, size2), max_size, random);
  std::memcpy(out, made.data(), made.size());
  return made.size();
}
