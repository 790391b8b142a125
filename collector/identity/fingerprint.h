// A hash of the kernel parameters that are not pointers, so that launches that do different work
// with the same grid (a matrix product's K is in no grid) get different signatures.
//
// The driver gives offset and size of each parameter, not its type, and structures passed by value
// hold pointers too. So 8-byte words are judged by their value (looks_like_pointer below), in
// parameters of at least 8 bytes that start at a multiple of 8: others have an alignment below 8
// and hold no pointer. A word that looks like a pointer is replaced by a fixed token, everything
// else is hashed as it is. A null pointer is hashed as zero, so that an optional argument that is
// absent makes its own signature.
//
// The fingerprint is XXH3-64 (seed 0) of the parameters' bytes in order, without padding between
// them, after that replacement. A tensor map (TMA's descriptor, a parameter of 128 bytes) has one
// pointer, its address; one of its flags is hashed as 0, since the driver sets it by the address.
// Fingerprints are written to traces and compared between runs and machines, so the definition
// never changes, and a test pins values of an independent implementation.
#pragma once
#include <collector/identity/launch.h>

#include <cstddef>
#include <cstdint>

namespace flopinj {

inline constexpr uint32_t kMaxParameterBytes =
    32'764;  // CUDA's own limit since compute capability 7.0; bytes past it are left out

// What a pointer is hashed as: "pointer" and a zero byte, little-endian.
inline constexpr uint64_t kPointerToken = 0x0072'6574'6e69'6f70;

// True for canonical user-space addresses above the first 4 GiB, where device pointers under
// unified addressing are, except those that are more likely two 32-bit integers side by side
// (sizes passed in a structure, as in CUTLASS): low half below 2^24 and high half below 0x7e00.
// Linux maps memory from 0x7fff'... downwards, so the pointers of a process hardly ever fall under
// the exception; one that does is hashed as data and costs a signature per address, at worst the
// merged class, which is marked. The other mistake, an integer taken for a pointer, would merge
// unlike launches in silence; what is left of it are 64-bit integers from 2^32 to 2^47 and pairs
// whose first is 2^24 or more and whose second is below 2^15. Such signatures' samples disagree.
constexpr bool looks_like_pointer(uint64_t word) {
  const uint64_t high = word >> 32, low = word & 0xffff'ffff;
  return high != 0 && high < 0x8000 && (low >= (1U << 24) || high >= 0x7e00);
}

// 0 where there are no parameters or the layout is unknown. Reads exactly the bytes the layout
// names, or of the packed buffer at most packed_bytes. No allocation, no lock.
uint64_t fingerprint_of(const FunctionInfo&, const ParameterValues&) noexcept;

// The same for raw bytes taken as one parameter, for tests and for callers with a packed buffer and
// no layout. 0 for no bytes.
uint64_t fingerprint_of_bytes(const void* bytes, size_t size) noexcept;

}  // namespace flopinj
