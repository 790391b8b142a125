// A number that counts what is done with it: definitions of operators are written with it, and give
// both the result and what it took.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace flopinj::test {

struct Tally {
  uint64_t fused = 0, single = 0, other = 0;
};

class Counted {
 public:
  static inline Tally tally;

  double value = 0;
  Counted() = default;
  Counted(double v) : value(v) {}  // a constant, or what is worked out once for a row

  friend Counted operator+(Counted a, Counted b) { return one(a.value + b.value); }
  friend Counted operator-(Counted a, Counted b) { return one(a.value - b.value); }
  friend Counted operator*(Counted a, Counted b) { return one(a.value * b.value); }
  friend Counted operator/(Counted a, Counted b) { return one(a.value / b.value); }
  Counted operator-() const { return {-value}; }  // part of the next operation
  Counted& operator+=(Counted b) { return *this = *this + b; }

  // a * b + c
  friend Counted fused(Counted a, Counted b, Counted c) {
    ++tally.fused;
    return {a.value * b.value + c.value};
  }
  friend Counted exp(Counted x) { return special(std::exp(x.value)); }
  friend Counted log(Counted x) { return special(std::log(x.value)); }
  friend Counted tanh(Counted x) { return special(std::tanh(x.value)); }
  friend Counted erf(Counted x) { return special(std::erf(x.value)); }
  friend Counted sqrt(Counted x) { return special(std::sqrt(x.value)); }
  friend Counted abs(Counted x) { return special(std::abs(x.value)); }
  friend Counted max(Counted a, Counted b) { return special(std::max(a.value, b.value)); }
  friend Counted min(Counted a, Counted b) { return special(std::min(a.value, b.value)); }
  friend bool operator>(Counted a, Counted b) {
    ++tally.other;
    return a.value > b.value;
  }

 private:
  static Counted one(double v) {
    ++tally.single;
    return {v};
  }
  static Counted special(double v) {
    ++tally.other;
    return {v};
  }
};

using Row = std::vector<Counted>;

}  // namespace flopinj::test
