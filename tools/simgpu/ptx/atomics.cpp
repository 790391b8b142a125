#include <atomic>
#include <thread>
#include <type_traits>

#include "ptx/instructions.h"
#include "ptx/lanes.h"
#include "ptx/narrow.h"

namespace simgpu::ptx {
namespace {

// A kernel that waits for another one reads over and over: where there are fewer processors than
// kernels, the other one is to run.
void after_strong_load() {
  constexpr uint32_t kLoads = 64;
  thread_local uint32_t loads = 0;
  if (++loads % kLoads == 0) std::this_thread::yield();
}

// f(lane, place, element) for each element of the active lanes.
template <class T, class F>
void for_each_element(Warp& warp, const Code& code, uint32_t active, Access access, F f) {
  const auto bytes = static_cast<uint32_t>(sizeof(T) * code.list_size);
  const LaneAddresses lanes = addresses(warp, code, active, bytes);
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  for_each_lane(active, [&](uint32_t l) {
    auto* const elements =
        reinterpret_cast<T*>(at_address(warp, l, lanes.at[l], bytes, code.space, access));
    for (uint32_t i = 0; i < code.list_size; ++i) f(l, places[i], elements + i);
  });
}

template <class T>
void strong_load(Warp& warp, const Code& code, uint32_t active) {
  for_each_element<T>(warp, code, active, Access::kRead, [&](uint32_t l, uint32_t place, T* from) {
    warp.put(place, code.wide_d, l, static_cast<uint64_t>(__atomic_load_n(from, __ATOMIC_ACQUIRE)));
  });
  after_strong_load();
}

template <class T>
void strong_store(Warp& warp, const Code& code, uint32_t active) {
  for_each_element<T>(warp, code, active, Access::kWrite, [&](uint32_t l, uint32_t place, T* to) {
    __atomic_store_n(to, static_cast<T>(warp.get(place, code.wide_d, l)), __ATOMIC_RELEASE);
  });
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;

// In one step as other threads of the process see it: kernels of several devices and the host may
// use the same memory.
template <class T, class Op>
void atomic(Warp& warp, const Code& code, uint32_t active) {
  using Bits = BitsOf<T>;
  using Stored = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const LaneAddresses lanes = addresses(warp, code, active, sizeof(T));
  const auto* const b = reinterpret_cast<const Stored*>(warp.frame + code.b);
  const auto* const c = reinterpret_cast<const Stored*>(warp.frame + code.c);
  auto* const d = reinterpret_cast<Stored*>(warp.frame + code.d);
  for_each_lane(active, [&](uint32_t l) {
    std::byte* const memory =
        at_address(warp, l, lanes.at[l], sizeof(T), code.space, Access::kBoth);
    const std::atomic_ref<Bits> word(*reinterpret_cast<Bits*>(memory));
    Bits before = word.load();
    for (;;) {
      const T after = Op::go(std::bit_cast<T>(before), std::bit_cast<T>(static_cast<Bits>(b[l])),
                             std::bit_cast<T>(static_cast<Bits>(c[l])));
      if (word.compare_exchange_weak(before, std::bit_cast<Bits>(after))) break;
    }
    if (code.option == 1) d[l] = before;
  });
}

struct HalfValue {
  uint16_t bits;
};
struct BfloatValue {
  uint16_t bits;
};
struct HalfPair {
  uint32_t bits;
};
struct BfloatPair {
  uint32_t bits;
};

struct AtomicAdd {
  template <class T>
  static T go(T a, T b, T) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
  static HalfValue go(HalfValue a, HalfValue b, HalfValue) {
    return {static_cast<uint16_t>(
        Half::encode(double{half_to_float(a.bits)} + double{half_to_float(b.bits)}))};
  }
  static BfloatValue go(BfloatValue a, BfloatValue b, BfloatValue) {
    return {static_cast<uint16_t>(
        Bfloat::encode(double{bfloat_to_float(a.bits)} + double{bfloat_to_float(b.bits)}))};
  }
  template <class Pair, class Part>
  static Pair both(Pair a, Pair b) {
    const auto part = [](uint32_t bits, int shift) {
      return Part{static_cast<uint16_t>(bits >> shift)};
    };
    const Part low = go(part(a.bits, 0), part(b.bits, 0), Part{});
    const Part high = go(part(a.bits, 16), part(b.bits, 16), Part{});
    return {uint32_t{low.bits} | uint32_t{high.bits} << 16};
  }
  static HalfPair go(HalfPair a, HalfPair b, HalfPair) { return both<HalfPair, HalfValue>(a, b); }
  static BfloatPair go(BfloatPair a, BfloatPair b, BfloatPair) {
    return both<BfloatPair, BfloatValue>(a, b);
  }
};
#define SIMGPU_ATOMIC(name, expression)                                             \
  struct name {                                                                     \
    template <class T>                                                              \
    static T go([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) { \
      return static_cast<T>(expression);                                            \
    }                                                                               \
  };
SIMGPU_ATOMIC(AtomicMin, b < a ? b : a)
SIMGPU_ATOMIC(AtomicMax, a < b ? b : a)
SIMGPU_ATOMIC(AtomicAnd, a& b)
SIMGPU_ATOMIC(AtomicOr, a | b)
SIMGPU_ATOMIC(AtomicXor, a ^ b)
SIMGPU_ATOMIC(AtomicExchange, b)
SIMGPU_ATOMIC(AtomicCompare, a == b ? c : a)
SIMGPU_ATOMIC(AtomicIncrement, a >= b ? 0 : a + 1)
SIMGPU_ATOMIC(AtomicDecrement, a == 0 || a > b ? b : a - 1)
#undef SIMGPU_ATOMIC

}  // namespace

Handler strong_load_handler(const Type& type) {
  const bool is_signed = type.kind == Type::Kind::kSigned;
  switch (type.bytes) {
    case 1:
      return is_signed ? &strong_load<int8_t> : &strong_load<uint8_t>;
    case 2:
      return is_signed ? &strong_load<int16_t> : &strong_load<uint16_t>;
    case 4:
      return is_signed ? &strong_load<int32_t> : &strong_load<uint32_t>;
    default:
      return &strong_load<uint64_t>;
  }
}
Handler strong_store_handler(const Type& type) {
  switch (type.bytes) {
    case 1:
      return &strong_store<uint8_t>;
    case 2:
      return &strong_store<uint16_t>;
    case 4:
      return &strong_store<uint32_t>;
    default:
      return &strong_store<uint64_t>;
  }
}

Handler atomic_handler(const std::string& operation, const Type& type) {
  struct RowOfAtomics {
    std::string_view operation, type;
    Handler handler;
  };
  static constexpr RowOfAtomics kRows[] = {
      {"add", "u32", &atomic<uint32_t, AtomicAdd>},
      {"add", "s32", &atomic<int32_t, AtomicAdd>},
      {"add", "u64", &atomic<uint64_t, AtomicAdd>},
      {"add", "s64", &atomic<int64_t, AtomicAdd>},
      {"add", "f32", &atomic<float, AtomicAdd>},
      {"add", "f64", &atomic<double, AtomicAdd>},
      {"add", "f16", &atomic<HalfValue, AtomicAdd>},
      {"add", "bf16", &atomic<BfloatValue, AtomicAdd>},
      {"add", "f16x2", &atomic<HalfPair, AtomicAdd>},
      {"add", "bf16x2", &atomic<BfloatPair, AtomicAdd>},
      {"min", "u32", &atomic<uint32_t, AtomicMin>},
      {"min", "s32", &atomic<int32_t, AtomicMin>},
      {"min", "u64", &atomic<uint64_t, AtomicMin>},
      {"min", "s64", &atomic<int64_t, AtomicMin>},
      {"max", "u32", &atomic<uint32_t, AtomicMax>},
      {"max", "s32", &atomic<int32_t, AtomicMax>},
      {"max", "u64", &atomic<uint64_t, AtomicMax>},
      {"max", "s64", &atomic<int64_t, AtomicMax>},
      {"and", "b32", &atomic<uint32_t, AtomicAnd>},
      {"and", "b64", &atomic<uint64_t, AtomicAnd>},
      {"or", "b32", &atomic<uint32_t, AtomicOr>},
      {"or", "b64", &atomic<uint64_t, AtomicOr>},
      {"xor", "b32", &atomic<uint32_t, AtomicXor>},
      {"xor", "b64", &atomic<uint64_t, AtomicXor>},
      {"exch", "b32", &atomic<uint32_t, AtomicExchange>},
      {"exch", "b64", &atomic<uint64_t, AtomicExchange>},
      {"cas", "b16", &atomic<uint16_t, AtomicCompare>},
      {"cas", "b32", &atomic<uint32_t, AtomicCompare>},
      {"cas", "b64", &atomic<uint64_t, AtomicCompare>},
      {"inc", "u32", &atomic<uint32_t, AtomicIncrement>},
      {"dec", "u32", &atomic<uint32_t, AtomicDecrement>},
  };
  for (const RowOfAtomics& row : kRows)
    if (row.operation == operation && row.type == type.name) return row.handler;
  return nullptr;
}

}  // namespace simgpu::ptx
