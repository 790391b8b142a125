// Runs decoded kernels: blocks one after the other, the warps of a block in turns.
//
// Lanes of a warp that are at the same place run together. Where a branch divides them, the group
// at the lowest address runs until it reaches the place of another group, and joins it; lanes that
// called run before those that did not. A group that waits at a barrier, or for other lanes of its
// warp, lets the others go first, and none waits for long while another runs: each lane goes on, as
// with the independent thread scheduling of sm_70 and later.
//
// Lanes that an instruction's mask names meet where they are: at one instruction or at several that
// do the same, in one call or in several. Lanes that have ended are not waited for.
#pragma once
#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "ptx/code.h"
#include "ptx/sectors.h"

namespace simgpu::ptx {

// What a kernel must not do: an illegal address, an instruction that ends it, a wait without end.
struct Fault : std::runtime_error {
  Fault(CUresult code, const std::string& problem) : std::runtime_error(problem), result(code) {}
  CUresult result;
};

struct Dim3 {
  uint32_t x, y, z;
};

// Memory that a kernel may use.
struct Allocation {
  uint64_t begin = 0, end = 0;
};

struct Launch {
  Dim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{0, 0, 0};
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  uint64_t grid_workspace = 0;  // %envreg1, %envreg2: where grids synchronise (cooperative groups)
  std::span<const std::byte> parameters;
  SectorMap sectors{};
  uint64_t grid_id = 0;
  // The allocation around an address; false: there is none.
  std::function<bool(uint64_t address, Allocation& found)> find;
  // A moment for other work, while the kernel waits for it. `asleep`: since the last one all of its
  // warps that ran came to a nanosleep.
  std::function<void(bool asleep)> pause;
  std::function<void(const std::string& text)> print;                  // printf's
  std::function<uint64_t(uint64_t bytes)> allocate;                    // malloc's; 0: there is none
  std::function<bool(uint64_t address)> give_back;                     // false: it is not malloc's
  std::function<void(uint64_t handle, uint32_t value)> set_condition;  // cudaGraphSetConditional's
};

// Throws Fault; what was counted until then is lost.
Counts run(const Program& program, const Kernel& kernel, const Launch& launch);

// --- below: for instructions

struct Block;

// A device's memory as one launch sees it.
class GlobalMemory {
 public:
  explicit GlobalMemory(const Launch& launch) : launch_(launch) {}

  // Throws Fault where [address, address + bytes) is not within one allocation.
  void check(uint64_t address, uint64_t bytes) {
    const uint64_t end = address + bytes;
    if (end < address || !covers(address, end)) look_up(address, bytes);
  }
  // Whether it is known that [begin, end) is within one allocation.
  bool covers(uint64_t begin, uint64_t end) const {
    for (const Allocation& one : known_)
      if (begin >= one.begin && end <= one.end) return true;
    return false;
  }
  void forget() { known_ = {}; }  // memory was freed
  void read(uint64_t address, uint64_t bytes) { touch<false>(address, bytes); }
  void written(uint64_t address, uint64_t bytes) { touch<true>(address, bytes); }

  Counts counts;

 private:
  void look_up(uint64_t address, uint64_t bytes);

  template <bool write>
  void touch(uint64_t address, uint64_t bytes) {
    const SectorMap& map = launch_.sectors;
    const uint64_t offset = address - map.base;
    if (offset >= map.bytes) return;
    const uint64_t last = (offset + bytes - 1) / kSectorBytes;
    for (uint64_t at = offset / kSectorBytes; at <= last;) {  // chunk by chunk
      SectorChunk& chunk = map.chunks[at / kChunkSectors];
      if (chunk.launch != map.launch) chunk = SectorChunk{map.launch, 0, 0};
      const uint64_t from = at % kChunkSectors;
      const uint64_t count = std::min(last - at + 1, kChunkSectors - from);
      const uint64_t touched = (~uint64_t{0} >> (kChunkSectors - count)) << from;
      uint64_t& seen = write ? chunk.written : chunk.read;
      if (const uint64_t fresh = touched & ~seen; fresh != 0) {
        counts[write ? Count::kDramWriteBytes : Count::kDramReadBytes] +=
            kSectorBytes * static_cast<uint64_t>(__builtin_popcountll(fresh));
        seen |= fresh;
      }
      at += count;
    }
  }

  const Launch& launch_;
  std::array<Allocation, 4> known_;  // those that were used last
  size_t next_ = 0;                  // of them, the one that is forgotten next
};

struct Group {
  enum class Wait : uint8_t {
    kNone,
    kBarrier,
    kArrival,  // at a barrier, of the warp's other lanes
    kOthers    // of the mask
  };
  uint32_t at = 0;  // index of its next code
  uint32_t lanes = 0;
  Wait wait = Wait::kNone;
  uint32_t of = 0;   // the barrier's number, or the mask
  uint64_t ran = 0;  // when it ran last, by Warp::ran
};

// One call, of lanes that called together. Others may be in other calls meanwhile.
struct Frame {
  const Routine* routine = nullptr;
  Frame* below = nullptr;  // the caller's
  std::vector<std::byte> bytes;
  uint32_t local_base = 0;  // of its own local memory
  std::vector<Group> groups;
  uint32_t lanes = 0;    // that called, and did not return
  uint32_t call_at = 0;  // the call's index in the frame below
  uint32_t depth = 0;
  uint32_t calls = 0;  // out of it, that have not ended
};

struct Warp {
  std::byte* frame = nullptr;  // of the running call: its places
  const Frame* running = nullptr;
  Block* block = nullptr;
  GlobalMemory* memory = nullptr;
  uint32_t number = 0;   // in the block
  uint32_t live = 0;     // lanes that have not ended
  uint32_t arrived = 0;  // lanes that have, at the cluster's barrier, and in which phase
  uint64_t arrived_in = 0;
  uint32_t local_bytes = 0;  // a lane's
  std::vector<std::byte> local;
  std::vector<std::unique_ptr<Frame>> frames;  // the kernel's own, and calls by age
  std::vector<std::unique_ptr<Frame>> spare;
  size_t call_bytes = 0;   // of the frames of calls
  uint64_t ran = 0;        // codes, by all groups
  bool gives_way = false;  // to the group that has waited longest

  void enter(Frame& one) {
    running = &one;
    frame = one.bytes.data();
  }

  // Of a place with 4 or 8 bytes a lane.
  uint64_t get(uint32_t place, bool wide, uint32_t lane) const {
    return wide ? longs(place)[lane] : words(place)[lane];
  }
  void put(uint32_t place, bool wide, uint32_t lane, uint64_t value) const {
    put(frame, place, wide, lane, value);
  }
  static void put(std::byte* frame, uint32_t place, bool wide, uint32_t lane, uint64_t value) {
    if (wide)
      reinterpret_cast<uint64_t*>(frame + place)[lane] = value;
    else
      reinterpret_cast<uint32_t*>(frame + place)[lane] = static_cast<uint32_t>(value);
  }
  uint32_t* words(uint32_t place) const { return reinterpret_cast<uint32_t*>(frame + place); }
  uint64_t* longs(uint32_t place) const { return reinterpret_cast<uint64_t*>(frame + place); }
  const Routine& routine() const { return *running->routine; }
};

struct Barrier {
  uint32_t threads = 0;           // that have come
  uint32_t expected = 0;          // 0: all of the block
  uint32_t votes = 0, zeros = 0;  // bar.red: of the threads that have come
};

// Blocks that run together and may use each other's shared memory; one of its own where there are
// no clusters. Where an address of shared memory has a rank, plus one, above its offset, it is in
// the block of that rank.
struct Cluster {
  std::vector<Block*> blocks;  // by rank; null: it has ended
  uint64_t phase = 0;          // of its barrier
  bool uses_barrier = false;
};
inline constexpr int kRankShift = 24;

struct Block {
  Dim3 index{0, 0, 0};
  Cluster* cluster = nullptr;
  const Launch* launch = nullptr;
  const Kernel* kernel = nullptr;
  const Program* program = nullptr;
  std::vector<std::byte> shared;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers{};
};

// A block's place in its cluster.
uint32_t rank_of(const Block& block);

enum class Access { kRead, kWrite, kBoth };

template <class F>
void for_each_lane(uint32_t active, F f) {
  for (uint32_t left = active; left != 0; left &= left - 1)
    f(static_cast<uint32_t>(__builtin_ctz(left)));
}
// The bits of `active` in a predicate become those of `value`.
[[gnu::always_inline]] inline void set_bits(uint32_t& predicate, uint32_t active, uint32_t value) {
  predicate = (predicate & ~active) | (value & active);
}

// Where the bytes at a lane's address are. Throws Fault where it may not use them.
std::byte* at_address(Warp& warp, uint32_t lane, uint64_t address, uint64_t bytes, Space space,
                      Access access);

}  // namespace simgpu::ptx
