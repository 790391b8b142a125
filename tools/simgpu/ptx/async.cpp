// Copies that go on while others run, and the objects that threads wait for them at. Here a copy
// is done when it is asked for: a program may rely on it at its wait only.
#include <algorithm>
#include <cstring>

#include "ptx/instructions.h"

namespace simgpu::ptx {
namespace {

// mbarrier: its phase ends when all that are expected have arrived, and all bytes that were
// announced have come. The bits are the phase, bytes to come, arrivals of a phase, and arrivals to
// come.
struct BarrierObject {
  uint64_t bits = 0;
  uint32_t pending() const { return static_cast<uint32_t>(bits & 0xf'ffff); }
  uint32_t expected() const { return static_cast<uint32_t>(bits >> 20 & 0xf'ffff); }
  int32_t bytes() const { return static_cast<int32_t>(bits >> 40 << 10) >> 10; }  // of 22 bits
  uint64_t phase() const { return bits >> 63; }
  void set(uint64_t phase, uint32_t expected, uint32_t pending, int32_t bytes) {
    bits = phase << 63 | (uint64_t{static_cast<uint32_t>(bytes)} & 0x3f'ffff) << 40 |
           uint64_t{expected} << 20 | pending;
    if (pending == 0 && bytes == 0 && expected != 0) set(phase ^ 1, expected, expected, 0);
  }
  void arrive(uint32_t count, int32_t announced, bool drops) {
    const uint32_t left = pending() - std::min(pending(), count);
    set(phase(), expected() - (drops ? std::min(expected(), count) : 0), left, bytes() + announced);
  }
  void come(int32_t count) { set(phase(), expected(), pending(), bytes() - count); }
};

template <class F>
void change(Warp& warp, uint32_t lane, uint64_t address, Space space, F f) {
  std::byte* const memory = at_address(warp, lane, address, 8, space, Access::kBoth);
  BarrierObject object;
  std::memcpy(&object, memory, 8);
  f(object);
  std::memcpy(memory, &object, 8);
}

template <class F>
void each_object(Warp& warp, const Code& code, uint32_t active, F f) {
  const LaneAddresses lanes = addresses(warp, code, active, 8);
  for_each_lane(active, [&](uint32_t l) {
    change(warp, l, lanes.at[l], code.space, [&](BarrierObject& object) { f(l, object); });
  });
}

void init(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t* const count = warp.words(code.b);
  each_object(warp, code, active, [&](uint32_t l, BarrierObject& object) {
    object.set(0, count[l] & 0xf'ffff, count[l] & 0xf'ffff, 0);
  });
}
template <bool announces, bool drops>
void arrive(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t* const count = warp.words(code.b);
  uint64_t* const state = warp.longs(code.d);
  each_object(warp, code, active, [&](uint32_t l, BarrierObject& object) {
    state[l] = object.bits;
    object.arrive(announces ? 1 : count[l], announces ? static_cast<int32_t>(count[l]) : 0, drops);
  });
}
template <bool announces>
void account(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t* const count = warp.words(code.b);
  each_object(warp, code, active, [&](uint32_t l, BarrierObject& object) {
    const auto bytes = static_cast<int32_t>(count[l]);
    object.come(announces ? -bytes : bytes);
  });
}
template <bool parity>
void test(Warp& warp, const Code& code, uint32_t active) {
  uint32_t& d = *warp.words(code.d);
  each_object(warp, code, active, [&](uint32_t l, BarrierObject& object) {
    const uint64_t waited_for = parity ? warp.words(code.b)[l] & 1 : warp.longs(code.b)[l] >> 63;
    const bool done = object.phase() != waited_for;
    set_bits(d, 1U << l, static_cast<uint32_t>(done) << l);
  });
}

template <bool to_shared>
void copy_bulk(Warp& warp, const Code& code, uint32_t active) {
  constexpr uint32_t kAlignment = 16;
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  for_each_lane(active, [&](uint32_t l) {
    const uint64_t to = warp.longs(places[0])[l], from = warp.longs(places[1])[l];
    const uint32_t bytes = warp.words(places[2])[l];
    if ((to | from | bytes) % kAlignment != 0)
      throw Fault(CUDA_ERROR_MISALIGNED_ADDRESS,
                  "a bulk copy has an address or a size that is no multiple of 16");
    const auto copy = [&](uint64_t target, uint64_t barrier) {
      if (bytes != 0)
        std::memcpy(at_address(warp, l, target, bytes, to_shared ? Space::kShared : Space::kGlobal,
                               Access::kWrite),
                    at_address(warp, l, from, bytes, code.space, Access::kRead), bytes);
      if constexpr (to_shared)
        change(warp, l, barrier, Space::kShared,
               [&](BarrierObject& object) { object.come(static_cast<int32_t>(bytes)); });
    };
    const uint64_t barrier = to_shared ? warp.longs(places[3])[l] : 0;
    if (code.list_size < 5) return copy(to, barrier);
    const uint64_t offset = (uint64_t{1} << kRankShift) - 1;
    for_each_lane(warp.words(places[4])[l] & 0xffff, [&](uint32_t rank) {
      const uint64_t there = uint64_t{rank + 1} << kRankShift;
      copy((to & offset) | there, (barrier & offset) | there);
    });
  });
}

}  // namespace

Handler bulk_copy(bool to_shared) { return to_shared ? &copy_bulk<true> : &copy_bulk<false>; }

void copy_async(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t bytes = code.option;
  const LaneAddresses to = addresses(warp, code, active, bytes);
  uint64_t from[kLanes];
  const std::vector<uint32_t>& lists = warp.routine().lists;
  const uint64_t offset = lists[code.list] | uint64_t{lists[code.list + 1]} << 32;
  for (uint32_t l = 0; l < kLanes; ++l) from[l] = warp.get(code.b, code.wide_b, l) + offset;
  for_each_lane(active, [&](uint32_t l) { check_alignment(from[l], bytes); });
  const uint32_t* const read = warp.words(code.c);
  for_each_lane(active, [&](uint32_t l) {
    std::byte* const target = at_address(warp, l, to.at[l], bytes, Space::kShared, Access::kWrite);
    std::memset(target, 0, bytes);
    if (const uint32_t size = std::min(read[l], bytes); size != 0)
      std::memcpy(target, at_address(warp, l, from[l], size, Space::kGlobal, Access::kRead), size);
  });
}

Handler barrier_object(const std::string& operation) {
  struct Operation {
    std::string_view operation;
    Handler handler;
  };
  static constexpr Operation kRows[] = {
      {"init", &init},
      {"inval", &nothing},
      {"arrive", &arrive<false, false>},
      {"arrive.noComplete", &arrive<false, false>},
      {"arrive.expect_tx", &arrive<true, false>},
      {"arrive_drop", &arrive<false, true>},
      {"arrive_drop.noComplete", &arrive<false, true>},
      {"arrive_drop.expect_tx", &arrive<true, true>},
      {"expect_tx", &account<true>},
      {"complete_tx", &account<false>},
      {"test_wait", &test<false>},
      {"test_wait.parity", &test<true>},
      {"try_wait", &test<false>},
      {"try_wait.parity", &test<true>},
  };
  for (const Operation& row : kRows)
    if (row.operation == operation) return row.handler;
  return nullptr;
}

}  // namespace simgpu::ptx
