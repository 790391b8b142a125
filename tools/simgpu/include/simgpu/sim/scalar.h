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
#include <concepts>
#include <type_traits>

namespace gpu {

class f64;

class f32 {
 public:
  f32() = default;
  constexpr f32(float v) : v_(v) {}  // NOLINT: implicit, as float is
  template <std::integral I>
  constexpr f32(I v) : v_(static_cast<float>(v)) {}
  // In CUDA `a * 0.5` is a double-precision product. Say 0.5f, or f64(a) * 0.5.
  template <std::same_as<double> D>
  f32(D) = delete;
  constexpr explicit f32(f64 v);

  constexpr explicit operator float() const { return v_; }
  constexpr explicit operator double() const { return static_cast<double>(v_); }
  template <std::integral I>
  constexpr explicit operator I() const {
    return static_cast<I>(v_);
  }

  f32& operator+=(f32 b);
  f32& operator-=(f32 b);
  f32& operator*=(f32 b);
  f32& operator/=(f32 b);
  constexpr f32 operator-() const { return f32(-v_); }
  constexpr f32 operator+() const { return *this; }

 private:
  float v_;
};

class f64 {
 public:
  f64() = default;
  constexpr f64(double v) : v_(v) {}  // NOLINT: implicit, as double is
  template <std::integral I>
  constexpr f64(I v) : v_(static_cast<double>(v)) {}
  constexpr f64(f32 v) : v_(static_cast<double>(v)) {}

  constexpr explicit operator double() const { return v_; }
  constexpr explicit operator float() const { return static_cast<float>(v_); }
  template <std::integral I>
  constexpr explicit operator I() const {
    return static_cast<I>(v_);
  }

  f64& operator+=(f64 b);
  f64& operator-=(f64 b);
  f64& operator*=(f64 b);
  f64& operator/=(f64 b);
  constexpr f64 operator-() const { return f64(-v_); }
  constexpr f64 operator+() const { return *this; }

 private:
  double v_;
};

constexpr f32::f32(f64 v) : v_(static_cast<float>(v)) {}

static_assert(sizeof(f32) == 4 && alignof(f32) == 4 && std::is_trivially_copyable_v<f32>);
static_assert(sizeof(f64) == 8 && alignof(f64) == 8 && std::is_trivially_copyable_v<f64>);

inline f32 operator+(f32 a, f32 b) {
  simgpu::count(simgpu::Count::kFadd);
  return f32(float(a) + float(b));
}
inline f32 operator-(f32 a, f32 b) {
  simgpu::count(simgpu::Count::kFadd);
  return f32(float(a) - float(b));
}
inline f32 operator*(f32 a, f32 b) {
  simgpu::count(simgpu::Count::kFmul);
  return f32(float(a) * float(b));
}
inline f32 operator/(f32 a, f32 b) { return f32(float(a) / float(b)); }
inline f32 fma(f32 a, f32 b, f32 c) {
  simgpu::count(simgpu::Count::kFfma);
  return f32(std::fma(float(a), float(b), float(c)));
}

inline f64 operator+(f64 a, f64 b) {
  simgpu::count(simgpu::Count::kDadd);
  return f64(double(a) + double(b));
}
inline f64 operator-(f64 a, f64 b) {
  simgpu::count(simgpu::Count::kDadd);
  return f64(double(a) - double(b));
}
inline f64 operator*(f64 a, f64 b) {
  simgpu::count(simgpu::Count::kDmul);
  return f64(double(a) * double(b));
}
inline f64 operator/(f64 a, f64 b) { return f64(double(a) / double(b)); }
inline f64 fma(f64 a, f64 b, f64 c) {
  simgpu::count(simgpu::Count::kDfma);
  return f64(std::fma(double(a), double(b), double(c)));
}

inline f32& f32::operator+=(f32 b) { return *this = *this + b; }
inline f32& f32::operator-=(f32 b) { return *this = *this - b; }
inline f32& f32::operator*=(f32 b) { return *this = *this * b; }
inline f32& f32::operator/=(f32 b) { return *this = *this / b; }
inline f64& f64::operator+=(f64 b) { return *this = *this + b; }
inline f64& f64::operator-=(f64 b) { return *this = *this - b; }
inline f64& f64::operator*=(f64 b) { return *this = *this * b; }
inline f64& f64::operator/=(f64 b) { return *this = *this / b; }

constexpr bool operator==(f32 a, f32 b) { return float(a) == float(b); }
constexpr bool operator!=(f32 a, f32 b) { return float(a) != float(b); }
constexpr bool operator<(f32 a, f32 b) { return float(a) < float(b); }
constexpr bool operator>(f32 a, f32 b) { return float(a) > float(b); }
constexpr bool operator<=(f32 a, f32 b) { return float(a) <= float(b); }
constexpr bool operator>=(f32 a, f32 b) { return float(a) >= float(b); }
constexpr bool operator==(f64 a, f64 b) { return double(a) == double(b); }
constexpr bool operator!=(f64 a, f64 b) { return double(a) != double(b); }
constexpr bool operator<(f64 a, f64 b) { return double(a) < double(b); }
constexpr bool operator>(f64 a, f64 b) { return double(a) > double(b); }
constexpr bool operator<=(f64 a, f64 b) { return double(a) <= double(b); }
constexpr bool operator>=(f64 a, f64 b) { return double(a) >= double(b); }

inline f32 exp(f32 a) { return f32(std::exp(float(a))); }
inline f32 log(f32 a) { return f32(std::log(float(a))); }
inline f32 max(f32 a, f32 b) { return f32(std::fmax(float(a), float(b))); }

}  // namespace gpu
