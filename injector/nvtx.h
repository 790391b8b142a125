// NVTX as a source of range paths.
#pragma once
#include <cstdint>

namespace flopinj {

// Takes over the functions of one copy of NVTX. False when its tables are not of a kind we know, or
// recording is off for good: that copy then does nothing.
bool attach_nvtx(const void* (*get_export_table)(uint32_t)) noexcept;

}  // namespace flopinj
