// A hash of the kernel parameters that are not pointers, so that launches that do different work
// with the same grid (a matrix product's K is in no grid) get different signatures.
//
// The driver tells offset and size of each parameter, not its type, and structures passed by value
// hold pointers too. Every aligned 8-byte word of a parameter of at least 8 bytes is therefore
// judged by its value: a word from 2^32 up to 2^47 - 1, that is a canonical user-space address
// above the first 4 GiB, is taken as a pointer and replaced by a fixed token; everything else is
// hashed as it is. Device pointers under unified addressing are such addresses. A null pointer is
// hashed as zero, so that an optional argument that is absent makes its own signature. What this
// cannot tell apart is 64-bit integers of 2^32 and more from each other; a kernel whose only
// difference is such a number is found by disagreeing samples.
#pragma once
#include <collector/model.h>

#include <cstdint>

namespace flopinj {

inline constexpr uint32_t kMaxParameterBytes =
    32'764;  // CUDA's own limit since compute capability 7.0

// 0 where there are no parameters or the layout is unknown. Reads exactly the bytes the layout
// names, or of the packed buffer at most packed_bytes. No allocation, no lock.
uint64_t fingerprint_of(const FunctionInfo&, const ParameterValues&);

// The same for raw bytes, for tests and for callers with a packed buffer and no layout.
uint64_t fingerprint_of_bytes(const void* bytes, size_t size);

}  // namespace flopinj
