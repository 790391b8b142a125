#include <collector/base/mutex.h>
#include <collector/identity/signature_table.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <deque>
#include <unordered_map>

namespace flopinj {

static_assert(std::endian::native == std::endian::little, "hashes are defined on little-endian");

uint64_t stable_name_hash(std::string_view mangled_name) noexcept {
  return XXH3_64bits(mangled_name.data(), mangled_name.size());
}

static uint64_t hash_launch(uint64_t name_hash, const LaunchShape& shape, uint64_t fingerprint,
                            uint64_t code_hash) noexcept {
  unsigned char bytes[56];
  std::memcpy(bytes, shape.grid.data(), 12);
  std::memcpy(bytes + 12, shape.block.data(), 12);
  std::memcpy(bytes + 24, shape.cluster.data(), 12);
  std::memcpy(bytes + 36, &shape.dynamic_shared_bytes, 4);
  std::memcpy(bytes + 40, &fingerprint, 8);
  std::memcpy(bytes + 48, &code_hash, 8);
  return XXH3_64bits_withSeed(bytes, code_hash != 0 ? 56 : 48, name_hash);
}

uint64_t stable_signature_hash(std::string_view mangled_name, const LaunchShape& shape,
                               uint64_t fingerprint, uint64_t code_hash) noexcept {
  return hash_launch(stable_name_hash(mangled_name), shape, fingerprint, code_hash);
}

size_t FunctionShape::Hash::operator()(const FunctionShape& key) const noexcept {
  return hash_launch(key.function->id.value, key.shape, 0, 0);
}

namespace {

template <class T>
std::vector<const T*> addresses_from(size_t first, const std::deque<T>& all) {
  std::vector<const T*> result;
  for (size_t i = first; i < all.size(); ++i) result.push_back(&all[i]);
  return result;
}

// All signatures of a function with one shape: one per fingerprint up to the bound, then the merged
// class for the rest.
struct ShapeEntry {
  struct Exact {
    uint64_t fingerprint;
    const Signature* signature;
  };
  std::vector<Exact> exact;
  const Signature* merged = nullptr;
  bool full = false;  // what is new goes to the merged class

  const Signature* find(uint64_t fingerprint) const {
    for (const Exact& e : exact)
      if (e.fingerprint == fingerprint) return e.signature;
    return merged;  // null until the bound was reached
  }
};

bool same_function(const FunctionInfo& a, const FunctionInfo& b) {
  return a.name == b.name && a.code_hash == b.code_hash && a.several == b.several &&
         a.parameters_known == b.parameters_known &&
         a.registers_per_thread == b.registers_per_thread &&
         a.static_shared_bytes == b.static_shared_bytes && a.parameters == b.parameters;
}

}  // namespace

struct SignatureTable::State {
  State(NeverMeasured patterns, Recorded names)
      : never_measured(std::move(patterns)), recorded(std::move(names)) {}

  const NeverMeasured never_measured;
  const Recorded recorded;
  mutable SharedMutex mutex;
  // Deques: elements stay where they are.
  std::deque<KernelFunction> functions FLOPINJ_GUARDED_BY(mutex);
  std::deque<Signature> signatures FLOPINJ_GUARDED_BY(mutex);
  std::unordered_multimap<uint64_t, const KernelFunction*> by_name_hash FLOPINJ_GUARDED_BY(mutex);
  std::unordered_map<FunctionShape, ShapeEntry, FunctionShape::Hash> by_shape
      FLOPINJ_GUARDED_BY(mutex);
  std::unordered_map<const KernelFunction*, const Signature*> overflow FLOPINJ_GUARDED_BY(mutex);
  uint64_t wanted_everywhere FLOPINJ_GUARDED_BY(mutex) = 0;
  std::atomic<uint64_t> overflowed{0};

  const KernelFunction* find_function(uint64_t hash, const FunctionInfo& info) const
      FLOPINJ_REQUIRES_SHARED(mutex) {
    const auto [first, last] = by_name_hash.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (same_function(it->second->info, info)) return it->second;
    return nullptr;
  }
  const Signature* find_signature(const FunctionShape& key, uint64_t fingerprint) const
      FLOPINJ_REQUIRES_SHARED(mutex) {
    const auto it = by_shape.find(key);
    return it == by_shape.end() ? nullptr : it->second.find(fingerprint);
  }
  // These may throw bad_alloc, leaving the tables as they were.
  const Signature* define(const KernelFunction& function, const LaunchShape& shape,
                          uint64_t fingerprint, ParameterClass parameter_class,
                          uint64_t initial_wanted) FLOPINJ_REQUIRES(mutex);
  const Signature* add(const FunctionShape& key, uint64_t fingerprint, uint64_t initial_wanted)
      FLOPINJ_REQUIRES(mutex);
  const Signature* overflow_of(const KernelFunction& function) FLOPINJ_REQUIRES(mutex);
};

const Signature* SignatureTable::State::define(const KernelFunction& function,
                                               const LaunchShape& shape, uint64_t fingerprint,
                                               ParameterClass parameter_class,
                                               uint64_t initial_wanted) {
  const auto id = static_cast<uint32_t>(signatures.size() + 1);
  Signature& s = signatures.emplace_back();
  s.id = SignatureId{id};
  s.function = &function;
  s.shape = shape;
  s.fingerprint = fingerprint;
  s.stable_hash = hash_launch(function.name_hash, shape, fingerprint, function.info.code_hash);
  s.parameter_class = parameter_class;
  if (may_be_measured(s)) s.wanted_groups.store(initial_wanted, std::memory_order_relaxed);
  return &s;
}

const Signature* SignatureTable::State::add(const FunctionShape& key, uint64_t fingerprint,
                                            uint64_t initial_wanted) {
  if (signatures.size() >= kMaxSignatures) return nullptr;
  initial_wanted |= wanted_everywhere;
  ShapeEntry& entry = by_shape[key];
  if (entry.full || key.function->info.several || entry.exact.size() >= kMaxFingerprintsPerShape) {
    entry.merged = define(*key.function, key.shape, kMergedFingerprint, ParameterClass::kMerged,
                          initial_wanted);
    return entry.merged;
  }
  entry.exact.reserve(entry.exact.size() + 1);  // may throw before anything is defined
  const bool known = key.function->info.parameters_known;
  const Signature* s =
      define(*key.function, key.shape, fingerprint,
             known ? ParameterClass::kExact : ParameterClass::kUnknown, initial_wanted);
  entry.exact.push_back({fingerprint, s});
  return s;
}

const Signature* SignatureTable::State::overflow_of(const KernelFunction& function) {
  const Signature*& s = overflow[&function];
  if (s == nullptr)
    s = define(function, LaunchShape{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0}, kMergedFingerprint,
               ParameterClass::kMerged, 0);
  return s;
}

SignatureTable::SignatureTable(NeverMeasured never_measured, Recorded recorded)
    : state_(std::make_unique<State>(std::move(never_measured), std::move(recorded))) {}
SignatureTable::~SignatureTable() = default;

const KernelFunction* SignatureTable::intern_function(const FunctionInfo& info) noexcept {
  State& state = *state_;
  const uint64_t hash = stable_name_hash(info.name);
  try {
    {
      const ReaderLock lock(state.mutex);
      if (const KernelFunction* known = state.find_function(hash, info)) return known;
    }
    const WriterLock lock(state.mutex);
    if (const KernelFunction* known = state.find_function(hash, info)) return known;
    if (state.functions.size() < kMaxFunctions) {
      const auto id = static_cast<uint32_t>(state.functions.size() + 1);
      state.functions.push_back(KernelFunction{FunctionId{id}, info, hash,
                                               state.never_measured.contains(info.name),
                                               state.recorded && !state.recorded(info.name)});
      try {
        state.by_name_hash.emplace(hash, &state.functions.back());
      } catch (...) {
        state.functions.pop_back();
        throw;
      }
      return &state.functions.back();
    }
  } catch (const std::exception&) {
  }
  state.overflowed.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

const Signature* SignatureTable::intern_signature(const KernelFunction& function,
                                                  const LaunchShape& shape, uint64_t fingerprint,
                                                  uint64_t initial_wanted) noexcept {
  State& state = *state_;
  const FunctionShape key{&function, shape};
  if (!function.info.parameters_known) fingerprint = 0;
  try {
    {
      const ReaderLock lock(state.mutex);
      if (const Signature* known = state.find_signature(key, fingerprint)) return known;
    }
    const WriterLock lock(state.mutex);
    if (const Signature* known = state.find_signature(key, fingerprint)) return known;
    if (const Signature* fresh = state.add(key, fingerprint, initial_wanted)) return fresh;
    state.overflowed.fetch_add(1, std::memory_order_relaxed);
    return state.overflow_of(function);
  } catch (const std::exception&) {
    state.overflowed.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
}

std::vector<const KernelFunction*> SignatureTable::functions_after(FunctionId after) const {
  const ReaderLock lock(state_->mutex);
  return addresses_from(after.value, state_->functions);
}

std::vector<const Signature*> SignatureTable::signatures_after(SignatureId after) const {
  const ReaderLock lock(state_->mutex);
  return addresses_from(after.value, state_->signatures);
}

const Signature* SignatureTable::find(SignatureId id) const noexcept {
  const ReaderLock lock(state_->mutex);
  return id && id.value <= state_->signatures.size() ? &state_->signatures[id.value - 1] : nullptr;
}

void SignatureTable::want_everywhere(uint64_t bits) noexcept {
  const WriterLock lock(state_->mutex);
  state_->wanted_everywhere |= bits;
  for (const Signature& s : state_->signatures)
    if (may_be_measured(s)) s.wanted_groups.fetch_or(bits, std::memory_order_relaxed);
}

void SignatureTable::want_nowhere(uint64_t bits) noexcept {
  const WriterLock lock(state_->mutex);
  state_->wanted_everywhere &= ~bits;
  for (const Signature& s : state_->signatures)
    s.wanted_groups.fetch_and(~bits, std::memory_order_relaxed);
}

void SignatureTable::merge_from_now(const Signature& s) noexcept {
  const WriterLock lock(state_->mutex);
  if (const auto it = state_->by_shape.find({s.function, s.shape}); it != state_->by_shape.end())
    it->second.full = true;
}

uint64_t SignatureTable::overflowed() const {
  return state_->overflowed.load(std::memory_order_relaxed);
}

}  // namespace flopinj
