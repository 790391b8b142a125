// Kernels whose counts are known, as one table: the program that launches them, and `flopinj doctor
// --count`, which compares.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace flopinj::known_kernels {

// Operations of one launch in one precision, as flopreduce names it.
struct Work {
  std::string_view precision;  // "": none
  uint64_t each = 0;           // of a unit, in each step or once
  uint32_t unit = 1;           // threads that do it together
  bool once = false;           // not in each step
  uint32_t idle = 0;           // threads of a block that do none of it
};

// How the launches are made.
enum class Way : uint8_t {
  kPlain,
  kInGraph,        // half of them eagerly, the others by a graph
  kBesideWaiting,  // half of them while a kernel of another stream waits for the host
  kTimed,          // of much memory, and some of them between two events: no work is compared
};

struct Row {
  std::string_view name, module, kernel;
  bool (*runs_on)(uint32_t capability);  // 90 is 9.0
  std::array<Work, 2> work = {};
  uint32_t threads = 128;  // of a block
  Way way = Way::kPlain;
  uint32_t launches = 100;
  bool alone = false;  // in a process of its own: it may hang, or spoil the others
  // What is shown where its instructions are counted, which may not work: a word of findings
  // (doctor_findings.h). "": nothing is tried.
  std::string_view shows = {};
};

inline constexpr uint32_t kBlocks = 2, kSteps = 8;
inline constexpr uint32_t kBetweenEvents = 20;  // launches: the last ones of a row that is timed

std::span<const Row> rows();
// Rows of one name have the same launches, and never run on the same chip.
const Row* find_row(std::string_view name);
uint64_t operations(const Row&, const Work&);  // of a launch

// Waiting for products of a group of warps, ptxas 13.0 ends them by one more instruction,
// HGMMA.64x8x16.F16 without operands and with a false predicate. Hardware may count it.
inline constexpr Work kEndOfProducts = {"tensor_fp16", 2 * 64 * 8 * 16, 128, true};

}  // namespace flopinj::known_kernels
