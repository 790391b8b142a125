// Functions of instructions that are more than arithmetic of one lane.
#pragma once
#include "ptx/lanes.h"
#include "ptx/machine.h"

namespace simgpu::ptx {

// --- memory.cpp: addresses are register a + value, or value alone

// The address of each lane, of which `bytes` are used: a power of two. Throws Fault where it is no
// multiple of them.
LaneAddresses addresses(const Warp& warp, const Code& code, uint32_t active, uint32_t bytes);
void check_alignment(uint64_t address, uint64_t bytes);

Handler load_handler(const Type& type);                          // into the places of its list
Handler store_handler(const Type& type);                         // from them
void to_window(Warp& warp, const Code& code, uint32_t active);   // cvta: a + value
void in_window(Warp& warp, const Code& code, uint32_t active);   // isspacep: of `value`
void load_frame(Warp& warp, const Code& code, uint32_t active);  // .param of a call
void store_frame(Warp& warp, const Code& code, uint32_t active);
void pack(Warp& warp, const Code& code, uint32_t active);    // d: the parts of its list
void unpack(Warp& warp, const Code& code, uint32_t active);  // its list: the parts of a
void add_local_base(Warp& warp, const Code& code, uint32_t active);
void read_clock(Warp& warp, const Code& code, uint32_t active);
void trap(Warp& warp, const Code& code, uint32_t active);
void map_address(Warp& warp, const Code& code, uint32_t active);  // mapa: a, in the block of rank b
void rank_at(Warp& warp, const Code& code, uint32_t active);      // getctarank: of address a
void add_value(Warp& warp, const Code& code, uint32_t active);    // d, of 8 bytes: a + value
Handler system_call(const std::string& name);                     // null: it is not known

// --- atomics.cpp: memory that the host and kernels of other streams may use at the same time

// The same for .volatile, .relaxed, .acquire and .release.
Handler strong_load_handler(const Type& type);
Handler strong_store_handler(const Type& type);
Handler atomic_handler(const std::string& operation, const Type& type);  // null: there is none

// --- async.cpp

void copy_async(Warp& warp, const Code& code,
                uint32_t active);  // b: source, c: bytes that are read
// Of the list: target, source, bytes; where it goes to shared memory the barrier object, and the
// blocks of the cluster that get it, if it is not the one that the target is in.
Handler bulk_copy(bool to_shared);
Handler barrier_object(const std::string& operation);  // mbarrier.*; null: there is none

// --- together.cpp: among the lanes of a warp

enum class Shuffle : uint8_t { kUp, kDown, kBfly, kIdx };
void shuffle(Warp& warp, const Code& code, uint32_t active);
enum class Vote : uint8_t { kBallot, kAny, kAll, kUni };
void vote(Warp& warp, const Code& code, uint32_t active);
Handler match_handler(const std::string& which, const Type& type);
Handler reduction_handler(const std::string& operation, const Type& type);
void active_mask(Warp& warp, const Code& code, uint32_t active);
void elect(Warp& warp, const Code& code, uint32_t active);
void arrive_in_cluster(Warp& warp, const Code& code, uint32_t active);
void nothing(Warp& warp, const Code& code, uint32_t active);

// --- matrix.cpp

// mma, wmma, ldmatrix, stmatrix, movmatrix: the words of the instruction decide. Fills `code` but
// for the places of its list, in the order of the operands. False: the form is not known, and
// `problem` says what is.
bool matrix_code(const Instruction& instruction, Code& code, std::string& problem);

// --- warpgroup.cpp

// The same of wgmma.mma_async; the list has registers, descriptors and the predicate.
bool warpgroup_code(const Instruction& instruction, Code& code, std::string& problem);

}  // namespace simgpu::ptx
