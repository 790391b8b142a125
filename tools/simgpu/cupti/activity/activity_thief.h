// Another client of the process that takes the activity callbacks, as torch.profiler does: kineto
// registers its own whoever was there before, frees only buffers that it handed out, and turns
// kernel records off when it is done (CuptiActivityApi.cpp).
#pragma once
#include "activity/activity_buffers.h"

namespace simgpu::cupti {

inline constexpr uint64_t kThiefStays = 100;  // kernel records

void take_callbacks(ActivityBuffers& buffers);

}  // namespace simgpu::cupti
