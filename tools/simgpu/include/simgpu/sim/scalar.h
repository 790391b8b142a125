// gpu::f32 and gpu::f64: float and double that count.
//
// Counted, one thread-level instruction each, as
// smsp__sass_thread_inst_executed_op_{f,d}{add,mul,fma} does:
//   + and - (binary)  add        *  mul        gpu::fma  fma
// Not counted: unary minus (a source modifier on hardware), comparisons, max, conversions, exp,
// log, and division. A division is a subroutine on hardware (a reciprocal and several fused
// multiply-adds, their number depending on the operands): a kernel whose hardware count is to equal
// its simulated one must not divide.
#pragma once
#include <simgpu/sim/execution.h>

#include <cmath>
#include <compare>
#include <concepts>
#include <type_traits>

namespace gpu {

// What the operations of a precision count as.
template <std::floating_point T>
struct Counted;
template <>
struct Counted<float> {
  static constexpr auto kAdd = simgpu::Count::kFadd, kMul = simgpu::Count::kFmul,
                        kFma = simgpu::Count::kFfma;
};
template <>
struct Counted<double> {
  static constexpr auto kAdd = simgpu::Count::kDadd, kMul = simgpu::Count::kDmul,
                        kFma = simgpu::Count::kDfma;
};

template <std::floating_point T>
class scalar {
 public:
  scalar() = default;
  constexpr scalar(T v) : v_(v) {}  // NOLINT: implicit, as T is
  template <std::integral I>
  constexpr scalar(I v) : v_(static_cast<T>(v)) {}
  // In CUDA `a * 0.5` is a double-precision product. Say 0.5f, or f64(a) * 0.5.
  template <std::same_as<double> D>
  scalar(D) requires std::same_as<T, float>
  = delete;
  // To more precision it is implicit, as for T.
  template <std::floating_point U>
  requires(!std::same_as<U, T>) constexpr explicit(sizeof(U) > sizeof(T)) scalar(scalar<U> v)
      : v_(static_cast<T>(U(v))) {}

  template <class U>
  requires std::is_arithmetic_v<U>
  constexpr explicit operator U() const { return static_cast<U>(v_); }

  friend scalar operator+(scalar a, scalar b) {
    simgpu::count(Counted<T>::kAdd);
    return a.v_ + b.v_;
  }
  friend scalar operator-(scalar a, scalar b) {
    simgpu::count(Counted<T>::kAdd);
    return a.v_ - b.v_;
  }
  friend scalar operator*(scalar a, scalar b) {
    simgpu::count(Counted<T>::kMul);
    return a.v_ * b.v_;
  }
  friend scalar operator/(scalar a, scalar b) { return a.v_ / b.v_; }
  static scalar fused(scalar a, scalar b, scalar c) {
    simgpu::count(Counted<T>::kFma);
    return std::fma(a.v_, b.v_, c.v_);
  }
  scalar& operator+=(scalar b) { return *this = *this + b; }
  scalar& operator-=(scalar b) { return *this = *this - b; }
  scalar& operator*=(scalar b) { return *this = *this * b; }
  scalar& operator/=(scalar b) { return *this = *this / b; }
  constexpr scalar operator-() const { return -v_; }
  constexpr scalar operator+() const { return *this; }

  friend constexpr bool operator==(scalar a, scalar b) { return a.v_ == b.v_; }
  friend constexpr auto operator<=>(scalar a, scalar b) { return a.v_ <=> b.v_; }

 private:
  T v_;
};
using f32 = scalar<float>;
using f64 = scalar<double>;

static_assert(sizeof(f32) == 4 && alignof(f32) == 4 && std::is_trivially_copyable_v<f32>);
static_assert(sizeof(f64) == 8 && alignof(f64) == 8 && std::is_trivially_copyable_v<f64>);

inline f32 fma(f32 a, f32 b, f32 c) { return f32::fused(a, b, c); }
inline f64 fma(f64 a, f64 b, f64 c) { return f64::fused(a, b, c); }
inline f32 exp(f32 a) { return std::exp(float(a)); }
inline f32 log(f32 a) { return std::log(float(a)); }
inline f32 max(f32 a, f32 b) { return std::fmax(float(a), float(b)); }

}  // namespace gpu
