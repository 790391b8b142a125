// From raw counters to FLOP. The weights are data (formulas.cpp); a chip that needs others gets
// rows, not code.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/wide.h"
#include "tables/kernel_code.h"
#include "tables/names.h"
#include "tables/samples.h"

namespace flopinj::reduce {

enum class MetricRole : uint8_t {
  kFlop,       // counts floating-point work
  kInteger,    // counts integer operations of the tensor cores: OP, never added to FLOP
  kScreening,  // counts tensor instructions: says that there is work, not how much
  kBound,      // counts instructions that may be floating-point work: no more than so much
  kMachine,    // counts operations that PTX leaves whole and machine code does not: nothing itself
  kOther,      // bytes, cycles
};

// An operation of PTX that counts nothing, and the FLOP of the instructions that machine code makes
// of it where its operands take the fast path, a multiply-add as two. ptxas's sequences are alike
// from compute capability 7.5 to 10.0 (tests/hardware/sequences.csv).
struct MachineOperation {
  std::string_view key;   // "div_f32", as simulated devices count it
  std::string_view name;  // "fp32 division"
  uint32_t fp32 = 0, fp64 = 0;
};
std::span<const MachineOperation> machine_operations();

// What a tensor metric's name restricts: sm__ops_path_tensor[_op_X]_src_Y[_dst_Z][_sparsity_S]. A
// metric includes every metric that restricts more, so the two are never added.
struct TensorPath {
  std::string op, source, destination, sparsity;
};

struct MetricMeaning {
  MetricRole role = MetricRole::kOther;
  // Index into Formulas::precisions(), kIntegerFormats, or machine_operations().
  uint32_t precision = 0;
  uint32_t numerator = 0;  // FLOP = value * numerator / denominator
  // Where not all instructions that it counts compute all they can (tables/kernel_code.h): FLOP are
  // no less than value * least, and would be value * full if they did.
  uint32_t least = 0, full = 0;
  InstructionCounts instructions;  // of the kernel's code; all 0 where nothing is less
  uint32_t denominator = 1;
  bool matrix = false;  // fused multiply-adds and tensor work: what matrix products are made of
  std::optional<TensorPath> tensor;
};

// What a set of metrics says of a device's tensor work: they look for all of it, or count all the
// formats in floating point that GPUs of this compute capability multiply.
class TensorWorkAsked {
 public:
  void add(std::string_view metric);
  bool all(uint32_t compute_major, uint32_t compute_minor) const;

 private:
  bool screened_ = false;
  std::set<std::string, std::less<>> formats_;  // "bf16"
};

// Integer sources of tensor operations. The last is for all that are none of the others.
inline constexpr std::array<std::string_view, 6> kIntegerFormats = {
    "tensor_int8",        "tensor_int8_sparse", "tensor_int4",
    "tensor_int4_sparse", "tensor_int1",        "tensor_int"};

// FLOP by precision, and apart from them integer operations.
inline constexpr size_t kMaxPrecisions = 24;
inline constexpr size_t kInstructionPrecisions = 3;  // the first: fp64, fp32, fp16
inline constexpr size_t kFp32 = 1;
struct Flop {
  std::array<u128, kMaxPrecisions> by_precision{};
  std::array<u128, kIntegerFormats.size()> integer{};
  u128 total = 0;
  u128 matrix = 0;
  // Of by_precision and total: at most so much may be of instructions without arithmetic.
  std::array<u128, kInstructionPrecisions> doubtful{};
  u128 left_out = 0;  // in nothing above: counted by metrics, and known to be no arithmetic
  bool overflow = false;

  void add(uint32_t precision, u128 flop, bool is_matrix);
  u128 all_doubtful() const;
  void add_integer(uint32_t format, u128 operations);
  void add(const Flop& other);
};

enum class FlopStatus : uint8_t {
  kMeasured,
  kNoCounters,        // no required metric group was defined for this kind of device
  kGroupNotSampled,   // a required group has no sample of this signature
  kGroupUnavailable,  // a group that it needs, or may need, cannot be measured
  kTensorNotSampled,  // tensor instructions were seen; no tensor metric was sampled
  kTensorNotCovered,  // tensor instructions were seen; the sampled tensor metrics saw none of them
  kUndefined,         // the signature's definition is lost
};

// The FLOP of one signature on one kind of device, by its samples.
struct SignatureFlop {
  struct Part {
    MetricStat stat;
    MetricMeaning meaning;
    std::optional<u128> extrapolated;  // the metric over all launches, where it is no plain mean

    // The metric over all launches of the signature.
    u128 counted(uint64_t launches, bool& overflow) const {
      return extrapolated ? *extrapolated : mul_div_round(stat.sum, launches, stat.n, overflow);
    }
  };
  FlopStatus status = FlopStatus::kUndefined;
  uint32_t missing_group = 0;  // NamePool, with kGroupNotSampled and kGroupUnavailable
  std::vector<Part> parts;
  bool unscreened = false;  // measured, but nothing says whether there is tensor work too
  bool bounded = false;     // instructions were not counted: parts bound them from above
  bool varying = false;     // samples disagree, or launches with other parameters share them
  bool inexact = false;     // a counter was no whole number below 2^53: rounded

  // FLOP of launches [from, from + count) of `all` launches of this signature. Pieces add up to the
  // whole exactly.
  Flop of(uint64_t from, uint64_t count, uint64_t all) const;
};

class Formulas {
 public:
  // fma: what one fused multiply-add counts, 1 or 2.
  explicit Formulas(int fma);
  int fma() const { return fma_; }
  const std::vector<std::string>& precisions() const { return precisions_; }
  MetricMeaning meaning(std::string_view metric);
  // `samples` may be null, and so may `code`: nothing is said of the kernel's code.
  SignatureFlop evaluate(const SampleSet* samples, const RequiredGroups& required,
                         const NamePool& names, const KernelCode* code = nullptr);

 private:
  uint32_t precision_index(const std::string& name);
  int fma_;
  std::vector<std::string> precisions_;
};

}  // namespace flopinj::reduce
