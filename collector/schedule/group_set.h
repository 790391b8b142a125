// Metric groups of one plan, by their index in it.
//
// Not to be mixed up with the bits of Signature::wanted_groups: those are of all plans, each with a
// first bit of its own, and are plain words, for they are read and written without a lock. bits()
// and the constructor from bits are the only way from one to the other.
#pragma once
#include <collector/identity/signature_table.h>

#include <bit>
#include <cstdint>

namespace flopinj {

class GroupSet {
 public:
  constexpr GroupSet() = default;
  constexpr explicit GroupSet(uint32_t group) : bits_(uint64_t{1} << group) {}
  constexpr GroupSet(uint64_t bits, uint32_t first_bit) : bits_(bits >> first_bit) {}
  static constexpr GroupSet first(uint32_t groups) {
    return GroupSet(groups == kMaxGroups ? ~uint64_t{0} : (uint64_t{1} << groups) - 1, 0);
  }
  constexpr uint64_t bits(uint32_t first_bit) const { return bits_ << first_bit; }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(uint32_t group) const { return (bits_ >> group & 1) != 0; }
  constexpr GroupSet operator&(GroupSet o) const { return GroupSet(bits_ & o.bits_, 0); }
  constexpr GroupSet operator-(GroupSet o) const { return GroupSet(bits_ & ~o.bits_, 0); }
  constexpr GroupSet& operator|=(GroupSet o) { return bits_ |= o.bits_, *this; }
  constexpr GroupSet& operator-=(GroupSet o) { return bits_ &= ~o.bits_, *this; }
  constexpr bool operator==(const GroupSet&) const = default;

  // Indices, rising.
  class Iterator {
   public:
    constexpr explicit Iterator(uint64_t left) : left_(left) {}
    constexpr uint32_t operator*() const { return static_cast<uint32_t>(std::countr_zero(left_)); }
    constexpr Iterator& operator++() { return left_ &= left_ - 1, *this; }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    uint64_t left_;
  };
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }

 private:
  uint64_t bits_ = 0;
};

}  // namespace flopinj
