// Interning of kernel functions and signatures.
//
// A signature is of all launches that are taken to do the same work: function, grid, block,
// cluster, dynamic shared memory and a fingerprint of the parameters that are not pointers
// (fingerprint.h). Two launches that differ in any of these are never merged, except where a
// function's fingerprints explode in number: past kMaxFingerprintsPerShape the rest of that shape
// share one class that is marked merged and read as varying. A shape whose fingerprints do not come
// again, and whose work has been seen not to depend on them, has that class early:
// merge_from_now(). So has every shape of a function that may be any of several (FunctionInfo).
//
// Threads: intern_* may be called from any thread (they lock; callers keep a thread-local cache in
// front, see thread_state.h). Returned pointers live as long as the table. Both tables are bounded:
// past the bound intern_function returns null, intern_signature the overflow signature of that
// function, which is never measured. Null from intern_signature: no memory even for that. Every
// such request is counted in overflowed().
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/launch.h>
#include <collector/identity/never_measured.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kMaxFunctions = 65'536;
inline constexpr uint32_t kMaxSignatures = 262'144;
inline constexpr uint32_t kMaxFingerprintsPerShape = 64;
inline constexpr uint32_t kMaxGroups = 64;  // metric groups of all chips of a process

// The fingerprint of merged classes and overflow signatures.
inline constexpr uint64_t kMergedFingerprint = 0x0064'6567'7265'6d00;  // "merged" between zeros

struct KernelFunction {
  FunctionId id;
  FunctionInfo info;
  uint64_t name_hash = 0;      // stable
  bool never_measure = false;  // it may hang in a measurement window (never_measured.h)
  bool passed_over = false;    // its launches are not recorded: the user chose others by name
};

enum class ParameterClass : uint8_t { kExact = 1, kUnknown = 2, kMerged = 3 };  // as in the trace

struct Signature {
  SignatureId id;
  const KernelFunction* function = nullptr;
  LaunchShape shape;
  uint64_t fingerprint = 0;
  // Of mangled name, shape, fingerprint, code: the same in every process, run and rank.
  uint64_t stable_hash = 0;
  ParameterClass parameter_class = ParameterClass::kExact;
  // Groups of the metric plan that still want samples of this signature, one bit per group. Read
  // relaxed on every launch; written by the scheduler.
  mutable std::atomic<uint64_t> wanted_groups{0};
};

// A function with one shape, as the key of tables in memory.
struct FunctionShape {
  const KernelFunction* function;
  LaunchShape shape;
  bool operator==(const FunctionShape&) const = default;
  struct Hash {
    size_t operator()(const FunctionShape&) const noexcept;
  };
};

// Stands for all shapes of a function that found no room in the table. Its own shape is all zeros,
// which no launch has.
inline bool is_overflow(const Signature& s) {
  return s.parameter_class == ParameterClass::kMerged && s.shape.grid[0] == 0;
}
// May be inside a measurement window.
inline bool may_be_measured(const Signature& s) {
  return !s.function->never_measure && !is_overflow(s);
}

class SignatureTable {
 public:
  // `recorded` says by a kernel's mangled name whether its launches are; empty: all are.
  using Recorded = std::function<bool(const std::string&)>;
  explicit SignatureTable(NeverMeasured = NeverMeasured{}, Recorded = {});
  ~SignatureTable();

  // The same name with the same code, parameter layout, registers and static shared memory is the
  // same function, whatever module it came from: compilers at run time give one name to many
  // kernels. Code that is not known (hash 0) is like no code that is.
  const KernelFunction* intern_function(const FunctionInfo&) noexcept;

  // `fingerprint` from fingerprint_of(); ignored where the function's parameters are not known.
  // A new signature wants `initial_wanted` and the groups of want_everywhere(), so that a plan that
  // becomes ready at the same moment is not missed; one that may not be measured wants nothing.
  const Signature* intern_signature(const KernelFunction&, const LaunchShape&, uint64_t fingerprint,
                                    uint64_t initial_wanted) noexcept;

  // Definitions that the writer has not seen yet, in id order: those with id > after. For the
  // writer thread.
  std::vector<const KernelFunction*> functions_after(FunctionId) const;
  std::vector<const Signature*> signatures_after(SignatureId) const;
  const Signature* find(SignatureId) const noexcept;  // null: none has this id
  // Sets `bits` in wanted_groups of all signatures that may be measured, also of those to come (a
  // plan became ready); or clears them (a device cannot be measured).
  void want_everywhere(uint64_t bits) noexcept;
  void want_nowhere(uint64_t bits) noexcept;

  // Fingerprints of this signature's function and shape that are not known yet go to the merged
  // class.
  void merge_from_now(const Signature&) noexcept;

  uint64_t overflowed() const;  // interning requests past a bound

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Hash of name, shape, fingerprint and code, for the trace. Stable for ever: a test pins its
//   values. XXH3-64 with seed stable_name_hash(name) of 48 bytes: grid x y z, block x y z, cluster
//   x y z and dynamic shared bytes, 4 bytes each, then the fingerprint, 8 bytes; and where the code
//   is known 8 more: its hash. All little-endian.
uint64_t stable_signature_hash(std::string_view mangled_name, const LaunchShape&,
                               uint64_t fingerprint, uint64_t code_hash = 0) noexcept;
// XXH3-64 with seed 0 of the name's bytes.
uint64_t stable_name_hash(std::string_view mangled_name) noexcept;

}  // namespace flopinj
