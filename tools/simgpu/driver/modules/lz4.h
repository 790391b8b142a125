// One block of LZ4, as its public description of the block format has it.
#pragma once
#include <string>
#include <string_view>

namespace simgpu {

// Fills `to`, which has the size that the block unpacks to. False: the block is damaged, or unpacks
// to another size.
bool unpack_lz4(std::string_view from, std::string& to);

}  // namespace simgpu
