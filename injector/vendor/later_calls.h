// Callback ids of driver functions that CUDA 13.0's headers do not have, so that an older build
// sees the calls of a newer program. The structures of their parameters begin as those of older
// functions do. Source: the headers of CUPTI 13.1 to 13.5, which headers_check.cpp compares.
#pragma once
#include <cstdint>

namespace flopinj::later {

inline constexpr uint32_t kCtxSynchronize2 = 800;
inline constexpr uint32_t kLaunchHostFunc2 = 831, kLaunchHostFunc2PerThread = 832;
inline constexpr uint32_t kBeginRecapture = 846, kBeginRecapturePerThread = 847;
inline constexpr uint32_t kGraphAddNode3 = 863, kGraphNodeSetParams2 = 864;

}  // namespace flopinj::later
