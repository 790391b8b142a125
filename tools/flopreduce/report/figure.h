// What is known of a number. Forms of output, gates and comparisons take figures in this type only:
// no plain number becomes one by itself, so that a bound or an estimate cannot pass for a value.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "support/wide.h"

namespace flopinj::reduce {

// How a number is to be read.
enum class Mark : uint8_t {
  kNone = 0,
  kAtLeast = 1,   // ">=": launches are missing from it, or a part of their work
  kAtMost = 2,    // "<=": an upper bound
  kEstimate = 4,  // "~"
  kMoreThan = 8,  // ">": of a time that was taken while counters were read; the true one is shorter
};
constexpr Mark operator|(Mark a, Mark b) {
  return static_cast<Mark>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool has(Mark marks, Mark one) {
  return (static_cast<uint8_t>(marks) & static_cast<uint8_t>(one)) != 0;
}
constexpr Mark mark_if(bool there, Mark mark) { return there ? mark : Mark::kNone; }
// Of 1 / x, where x has these marks.
constexpr Mark inverse(Mark marks) {
  Mark out = has(marks, Mark::kEstimate) ? Mark::kEstimate : Mark::kNone;
  if (has(marks, Mark::kAtLeast)) out = out | Mark::kAtMost;
  if (has(marks, Mark::kAtMost)) out = out | Mark::kAtLeast;
  if (has(marks, Mark::kMoreThan)) out = out | Mark::kAtMost;
  return out;
}

// Of a rate, whose time has these marks. Where that is at most so much, it was taken while counters
// were read.
constexpr Mark over_time_mark(Mark time) {
  return mark_if(has(time, Mark::kEstimate), Mark::kEstimate) |
         mark_if(has(time, Mark::kAtMost), Mark::kMoreThan);
}

class Figure {
 public:
  using Value = std::variant<std::monostate, u128, double>;

  Figure() = default;  // not known, and there is no more to say
  static Figure unknown(std::string why) {
    Figure figure;
    figure.why_ = std::move(why);
    return figure;
  }
  template <typename V>
  static Figure exact(const V& value) {
    if constexpr (requires { value.has_value(); })
      return value ? exact(*value) : Figure();
    else if constexpr (std::floating_point<V>)
      return {static_cast<double>(value), Mark::kNone};
    else
      return {static_cast<u128>(value), Mark::kNone};
  }
  Figure(u128 value, Mark marks) : value_(value), marks_(marks) {}
  Figure(double value, Mark marks) : value_(value), marks_(marks) {}

  bool known() const { return value_.index() != 0; }
  // The true number may be another, on one side of this one or on both.
  bool bound() const { return is_bound(marks_); }
  Mark marks() const { return marks_; }
  const Value& value() const { return value_; }
  // What the marks are of. Nothing where it is not known.
  std::optional<double> number() const {
    if (const auto* whole = std::get_if<u128>(&value_)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value_)) return *real;
    return std::nullopt;
  }
  // Why it is not known; may be empty.
  const std::string& why() const { return why_; }

  Figure with(Mark marks) const {
    Figure figure = *this;
    if (known()) figure.marks_ = marks_ | marks;
    if (has(marks, Mark::kAtMost)) figure.least_.reset();  // this lower bound does not know of it
    if (is_bound(marks)) figure.most_.reset();             // nor does this upper one
    return figure;
  }
  // What the true number is at least, where the marks leave both sides open or say "at most".
  Figure no_less_than(u128 least) const {
    Figure figure = *this;
    figure.least_ = least;
    return figure;
  }
  const std::optional<u128>& least() const { return least_; }
  // What the true number is at most, where the marks say "at least": then it is a range.
  Figure no_more_than(double most) const {
    Figure figure = *this;
    if (known() && has(marks_, Mark::kAtLeast) && !has(marks_, Mark::kAtMost)) figure.most_ = most;
    return figure;
  }
  const std::optional<double>& most() const { return most_; }
  // From where to where the true number may be; nothing at an end that is open. An estimate is
  // taken for its value.
  Value low() const {
    if (!known() || !bound()) return value_;
    if (least_) return *least_;
    return has(marks_, Mark::kAtMost) ? Value() : value_;
  }
  Value high() const {
    if (!known() || !bound()) return value_;
    if (most_) return *most_;
    const bool more = has(marks_, Mark::kAtLeast) || has(marks_, Mark::kMoreThan);
    return more ? Value() : value_;
  }
  // What is not known of one is missing from the sum.
  Figure& operator+=(const Figure& other) {
    if (!other.known()) return *this = with(Mark::kAtLeast);
    if (!known()) return *this = other.with(Mark::kAtLeast);
    const auto *a = std::get_if<u128>(&value_), *b = std::get_if<u128>(&other.value_);
    if (a != nullptr && b != nullptr) {
      u128 sum = *a;
      add_saturating(sum, *b);
      value_ = sum;
    } else {
      value_ = *number() + *other.number();
    }
    marks_ = marks_ | other.marks_;
    least_.reset();
    most_.reset();
    return *this;
  }
  // `factor` is above 0.
  friend Figure operator*(const Figure& a, double factor) {
    const auto number = a.number();
    if (!number) return a;
    Figure product(*number * factor, a.marks_);
    if (a.most_) product.most_ = *a.most_ * factor;
    return product;
  }
  // Nothing where either is not known or the divisor is 0.
  friend Figure operator/(const Figure& a, const Figure& b) {
    const auto dividend = a.number(), divisor = b.number();
    if (!dividend) return unknown(a.why_);
    if (!divisor || *divisor == 0) return unknown(b.why_);
    return {*dividend / *divisor, a.marks_ | inverse(b.marks_)};
  }
  // Nothing where either is not known, or the difference may be more and may be less.
  friend Figure operator-(const Figure& a, const Figure& b) {
    const auto from = a.number(), taken = b.number();
    const Mark marks = a.marks_ | inverse(b.marks_);
    const bool more = has(marks, Mark::kAtLeast) || has(marks, Mark::kMoreThan);
    if (!from || !taken || (more && has(marks, Mark::kAtMost))) return {};
    return {*from - *taken, marks};
  }

 private:
  static bool is_bound(Mark marks) {
    return has(marks, Mark::kAtLeast) || has(marks, Mark::kAtMost) || has(marks, Mark::kMoreThan);
  }

  Value value_;
  Mark marks_ = Mark::kNone;
  std::string why_;
  std::optional<u128> least_;
  std::optional<double> most_;
};

}  // namespace flopinj::reduce
