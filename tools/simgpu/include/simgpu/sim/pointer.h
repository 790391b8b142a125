// gpu::ptr<T>: a device pointer of 8 bytes, as CUDA passes it. Loads and stores through it are DRAM
// traffic, each 32-byte sector counted once per launch and direction: what an ideal cache would let
// through. A pointer into host memory works too (it is one process) and is not DRAM.
#pragma once
#include <simgpu/sim/scalar.h>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace simgpu {

enum class Access { kRead, kWrite };

template <Access access>
inline void touch_sector(uint64_t address) {
  const SectorMap& map = execution->sectors;
  const uint64_t offset = address - map.base;
  if (offset >= map.bytes) return;
  SectorChunk& chunk = map.chunks[offset >> kChunkShift];
  if (chunk.launch != map.launch) chunk = SectorChunk{map.launch, 0, 0};
  const uint64_t bit = uint64_t{1} << ((offset / kSectorBytes) % 64);
  uint64_t& seen = access == Access::kRead ? chunk.read : chunk.written;
  if ((seen & bit) != 0) return;
  seen |= bit;
  count(access == Access::kRead ? Count::kDramReadBytes : Count::kDramWriteBytes, kSectorBytes);
}

template <Access access, class T>
inline void touch(const T* p) {
  const uint64_t address = reinterpret_cast<uint64_t>(p);
  touch_sector<access>(address);
  if constexpr (sizeof(T) > kSectorBytes || sizeof(T) % alignof(T) != 0 ||
                sizeof(T) != alignof(T)) {
    const uint64_t last = address + sizeof(T) - 1;  // may lie in a later sector
    for (uint64_t at = (address / kSectorBytes + 1) * kSectorBytes; at <= last; at += kSectorBytes)
      touch_sector<access>(at);
  }
}

}  // namespace simgpu

namespace gpu {

template <class T>
class ptr;

// What ptr<T>::operator[] gives: reads when converted, writes when assigned.
template <class T>
class ref {
 public:
  using Value = std::remove_const_t<T>;

  explicit ref(T* p) : p_(p) {}
  ref(const ref&) = default;

  operator Value() const {  // NOLINT: implicit, as an lvalue's load is
    simgpu::touch<simgpu::Access::kRead>(p_);
    return *p_;
  }
  template <class U>
  requires std::is_arithmetic_v<U> && std::constructible_from<U, Value> &&
      (!std::same_as<U, Value>)explicit
      operator U() const {
    return U(Value(*this));
  }

  Value operator=(Value v) const {
    static_assert(!std::is_const_v<T>, "store through a ptr<const T>");
    simgpu::touch<simgpu::Access::kWrite>(p_);
    return *p_ = v;
  }
  Value operator=(const ref& other) const {
    return *this = Value(other);
  }  // NOLINT: stores, does not rebind

  template <class U>
  Value operator+=(const U& v) const {
    return *this = Value(Value(*this) + v);
  }
  template <class U>
  Value operator-=(const U& v) const {
    return *this = Value(Value(*this) - v);
  }
  template <class U>
  Value operator*=(const U& v) const {
    return *this = Value(Value(*this) * v);
  }

  ptr<T> operator&() const { return ptr<T>(p_); }  // NOLINT: &x[i] is a device pointer

 private:
  T* p_;
};

// An integer, or an element of a ptr<int> not yet read.
template <class I>
concept Index = std::integral<I> || requires(const I& i) {
  requires std::integral<typename I::Value>;
};

template <std::integral I>
std::ptrdiff_t index_value(I i) {
  return static_cast<std::ptrdiff_t>(i);
}
template <class T>
std::ptrdiff_t index_value(ref<T> i) {
  return static_cast<std::ptrdiff_t>(static_cast<std::remove_const_t<T>>(i));
}

template <class T>
class ptr {
 public:
  ptr() = default;
  constexpr ptr(std::nullptr_t) : p_(nullptr) {}  // NOLINT: as a pointer
  explicit ptr(T* p) : p_(p) {}
  operator ptr<const T>() const  // NOLINT: as a pointer
      requires(!std::is_const_v<T>) {
    return ptr<const T>(p_);
  }
  explicit operator bool() const { return p_ != nullptr; }

  template <Index I>
  ref<T> operator[](I i) const {
    return ref<T>(p_ + index_value(i));
  }
  ref<T> operator*() const { return ref<T>(p_); }

  template <Index I>
  ptr operator+(I n) const {
    return ptr(p_ + index_value(n));
  }
  template <Index I>
  ptr operator-(I n) const {
    return ptr(p_ - index_value(n));
  }
  std::ptrdiff_t operator-(ptr other) const { return p_ - other.p_; }
  template <Index I>
  ptr& operator+=(I n) {
    return *this = *this + n;
  }
  ptr& operator++() {
    ++p_;
    return *this;
  }
  bool operator==(const ptr&) const = default;

  T* get() const { return p_; }  // the bare address: accesses through it are not counted

 private:
  T* p_;
};

static_assert(sizeof(ptr<int>) == 8 && std::is_trivially_copyable_v<ptr<int>>);

// Returns the value before. An atomic add is done by the memory system and is no FADD. Blocks of a
// device run one after the other here, so nothing else is needed to make it atomic.
inline f32 atomic_add(f32* p, f32 v) {
  const f32 before = *p;
  *p = f32(float(before) + float(v));
  return before;
}
template <std::integral I>
I atomic_add(I* p, std::type_identity_t<I> v) {
  const I before = *p;
  *p = static_cast<I>(before + v);
  return before;
}
// In device memory it reads and writes its sector.
template <class T>
T atomic_add(ptr<T> p, std::type_identity_t<T> v) {
  simgpu::touch<simgpu::Access::kRead>(p.get());
  simgpu::touch<simgpu::Access::kWrite>(p.get());
  return atomic_add(p.get(), v);
}

// Returns when the value at `p`, which the host or another kernel changes, is no longer `value`.
inline void wait_while(const ptr<const unsigned>& p, unsigned value) {
  while (__atomic_load_n(p.get(), __ATOMIC_ACQUIRE) == value)
    simgpu::execution->pause(simgpu::execution);
}

}  // namespace gpu
