#include "callback_names.h"

namespace simgpu::cupti {

const char* driver_callback_name(uint32_t id) {
  switch (id) {
#define SIMGPU_CALLBACK(number, name) \
  case number:                        \
    return #name;
#include "driver_callback_names.inc"
    default:
      return nullptr;
  }
}

const char* runtime_callback_name(uint32_t id) {
  switch (id) {
#include "runtime_callback_names.inc"
#undef SIMGPU_CALLBACK
    default:
      return nullptr;
  }
}

}  // namespace simgpu::cupti
