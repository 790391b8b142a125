// Brings a libcupti.so.12 into the process as libtorch_cpu.so does: by linking it.
#include <cupti_version.h>

#include <cstdint>

extern "C" CUptiResult version_of_linked_cupti(uint32_t* version) {
  return cuptiGetVersion(version);
}
