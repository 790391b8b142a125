#include <algorithm>
#include <type_traits>

#include "ptx/instructions.h"

namespace simgpu::ptx {
namespace {

template <class T, bool all>
void match(Warp& warp, const Code& code, uint32_t active) {
  const T* const a = reinterpret_cast<const T*>(warp.frame + code.a);
  uint32_t* const d = warp.words(code.d);
  uint32_t& same = *warp.words(code.e);
  for_each_lane(active, [&](uint32_t l) {
    uint32_t equal = 0;
    for (uint32_t other = 0; other < kLanes; ++other)
      if ((active >> other & 1) != 0 && a[other] == a[l]) equal |= 1U << other;
    d[l] = all && equal != active ? 0 : equal;
    set_bits(same, 1U << l, static_cast<uint32_t>(equal == active) << l);
  });
}

template <class T, class Op>
void reduce(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t* const a = warp.words(code.a);
  T result{};
  bool any = false;
  for_each_lane(active, [&](uint32_t l) {
    result = any ? Op::go(result, static_cast<T>(a[l])) : static_cast<T>(a[l]);
    any = true;
  });
  for_each_lane(active, [&](uint32_t l) { warp.words(code.d)[l] = static_cast<uint32_t>(result); });
}
#define SIMGPU_REDUCTION(name, expression) \
  struct name {                            \
    template <class T>                     \
    static T go(T a, T b) {                \
      return static_cast<T>(expression);   \
    }                                      \
  };
SIMGPU_REDUCTION(Sum, static_cast<uint32_t>(a) + static_cast<uint32_t>(b))
SIMGPU_REDUCTION(Least, std::min(a, b))
SIMGPU_REDUCTION(Most, std::max(a, b))
SIMGPU_REDUCTION(Both, a& b)
SIMGPU_REDUCTION(Either, a | b)
SIMGPU_REDUCTION(Odd, a ^ b)
#undef SIMGPU_REDUCTION

}  // namespace

// PTX ISA, 9.7.9.6: c has a clamp in bits 0-4 and a mask of segments in bits 8-12.
void shuffle(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t *const a = warp.words(code.a), *const b = warp.words(code.b),
                        *const c = warp.words(code.c);
  uint32_t taken[kLanes];
  std::copy_n(a, kLanes, taken);
  uint32_t* const d = warp.words(code.d);
  uint32_t& in_range = *warp.words(code.e);
  for_each_lane(active, [&](uint32_t l) {
    const uint32_t step = b[l] & 31, clamp = c[l] & 31, segments = c[l] >> 8 & 31;
    const uint32_t most = (l & segments) | (clamp & ~segments), least = l & segments;
    uint32_t from = 0;
    bool valid = false;
    switch (static_cast<Shuffle>(code.option)) {
      case Shuffle::kUp:
        from = l - step;
        valid = static_cast<int>(l) - static_cast<int>(step) >= static_cast<int>(most);
        break;
      case Shuffle::kDown:
        from = l + step;
        valid = from <= most;
        break;
      case Shuffle::kBfly:
        from = l ^ step;
        valid = from <= most;
        break;
      case Shuffle::kIdx:
        from = least | (step & ~segments);
        valid = from <= most;
        break;
    }
    if (!valid) from = l;
    d[l] = taken[from & 31];
    set_bits(in_range, 1U << l, static_cast<uint32_t>(valid) << l);
  });
}

void vote(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t votes = *warp.words(code.a) & active;
  const auto kind = static_cast<Vote>(code.option);
  if (kind == Vote::kBallot) {
    for_each_lane(active, [&](uint32_t l) { warp.words(code.d)[l] = votes; });
    return;
  }
  const bool result = kind == Vote::kAny   ? votes != 0
                      : kind == Vote::kAll ? votes == active
                                           : votes == active || votes == 0;
  uint32_t& d = *warp.words(code.d);
  set_bits(d, active, result ? active : 0);
}

Handler match_handler(const std::string& which, const Type& type) {
  if (type.bytes == 4) return which == "all" ? &match<uint32_t, true> : &match<uint32_t, false>;
  if (type.bytes == 8) return which == "all" ? &match<uint64_t, true> : &match<uint64_t, false>;
  return nullptr;
}

Handler reduction_handler(const std::string& operation, const Type& type) {
  const bool is_signed = type.kind == Type::Kind::kSigned;
  if (type.bytes != 4 || type.kind == Type::Kind::kFloat) return nullptr;
  if (operation == "add") return &reduce<uint32_t, Sum>;
  if (operation == "min") return is_signed ? &reduce<int32_t, Least> : &reduce<uint32_t, Least>;
  if (operation == "max") return is_signed ? &reduce<int32_t, Most> : &reduce<uint32_t, Most>;
  if (operation == "and") return &reduce<uint32_t, Both>;
  if (operation == "or") return &reduce<uint32_t, Either>;
  if (operation == "xor") return &reduce<uint32_t, Odd>;
  return nullptr;
}

void active_mask(Warp& warp, const Code& code, uint32_t active) {
  for_each_lane(active, [&](uint32_t l) { warp.words(code.d)[l] = active; });
}

void elect(Warp& warp, const Code& code, uint32_t active) {
  const auto leader = static_cast<uint32_t>(__builtin_ctz(active));
  for_each_lane(active, [&](uint32_t l) { warp.words(code.d)[l] = leader; });
  uint32_t& is_leader = *warp.words(code.e);
  set_bits(is_leader, active, 1U << leader);
}

void arrive_in_cluster(Warp& warp, const Code&, uint32_t active) {
  Cluster& cluster = *warp.block->cluster;
  cluster.uses_barrier = true;
  warp.arrived |= active;
  warp.arrived_in = cluster.phase;
}

void nothing(Warp&, const Code&, uint32_t) {}

}  // namespace simgpu::ptx
