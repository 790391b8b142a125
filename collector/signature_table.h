// Interning of kernel functions and signatures.
//
// A signature stands for launches that are taken to do the same work: function, grid, block,
// cluster, dynamic shared memory and a fingerprint of the parameters that are not pointers
// (fingerprint.h). Two launches that differ in any of these are never merged, except where a
// function's fingerprints explode in number: past kMaxFingerprintsPerShape the rest of that shape
// share one class that is marked merged and read as varying.
//
// Threads: intern_* may be called from any thread (they lock; callers keep a thread-local cache in
// front, see thread_state.h). Returned pointers live as long as the table. Both tables are bounded:
// past the bound intern_function returns null, intern_signature the overflow signature of that
// function's name.
#pragma once
#include <collector/model.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kMaxFunctions = 65'536;
inline constexpr uint32_t kMaxSignatures = 262'144;
inline constexpr uint32_t kMaxFingerprintsPerShape = 64;
inline constexpr uint32_t kMaxGroups = 32;  // metric groups of all devices of a process

struct KernelFunction {
  FunctionId id;
  FunctionInfo info;
  uint64_t name_hash = 0;  // stable
  bool never_measure =
      false;  // collectives and others that may hang when serialised (collectives.h)
};

enum class ParameterClass : uint8_t { kExact = 1, kUnknown = 2, kMerged = 3 };  // as in the trace

struct Signature {
  SignatureId id;
  const KernelFunction* function = nullptr;
  LaunchShape shape;
  uint64_t fingerprint = 0;
  uint64_t stable_hash =
      0;  // of mangled name, shape, fingerprint: the same in every process, run and rank
  ParameterClass parameter_class = ParameterClass::kExact;
  // Groups of the metric plan that still want samples of this signature, one bit per group. Read
  // relaxed on every launch; written by the scheduler.
  mutable std::atomic<uint32_t> wanted_groups{0};
};

class SignatureTable {
 public:
  SignatureTable();
  ~SignatureTable();
  SignatureTable(const SignatureTable&) = delete;
  SignatureTable& operator=(const SignatureTable&) = delete;

  // The same name with the same parameter layout is the same function, whatever module it came
  // from.
  const KernelFunction* intern_function(const FunctionInfo&);

  // `fingerprint` from fingerprint_of(). `initial_wanted` is stored in a new signature's
  // wanted_groups.
  const Signature* intern_signature(const KernelFunction&, const LaunchShape&, uint64_t fingerprint,
                                    uint32_t initial_wanted);

  // Definitions that the writer has not seen yet, in id order: those with id > after. For the
  // writer thread.
  std::vector<const KernelFunction*> functions_after(FunctionId) const;
  std::vector<const Signature*> signatures_after(SignatureId) const;
  // Sets `bits` in wanted_groups of all signatures that may be measured (a plan became ready).
  void want_everywhere(uint32_t bits);

  uint64_t merged_fingerprints() const;  // launches' classes put into a merged one
  uint64_t overflowed() const;           // interning requests past a bound

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Hash of name, shape and fingerprint, for the trace. Stable for ever: a test pins its values.
uint64_t stable_signature_hash(std::string_view mangled_name, const LaunchShape&,
                               uint64_t fingerprint);

}  // namespace flopinj
