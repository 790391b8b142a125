// Any bytes as a cubin: what is told of it lies inside of it and within bounds.
#include <collector/identity/cubin.h>

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t functions = 0;
  const auto inside = [&](std::string_view text) {
    const auto* const at = reinterpret_cast<const uint8_t*>(text.data());
    return at >= data && at + text.size() <= data + size;
  };
  flopinj::read_cubin({data, size}, [&](const flopinj::CubinFunction& f) {
    uint64_t end = 0;
    for (const flopinj::ParameterSlot& slot : f.parameters) {
      if (slot.offset < end) std::abort();
      end = uint64_t{slot.offset} + slot.size;
    }
    const bool sound = !f.name.empty() && inside(f.name) && f.code_hash != 0 && end <= 32'764 &&
                       (f.parameters_known || f.parameters.empty());
    if (!sound || ++functions > flopinj::kMaxCubinFunctions) std::abort();
  });
  return 0;
}
