#include "anonymous/keyed_hash.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace flopinj::reduce {
namespace {

struct State {
  uint64_t v0, v1, v2, v3;
  void round() {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  }
  void add(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

uint64_t KeyedHash::of(std::string_view text) const {
  State s{key_[0] ^ 0x736f6d6570736575U, key_[1] ^ 0x646f72616e646f6dU,
          key_[0] ^ 0x6c7967656e657261U, key_[1] ^ 0x7465646279746573U};
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    s.add(word);
  }
  uint64_t last = uint64_t{text.size()} << 56;
  std::memcpy(&last, text.data() + at, text.size() - at);
  s.add(last);
  s.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) s.round();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t KeyedHash::of(uint64_t number) const {
  return of(std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
}

}  // namespace flopinj::reduce
