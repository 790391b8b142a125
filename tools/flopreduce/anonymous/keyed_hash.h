// SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): who does not know
// the key cannot find out by trial which text a hash is of.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace flopinj::reduce {

class KeyedHash {
 public:
  using Key = std::array<uint64_t, 2>;
  explicit KeyedHash(Key key) : key_(key) {}
  uint64_t of(std::string_view text) const;
  uint64_t of(uint64_t number) const;

 private:
  Key key_;
};

}  // namespace flopinj::reduce
