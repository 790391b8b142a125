#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "ptx/instructions.h"
#include "ptx/lanes.h"

// This file is built without the thread sanitizer, which would take most of the time. It is shown
// one byte of an access of a warp, so that a kernel beside a copy or a kernel that it should wait
// for is still found.
#ifdef SIMGPU_WITNESSED
extern "C" void __tsan_read1(void* at);
extern "C" void __tsan_write1(void* at);
#define SIMGPU_WITNESS(access, at) \
  if ((at) != nullptr) __tsan_##access##1(const_cast<std::byte*>(at))
#else
#define SIMGPU_WITNESS(access, at) static_cast<void>(0)
#endif

namespace simgpu::ptx {

void check_alignment(uint64_t bits, uint64_t bytes) {
  if ((bits & (bytes - 1)) != 0)
    throw Fault(CUDA_ERROR_MISALIGNED_ADDRESS,
                "an address is no multiple of " + std::to_string(bytes));
}

namespace {

// Of which `bytes` are used: their number is a power of two.
void find_addresses(const Warp& warp, const Code& code, uint32_t active, uint32_t bytes,
                    LaneAddresses& out) {
  static const AddressLoop loop = address_loop();
  loop(warp, code, active, bytes, out);
  check_alignment(out.bits, bytes);
}

// One by one, whatever their pattern.
void spread(LaneAddresses& lanes, uint32_t active, uint32_t bytes) {
  if (lanes.pattern == LaneAddresses::Pattern::kAny) return;
  const uint64_t step = lanes.pattern == LaneAddresses::Pattern::kRow ? bytes : 0;
  uint64_t at = lanes.least - step * static_cast<uint64_t>(__builtin_ctz(active));
  for (uint32_t l = 0; l < kLanes; ++l, at += step) lanes.at[l] = at;
  lanes.begins = active;
}

std::string hexadecimal(uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

Space space_at(uint64_t address) {
  switch (address >> kWindowShift) {
    case kSharedWindow >> kWindowShift:
      return Space::kShared;
    case kLocalWindow >> kWindowShift:
      return Space::kLocal;
    case kParamWindow >> kWindowShift:
      return Space::kParam;
    default:
      return Space::kGlobal;
  }
}
constexpr uint64_t kOffset = (uint64_t{1} << kWindowShift) - 1;
constexpr uint64_t kMostRanks = 256;  // what an address of 32 bits has room for

// Whether [offset, offset + bytes) is below `size`, whatever the sum.
bool fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}
std::byte* within(std::byte* memory, uint64_t size, uint64_t offset, uint64_t bytes,
                  const char* what) {
  if (!fits(offset, bytes, size))
    throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, hexadecimal(offset) + " is not in the " +
                                                std::to_string(size) + " bytes of " + what);
  return memory + offset;
}

// The memory of the first active lane where it is all that they use, or where theirs lie behind it
// in a row; null where each has to be looked at.
std::byte* in_one_piece(Warp& warp, const Code& code, const LaneAddresses& lanes, uint32_t active,
                        uint32_t bytes, Access access) {
  using Pattern = LaneAddresses::Pattern;
  const auto first = static_cast<uint32_t>(__builtin_ctz(active));
  const uint32_t from_first = active >> first;
  if (lanes.pattern == Pattern::kAny) return nullptr;
  if (lanes.pattern == Pattern::kRow && (from_first & (from_first + 1)) != 0) return nullptr;
  Space space = code.space;
  if (space == Space::kGeneric && lanes.least >> kWindowShift == lanes.most >> kWindowShift)
    space = space_at(lanes.least);
  if (space == Space::kLocal || space == Space::kGeneric) return nullptr;  // each lane has its own
  if (lanes.pattern == Pattern::kRow && space == Space::kGlobal) {
    // Where it is in no allocation the lane is to be found.
    warp.memory->check(lanes.least, bytes);
    if (!warp.memory->covers(lanes.least, lanes.most + bytes)) return nullptr;
  } else if (lanes.pattern == Pattern::kRow &&
             !(space == Space::kShared &&
               fits(lanes.most & kOffset, bytes, warp.block->shared.size()))) {
    return nullptr;
  }
  return at_address(warp, first, lanes.least, lanes.most + bytes - lanes.least, code.space, access);
}

// Device memory: checked, and counted as DRAM's.
void use_global(GlobalMemory& memory, const LaneAddresses& lanes, uint32_t active, uint32_t bytes,
                Access access) {
  if (!memory.covers(lanes.least, lanes.most + bytes))
    for_each_lane(active, [&](uint32_t l) { memory.check(lanes.at[l], bytes); });
  // Aligned, so that it is in one sector where it is no larger.
  for_each_lane(bytes <= kSectorBytes ? lanes.begins : active, [&](uint32_t l) {
    access == Access::kWrite ? memory.written(lanes.at[l], bytes) : memory.read(lanes.at[l], bytes);
  });
}

// Makes of addresses what is to be added to the pointer that comes back. `piece`: in_one_piece's.
std::byte* resolve(Warp& warp, const Code& code, LaneAddresses& lanes, uint32_t active,
                   uint32_t bytes, Access access, const std::byte* piece) {
  if (piece != nullptr) lanes.least = reinterpret_cast<uint64_t>(piece);
  spread(lanes, active, bytes);
  if (piece != nullptr) return nullptr;
  Space space = code.space;
  uint64_t window = 0;
  if (space == Space::kGeneric && lanes.least >> kWindowShift == lanes.most >> kWindowShift) {
    space = space_at(lanes.least);
    if (space != Space::kGlobal) window = lanes.least & ~kOffset;
  }
  if (space == Space::kConst) {  // has a cache of its own: no DRAM is counted
    for_each_lane(active, [&](uint32_t l) { warp.memory->check(lanes.at[l], bytes); });
    return nullptr;
  }
  if (space == Space::kGlobal && lanes.most >> kWindowShift == 0) {
    use_global(*warp.memory, lanes, active, bytes, access);
    return nullptr;
  }
  std::vector<std::byte>& shared = warp.block->shared;
  if (space == Space::kShared && fits(lanes.most - window, bytes, shared.size())) {
    for (uint64_t& one : lanes.at) one -= window;
    return shared.data();
  }
  if (space == Space::kLocal && fits(lanes.most - window, bytes, warp.local_bytes)) {
    for (uint32_t l = 0; l < kLanes; ++l) lanes.at[l] += uint64_t{warp.local_bytes} * l - window;
    return warp.local.data();
  }
  for_each_lane(active, [&](uint32_t l) {
    lanes.at[l] =
        reinterpret_cast<uint64_t>(at_address(warp, l, lanes.at[l], bytes, code.space, access));
  });
  return nullptr;
}

template <class T>
using Wider = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;

// to[l] = f(l) for the active lanes.
template <class Place, class F>
void set_lanes(Place* to, uint32_t active, F f) {
  if (active == kAllLanes)
    for (uint32_t l = 0; l < kLanes; ++l) to[l] = static_cast<Place>(f(l));
  else
    for_each_lane(active, [&](uint32_t l) { to[l] = static_cast<Place>(f(l)); });
}

template <class T>
void load(Warp& warp, const Code& code, uint32_t active) {
  using Pattern = LaneAddresses::Pattern;
  LaneAddresses lanes;
  const auto bytes = static_cast<uint32_t>(sizeof(T) * code.list_size);
  find_addresses(warp, code, active, bytes, lanes);
  const std::byte* from = in_one_piece(warp, code, lanes, active, bytes, Access::kRead);
  SIMGPU_WITNESS(read, from);
  const bool one = from != nullptr && lanes.pattern == Pattern::kOne;
  const bool row = from != nullptr && code.list_size == 1 && lanes.pattern == Pattern::kRow;
  if (row) {
    from -= sizeof(T) * static_cast<uint64_t>(__builtin_ctz(active));
  } else if (from == nullptr || !one) {
    from = resolve(warp, code, lanes, active, bytes, Access::kRead, from);
  }
  const auto value_at = [](const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return static_cast<Wider<T>>(value);
  };
  const auto fill = [&](auto* to, const std::byte* part) {
    if (one) {
      const Wider<T> value = value_at(part);
      set_lanes(to, active, [value](uint32_t) { return value; });
    } else if (row) {
      set_lanes(to, active, [&](uint32_t l) { return value_at(part + sizeof(T) * l); });
    } else {
      set_lanes(to, active, [&](uint32_t l) { return value_at(part + lanes.at[l]); });
    }
  };
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  for (uint32_t i = 0; i < code.list_size; ++i) {
    if (code.wide_d)
      fill(warp.longs(places[i]), from + sizeof(T) * i);
    else
      fill(warp.words(places[i]), from + sizeof(T) * i);
  }
}

template <class T>
void store(Warp& warp, const Code& code, uint32_t active) {
  LaneAddresses lanes;
  const auto bytes = static_cast<uint32_t>(sizeof(T) * code.list_size);
  find_addresses(warp, code, active, bytes, lanes);
  std::byte* const piece = in_one_piece(warp, code, lanes, active, bytes, Access::kWrite);
  SIMGPU_WITNESS(write, piece);
  std::byte* const to = resolve(warp, code, lanes, active, bytes, Access::kWrite, piece);
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  for (uint32_t i = 0; i < code.list_size; ++i)
    for_each_lane(active, [&](uint32_t l) {
      const auto value = static_cast<T>(warp.get(places[i], code.wide_d, l));
      std::memcpy(to + lanes.at[l] + sizeof(T) * i, &value, sizeof(T));
    });
}

void load_bytes(uint64_t& value, const std::byte* from, uint32_t bytes, bool is_signed) {
  value = 0;
  std::memcpy(&value, from, bytes);
  if (is_signed && bytes < 8) {
    const uint32_t shift = 64 - 8 * bytes;
    value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
  }
}

// --- what device code calls

// A parameter of a call: `lane`'s part of the place.
uint64_t argument(const Warp& warp, const Code& code, uint32_t index, uint32_t lane) {
  const uint32_t place = warp.routine().lists[code.list + index];
  return reinterpret_cast<const uint64_t*>(warp.frame + place)[lane];
}
std::string text_at(Warp& warp, uint32_t lane, uint64_t address) {
  std::string text;
  for (; text.size() < 4096; ++address) {
    const char c =
        static_cast<char>(*at_address(warp, lane, address, 1, Space::kGeneric, Access::kRead));
    if (c == '\0') break;
    text += c;
  }
  return text;
}

// printf's conversions, each by the C library's, with its argument from the buffer.
void print(Warp& warp, const Code& code, uint32_t active) {
  for_each_lane(active, [&](uint32_t l) {
    const std::string format = text_at(warp, l, argument(warp, code, 1, l));
    uint64_t at = argument(warp, code, 2, l);
    const auto next = [&](uint64_t bytes) {
      at = (at + bytes - 1) / bytes * bytes;
      uint64_t value = 0;
      std::memcpy(&value, at_address(warp, l, at, bytes, Space::kGeneric, Access::kRead), bytes);
      at += bytes;
      return value;
    };
    std::string out;
    const auto put = [&](const std::string& conversion, auto value) {
      constexpr int kMost = 1 << 16;
      const int length = std::snprintf(nullptr, 0, conversion.c_str(), value);
      std::string text(static_cast<size_t>(std::clamp(length, 0, kMost)) + 1, '\0');
      std::snprintf(text.data(), text.size(), conversion.c_str(), value);
      out.append(text, 0, text.size() - 1);
    };
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%') {
        out += format[i];
        continue;
      }
      std::string one = "%";
      bool is_long = false;
      for (++i; i < format.size() && std::strchr("-+ #0123456789.*hlzjt", format[i]) != nullptr;
           ++i) {
        if (format[i] == '*') {
          one += std::to_string(static_cast<int32_t>(next(4)));
        } else if (std::strchr("hlzjt", format[i]) != nullptr) {
          is_long |= format[i] != 'h';
        } else {
          one += format[i];
        }
      }
      if (i >= format.size() || one.size() > 32) break;
      const char conversion = format[i];
      if (conversion == '%') {
        out += '%';
        continue;
      }
      if (std::strchr("diouxXc", conversion) != nullptr) {
        const uint64_t bits = next(is_long ? 8 : 4);
        if (conversion == 'c')
          put(one + "c", static_cast<int>(bits));
        else if (is_long || std::strchr("di", conversion) == nullptr)
          put(one + "ll" + conversion, static_cast<long long>(bits));
        else
          put(one + conversion, static_cast<int32_t>(bits));
      } else if (std::strchr("eEfFgGaA", conversion) != nullptr) {
        put(one + conversion, std::bit_cast<double>(next(8)));
      } else if (conversion == 's') {
        put(one + "s", text_at(warp, l, next(8)).c_str());
      } else if (conversion == 'p') {
        put(one + "p", reinterpret_cast<void*>(next(8)));
      } else {
        break;
      }
    }
    if (warp.block->launch->print) warp.block->launch->print(out);
    reinterpret_cast<uint64_t*>(warp.frame + warp.routine().lists[code.list])[l] = 1;
  });
}

void failed_assertion(Warp& warp, const Code& code, uint32_t active) {
  const auto l = static_cast<uint32_t>(__builtin_ctz(active));
  throw Fault(CUDA_ERROR_ASSERT,
              text_at(warp, l, argument(warp, code, 1, l)) + ":" +
                  std::to_string(static_cast<uint32_t>(argument(warp, code, 2, l))) +
                  ": assertion '" + text_at(warp, l, argument(warp, code, 0, l)) + "' failed");
}

void allocate(Warp& warp, const Code& code, uint32_t active) {
  const Launch& launch = *warp.block->launch;
  auto* const given = reinterpret_cast<uint64_t*>(warp.frame + warp.routine().lists[code.list]);
  for_each_lane(active, [&](uint32_t l) {
    given[l] = launch.allocate ? launch.allocate(argument(warp, code, 1, l)) : 0;
  });
}

void set_condition(Warp& warp, const Code& code, uint32_t active) {
  const Launch& launch = *warp.block->launch;
  if (!launch.set_condition) return;
  for_each_lane(active, [&](uint32_t l) {
    launch.set_condition(argument(warp, code, 0, l),
                         static_cast<uint32_t>(argument(warp, code, 1, l)));
  });
}

void give_back(Warp& warp, const Code& code, uint32_t active) {
  const Launch& launch = *warp.block->launch;
  for_each_lane(active, [&](uint32_t l) {
    const uint64_t address = argument(warp, code, 0, l);
    if (address != 0 && (!launch.give_back || !launch.give_back(address)))
      throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, hexadecimal(address) + " is not malloc's");
  });
  warp.memory->forget();
}

}  // namespace

LaneAddresses addresses(const Warp& warp, const Code& code, uint32_t active, uint32_t bytes) {
  LaneAddresses lanes;
  find_addresses(warp, code, active, bytes, lanes);
  spread(lanes, active, bytes);
  return lanes;
}

std::byte* at_address(Warp& warp, uint32_t lane, uint64_t address, uint64_t bytes, Space space,
                      Access access) {
  if (space == Space::kGeneric) {
    space = space_at(address);
    if (space != Space::kGlobal) address &= kOffset;
  }
  switch (space) {
    case Space::kShared: {
      Block* block = warp.block;
      if (const uint64_t rank = address >> kRankShift; rank != 0 && rank < kMostRanks) {
        const std::vector<Block*>& blocks = block->cluster->blocks;
        block = rank <= blocks.size() ? blocks[rank - 1] : nullptr;
        if (block == nullptr)
          throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, hexadecimal(address) +
                                                      " is in a block of the cluster that is not "
                                                      "there, or has ended");
        address &= (uint64_t{1} << kRankShift) - 1;
      }
      return within(block->shared.data(), block->shared.size(), address, bytes, "shared memory");
    }
    case Space::kLocal:
      return within(warp.local.data() + size_t{warp.local_bytes} * lane, warp.local_bytes, address,
                    bytes, "local memory");
    case Space::kParam: {
      const auto parameters = warp.block->launch->parameters;
      if (access != Access::kRead)
        throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, "parameters cannot be written");
      return within(const_cast<std::byte*>(parameters.data()), parameters.size(), address, bytes,
                    "parameters");
    }
    case Space::kConst:  // has a cache of its own: no DRAM is counted
      warp.memory->check(address, bytes);
      return reinterpret_cast<std::byte*>(address);
    default:
      warp.memory->check(address, bytes);
      if (access != Access::kWrite) warp.memory->read(address, static_cast<uint32_t>(bytes));
      if (access != Access::kRead) warp.memory->written(address, static_cast<uint32_t>(bytes));
      return reinterpret_cast<std::byte*>(address);
  }
}

Handler load_handler(const Type& type) {
  const bool is_signed = type.kind == Type::Kind::kSigned;
  switch (type.bytes) {
    case 1:
      return is_signed ? &load<int8_t> : &load<uint8_t>;
    case 2:
      return is_signed ? &load<int16_t> : &load<uint16_t>;
    case 4:
      return is_signed ? &load<int32_t> : &load<uint32_t>;
    default:
      return &load<uint64_t>;
  }
}
Handler store_handler(const Type& type) {
  switch (type.bytes) {
    case 1:
      return &store<uint8_t>;
    case 2:
      return &store<uint16_t>;
    case 4:
      return &store<uint32_t>;
    default:
      return &store<uint64_t>;
  }
}

void to_window(Warp& warp, const Code& code, uint32_t active) {
  for_each_lane(active, [&](uint32_t l) {
    warp.put(code.d, code.wide_d, l, warp.get(code.a, code.wide_d, l) + code.value);
  });
}

void map_address(Warp& warp, const Code& code, uint32_t active) {
  for_each_lane(active, [&](uint32_t l) {
    const uint64_t mask = (kMostRanks - 1) << kRankShift;
    const uint64_t rank = (uint64_t{warp.words(code.b)[l]} + 1) << kRankShift & mask;
    warp.put(code.d, code.wide_d, l, (warp.get(code.a, code.wide_d, l) & ~mask) | rank);
  });
}

void rank_at(Warp& warp, const Code& code, uint32_t active) {
  for_each_lane(active, [&](uint32_t l) {
    const uint64_t rank = warp.get(code.a, code.wide_a, l) >> kRankShift & (kMostRanks - 1);
    warp.words(code.d)[l] = rank != 0 ? static_cast<uint32_t>(rank - 1) : rank_of(*warp.block);
  });
}

void add_value(Warp& warp, const Code& code, uint32_t active) {
  for_each_lane(active, [&](uint32_t l) {
    warp.longs(code.d)[l] = warp.get(code.a, code.wide_a, l) + code.value;
  });
}

void in_window(Warp& warp, const Code& code, uint32_t active) {
  uint32_t& d = *warp.words(code.d);
  for_each_lane(active, [&](uint32_t l) {
    const bool is = warp.longs(code.a)[l] >> kWindowShift == code.value;
    set_bits(d, 1U << l, static_cast<uint32_t>(is) << l);
  });
}

void load_frame(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t bytes = code.option & 0x7f;
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  for_each_lane(active, [&](uint32_t l) {
    const std::byte* const from = warp.frame + code.a + size_t{code.b} * l + code.value;
    for (uint32_t i = 0; i < code.list_size; ++i) {
      uint64_t value = 0;
      load_bytes(value, from + size_t{bytes} * i, bytes, (code.option & 0x80) != 0);
      warp.put(places[i], code.wide_d, l, value);
    }
  });
}

void store_frame(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t bytes = code.option & 0x7f;
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  for_each_lane(active, [&](uint32_t l) {
    std::byte* const to = warp.frame + code.a + size_t{code.b} * l + code.value;
    for (uint32_t i = 0; i < code.list_size; ++i) {
      const uint64_t value = warp.get(places[i], code.wide_d, l);
      std::memcpy(to + size_t{bytes} * i, &value, bytes);
    }
  });
}

void pack(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t bits = 8U * code.option;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  for_each_lane(active, [&](uint32_t l) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < code.list_size; ++i)
      value |= (uint64_t{warp.words(places[i])[l]} & mask) << (bits * i);
    warp.put(code.d, code.wide_d, l, value);
  });
}

void unpack(Warp& warp, const Code& code, uint32_t active) {
  const uint32_t bits = 8U * code.option;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  const uint32_t* const places = warp.routine().lists.data() + code.list;
  uint64_t whole[kLanes];  // a part may be the register itself
  for (uint32_t l = 0; l < kLanes; ++l) whole[l] = warp.get(code.a, code.wide_a, l);
  for (uint32_t i = 0; i < code.list_size; ++i)
    for_each_lane(active, [&](uint32_t l) {
      warp.words(places[i])[l] = static_cast<uint32_t>(whole[l] >> (bits * i) & mask);
    });
}

void add_local_base(Warp& warp, const Code& code, uint32_t active) {
  for_each_lane(active, [&](uint32_t l) {
    const uint64_t address = warp.words(code.a)[l] + code.value;
    warp.put(code.d, code.wide_d, l, address);
  });
}

void read_clock(Warp& warp, const Code& code, uint32_t active) {
  const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                         std::chrono::nanoseconds(1));
  for_each_lane(active, [&](uint32_t l) { warp.put(code.d, code.wide_d, l, now); });
}

void trap(Warp&, const Code&, uint32_t) { throw Fault(CUDA_ERROR_LAUNCH_FAILED, "trap"); }

Handler system_call(const std::string& name) {
  if (name == "vprintf") return &print;
  if (name == "__assertfail") return &failed_assertion;
  if (name == "malloc") return &allocate;
  if (name == "free") return &give_back;
  if (name == "cudaGraphSetConditional") return &set_condition;
  return nullptr;
}

}  // namespace simgpu::ptx
