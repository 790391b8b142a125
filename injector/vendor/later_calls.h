// Callback ids of driver functions that CUDA 13.0's headers do not have, so that an older build
// sees the calls of a newer program. The structures of their parameters begin as those of older
// functions do. Source: the headers of CUPTI 13.1 to 13.5, which headers_check.cpp compares.
#pragma once
#include <cstdint>

namespace flopinj::later {

// Into a command list of a graphics API. CUDA 13.0 has its number, and no such function.
inline constexpr uint32_t kBeginCaptureToCig = 783, kBeginCaptureToCigPerThread = 814;
inline constexpr uint32_t kEndCaptureToCig = 815, kEndCaptureToCigPerThread = 816;
inline constexpr uint32_t kCtxSynchronize2 = 800;
inline constexpr uint32_t kLaunchHostFunc2 = 831, kLaunchHostFunc2PerThread = 832;
inline constexpr uint32_t kBeginRecapture = 846, kBeginRecapturePerThread = 847;
inline constexpr uint32_t kGraphAddNode3 = 863, kGraphNodeSetParams2 = 864;

}  // namespace flopinj::later
