// What a cubin says of its functions: the layout of kernel parameters, registers and shared memory,
// what their code is, which of its instructions do arithmetic, and whether they launch kernels
// themselves. A cubin is an ELF file of machine CUDA; the driver shows us each one as it loads it.
//
// The bytes are not trusted: every read is inside the image, every loop is bounded, and what makes
// no sense is left out. No exception but bad_alloc.
//
// Where things are (no public specification; read from cubins that nvcc 13.0 makes for sm_75 to
// sm_120, and compared with cuobjdump by a test):
//   .text.F        the code of function F
//   .nv.constant2.F  its constants, if any
//   .nv.info.F     attributes: format (1 byte), attribute (1 byte), then a 16-bit value, or for
//                  format 4 a 16-bit length and so many bytes
//     0x17 KPARAM_INFO     index 4 bytes, ordinal 2, offset 2, then 4 bytes with the size in the
//                          upper 14 bits
//     0x45 KPARAM_INFO_V2  index 4, ordinal 2, offset 2, size 2, 2 of no interest: kernels with
//                          more than 4 KiB of parameters
//     0x19 CBANK_PARAM_SIZE  where the last parameter ends
//   .nv.info       the same for all functions
//     0x2f REGCOUNT        index of the function's symbol 4 bytes, registers of a thread 4
//   .nv.shared.F   is as large as its static shared memory; where .nv.shared.reserved.0 is (from
//                  sm_90 on), with the kilobyte that the system takes of each block's
//   .symtab        names by index
//   .nv.callgraph  pairs of symbol indices, in parts; a part begins with a pair 0, mark
//     0xffffffff     caller and callee
//     0xfffffffd     a caller of functions by address, and a number of their type
//     others         functions whose address is taken, and where
//   e_flags        the compute capability, major * 10 + minor: in ABI version 8 (since nvcc 13.0)
//                  bits 8-15, before that bits 0-7
#pragma once
#include <collector/identity/launch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace flopinj {

inline constexpr size_t kMaxCubinFunctions = 65'536;  // of one image; the rest are left out
inline constexpr size_t kMaxHashedBytes = 16U << 20;  // of one image
inline constexpr size_t kMaxReadBytes = 128U << 20;   // of one image: code looked at by instruction

struct CubinFunction {
  std::string_view name;  // mangled; in the image
  // Never 0. Equal for equal code, in any process:
  //   XXH3-64 of its .text bytes, with the XXH3-64 of its .nv.constant2 bytes (0 without) as seed;
  //   where it calls functions, XXH3-64 of that hash (8 bytes, little-endian), with a seed: the
  //   XXH3-64 of such hashes of itself and of all functions it calls, directly or not, each once,
  //   in ascending order, 8 bytes each.
  // Of an image with more code than kMaxHashedBytes, the first and the last bytes of long functions
  // are hashed in their place, as many as the bound allows, and their size is the seed of the
  // constants' hash.
  uint64_t code_hash = 0;
  bool code_cut = false;  // not all of its code is in the hash
  bool parameters_known = false;
  ParameterLayout parameters;
  uint32_t registers_per_thread = 0;  // 0: not known
  uint32_t static_shared_bytes = 0;   // as the driver counts it: without what is reserved
  // Of it and of all functions it calls, or takes the address of. Not known where it calls
  // functions that nothing names; past kMaxReadBytes; of other architectures. What it calls outside
  // of the image (the driver's assertions, printf, memory) is taken to have none.
  InstructionMix instructions;
  // It, or what it calls, calls the device runtime to launch kernels, or graphs.
  bool launches_kernels = false, launches_graphs = false;
};

// Gives every function of the image to `each`. False when the image is no cubin.
bool read_cubin(std::span<const unsigned char> image,
                const std::function<void(const CubinFunction&)>& each);

}  // namespace flopinj
