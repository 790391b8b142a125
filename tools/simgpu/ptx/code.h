// Decoded PTX: each instruction is a function over the 32 lanes of a warp, its operands are places
// in the warp's frame.
//
// A frame holds the registers of one call, for all lanes: 4 bytes a lane, 8 for 64-bit types; a
// predicate is one word with a bit a lane. Constants and special registers (%tid.x) are places too,
// filled before the call begins. So no instruction asks where an operand comes from.
#pragma once
#include <simgpu/counts.h>

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ptx/text.h"

namespace simgpu::ptx {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kUsualRegisters = 32;  // of a thread, where the text does not say them
inline constexpr uint32_t kAllLanes = 0xffff'ffff;

struct Warp;
struct Code;
using Handler = void (*)(Warp&, const Code&, uint32_t active);

// Generic addresses of what is not global: above every address of the process.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
inline constexpr uint64_t kParamWindow = uint64_t{3} << 56;
inline constexpr uint64_t kCodeWindow = uint64_t{4} << 56;  // + the number of a routine
inline constexpr int kWindowShift = 56;

enum BarrierUse : uint8_t { kSync, kArrive, kPopc, kAnd, kOr, kCluster, kCounted = 0x10 };

// How floating-point arithmetic is done: rounding and .ftz.
struct FloatMode {
  enum Rounding : uint8_t { kNearest, kZero, kDown, kUp };
  uint8_t rounding = kNearest;
  bool flush = false;
  bool operator==(const FloatMode&) const = default;
};

inline constexpr uint8_t kTwice = 0x80;
static_assert(static_cast<size_t>(Count::kCountKinds) < kTwice);

struct Code {
  enum class Kind : uint8_t {
    kPlain,     // `handler` does it all
    kBranch,    // to `value`, by the active lanes
    kIndexed,   // brx: to one of the targets, by register a
    kCall,      // of routine `value`, or with option 1 of the one whose address is in a; its list
                // has the places of results and arguments
    kReturn,    // from the routine; a kernel's threads end
    kExit,      // of the threads
    kBarrier,   // bar, barrier: `option` is a BarrierUse, a its number, b its threads (option 0x10)
    kTogether,  // `handler`, once all lanes of a mask are at a code that does the same: the place
                // in the first of its list; where it has none, all lanes at this code
    kYield,     // nanosleep: others go on
  };
  enum class Guard : uint8_t { kNone, kTrue, kFalse };
  // Of kTogether with a mask: which operands it has.
  enum class Meeting : uint8_t {
    kNone,     // none
    kShuffle,  // words d, a, b, c; predicate e
    kVote,     // predicates d, a
    kBallot,   // words d; predicate a
    kMatch,    // words d, a; predicate e
    kWide,     // the same, but a has 8 bytes a lane
    kReduce,   // words d, a
    kElect,    // words d; predicate e
  };

  Handler handler = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;  // bytes from the frame's begin
  uint32_t e = 0;                       // a second destination
  uint32_t guard = 0;
  uint32_t list = 0, list_size = 0;  // of the routine's lists: vectors, arguments, targets
  uint64_t value = 0;
  Kind kind = Kind::kPlain;
  Guard guarded = Guard::kNone;
  Meeting meeting = Meeting::kNone;
  FloatMode mode;
  Space space = Space::kGeneric;
  uint8_t option = 0;                                   // of the handler
  bool wide_d = false, wide_a = false, wide_b = false;  // 8 bytes a lane
  bool fixed_address = false;                           // `value` alone
  uint8_t count = 0;  // 1 + Count of what each active lane does, with kTwice: two of it
  uint32_t line = 0;
};

enum class Special : uint8_t {
  // clang-format off
  kTidX, kTidY, kTidZ, kNtidX, kNtidY, kNtidZ, kCtaidX, kCtaidY, kCtaidZ, kNctaidX, kNctaidY,
  kNctaidZ, kLaneid, kWarpid, kNwarpid, kSmid, kNsmid, kGridid, kLanemaskEq, kLanemaskLe,
  kLanemaskLt, kLanemaskGe, kLanemaskGt, kDynamicShared, kTotalShared, kClusteridX, kClusteridY,
  kClusteridZ, kNclusteridX, kNclusteridY, kNclusteridZ, kClusterCtaidX, kClusterCtaidY,
  kClusterCtaidZ, kClusterNctaidX, kClusterNctaidY, kClusterNctaidZ, kClusterCtarank,
  kClusterNctarank, kIsExplicitCluster, kWorkspaceHigh, kWorkspaceLow, kZero,
  kLocalBase,  // where the call's own local memory begins
  // clang-format on
};

// One function, decoded.
struct Routine {
  struct Constant {
    uint32_t place;
    bool wide;
    uint64_t value;
    uint32_t lanes = kLanes;  // 1: a predicate, one word
  };
  struct SpecialPlace {
    uint32_t place;
    bool wide;
    Special which;
  };
  // Where a parameter or result is in the frame: a register, or bytes of each lane.
  struct Passed {
    uint32_t place = 0;
    uint32_t bytes = 0;  // of all lanes
  };

  std::string name;
  std::vector<Code> code;
  std::vector<uint32_t> lists;  // places and numbers that single codes refer to
  std::vector<Constant> constants;
  std::vector<SpecialPlace> specials;
  std::vector<Passed> parameters, results;
  uint32_t frame_bytes = 0;
  uint32_t local_bytes = 0;
};

struct Kernel {
  std::string name;
  uint32_t routine = 0;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t shared_bytes = 0;   // static
  uint32_t dynamic_begin = 0;  // where dynamic shared memory begins: behind every kernel's static
  uint32_t cluster[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};         // that a launch must have; zeros: any
  uint32_t most_threads = 0;             // of a block; 0: as many as the device has
  uint32_t registers = kUsualRegisters;  // of a thread
};

// A module whose variables have addresses. `globals` maps names to them, for cuModuleGetGlobal.
struct Program {
  struct Global {
    uint64_t address = 0, bytes = 0;
  };
  std::vector<Routine> routines;
  std::vector<Kernel> kernels;
  std::unordered_map<std::string, Global> globals;
};

}  // namespace simgpu::ptx
