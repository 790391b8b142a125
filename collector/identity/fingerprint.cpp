#include <collector/identity/fingerprint.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace flopinj {
namespace {

// Collects the bytes to hash. They are hashed in one piece as long as they fit the buffer, which is
// much faster for the usual few dozen bytes, and as a stream beyond; the result is the same.
class Canonical {
 public:
  static constexpr size_t kBuffer = 512;

  // `judge`: words of this parameter may be pointers.
  void add(const unsigned char* from, size_t size, bool judge) noexcept {
    if (size > static_cast<size_t>(buffer_ + kBuffer - end_)) return add_long(from, size, judge);
    unsigned char* to = end_;
    for (; size >= 8; size -= 8, from += 8) {
      uint64_t word;
      std::memcpy(&word, from, 8);
      to = put(to, judge && looks_like_pointer(word) ? kPointerToken : word);
    }
    for (; size > 0; --size) *to++ = *from++;
    end_ = to;
  }

  // A run of parameters that are read alike; the caller knows that they fit the buffer. Parameters
  // that are null are left out: the driver refuses such a launch.
  template <class Word>
  void add_each(const void* const* from, size_t count) noexcept {
    unsigned char* to = end_;
    for (const void* const* const stop = from + count; from != stop; ++from) {
      if (*from == nullptr) continue;
      Word word;
      std::memcpy(&word, *from, sizeof word);
      if constexpr (sizeof word == 8)
        if (looks_like_pointer(word)) word = kPointerToken;
      to = put(to, word);
    }
    end_ = to;
  }

  uint64_t hash() noexcept {
    const auto used = static_cast<size_t>(end_ - buffer_);
    if (!streaming_) return used == 0 ? 0 : XXH3_64bits(buffer_, used);
    flush();
    return XXH3_64bits_digest(&stream_);
  }

 private:
  // The end is kept in a local while it moves: the bytes written might alias the member.
  template <class Word>
  static unsigned char* put(unsigned char* to, Word word) noexcept {
    std::memcpy(to, &word, sizeof word);
    return to + sizeof word;
  }

  // In pieces of whole words, so that every word is judged as one.
  void add_long(const unsigned char* from, size_t size, bool judge) noexcept {
    while (size > 0) {
      flush();
      const size_t piece = std::min(size, kBuffer);
      add(from, piece, judge);
      from += piece;
      size -= piece;
    }
  }
  void flush() noexcept {
    if (!streaming_) XXH3_64bits_reset(&stream_);
    streaming_ = true;
    XXH3_64bits_update(&stream_, buffer_, static_cast<size_t>(end_ - buffer_));
    end_ = buffer_;
  }

  unsigned char buffer_[kBuffer];
  unsigned char* end_ = buffer_;  // of what is used
  bool streaming_ = false;
  XXH3_state_t stream_;
};

bool may_hold_pointers(const ParameterSlot& slot) { return slot.size >= 8 && slot.offset % 8 == 0; }

// CUtensorMap: address, flags, then strides, sizes less 1 (the first two are word 4) and boxes. In
// other structures of its size and alignment another word is a pointer, or the first is none. Where
// the address and the flag are was found by others on sm_120, and NVIDIA documents neither.
constexpr size_t kTensorMapWords = 16, kTensorMapSizes = 4;
constexpr uint64_t kTensorMapFlag = 1U << 21;  // of word 1

struct TensorMap {
  std::array<uint64_t, kTensorMapWords> words;

  static bool may_be(const ParameterSlot& slot) {
    return slot.size == sizeof words && slot.offset % 64 == 0;
  }
  bool is_one() const {
    for (size_t i = 1; i < words.size(); ++i)
      if (i != kTensorMapSizes && looks_like_pointer(words[i])) return false;
    return looks_like_pointer(words[0]) && words[0] % 16 == 0;
  }
};

void add_slot(Canonical& canonical, const ParameterSlot& slot, const unsigned char* from,
              size_t size) noexcept {
  if (TensorMap map; TensorMap::may_be(slot) && size == sizeof map.words) {
    std::memcpy(map.words.data(), from, size);
    if (map.is_one()) {
      map.words[0] = kPointerToken;
      map.words[1] &= ~kTensorMapFlag;
      return canonical.add(reinterpret_cast<const unsigned char*>(map.words.data()), size, false);
    }
  }
  canonical.add(from, size, may_hold_pointers(slot));
}

// The usual case, and nearly all there is to the launch path's time: one pointer per parameter,
// few bytes.
uint64_t hash_runs(const ParameterLayout& parameters, const void* const* from) noexcept {
  using Kind = ParameterLayout::Kind;
  Canonical canonical;
  size_t at = 0;
  for (const ParameterLayout::Run& run : parameters.runs()) {
    if (run.kind == Kind::kFourBytes) {
      canonical.add_each<uint32_t>(from + at, run.count);
    } else if (run.kind == Kind::kOneWord) {
      canonical.add_each<uint64_t>(from + at, run.count);
    } else {
      for (size_t i = at; i < at + run.count; ++i)
        if (from[i] != nullptr)
          add_slot(canonical, parameters[i], static_cast<const unsigned char*>(from[i]),
                   parameters[i].size);
    }
    at += run.count;
  }
  return canonical.hash();
}

// Any layout, in either of CUDA's forms.
uint64_t hash_slots(const ParameterLayout& parameters, const ParameterValues& values) noexcept {
  Canonical canonical;
  size_t left = kMaxParameterBytes;
  const auto* packed = static_cast<const unsigned char*>(values.packed);
  for (size_t i = 0; i < parameters.size() && left != 0; ++i) {
    const ParameterSlot& slot = parameters[i];
    size_t size = std::min<size_t>(slot.size, left);
    const unsigned char* from = nullptr;
    if (values.pointers != nullptr) {
      from = static_cast<const unsigned char*>(values.pointers[i]);
      if (from == nullptr) continue;
    } else {
      if (slot.offset >= values.packed_bytes) continue;
      size = std::min(size, values.packed_bytes - slot.offset);
      from = packed + slot.offset;
    }
    add_slot(canonical, slot, from, size);
    left -= size;
  }
  return canonical.hash();
}

}  // namespace

uint64_t fingerprint_of(const FunctionInfo& function, const ParameterValues& values) noexcept {
  if (!function.parameters_known) return 0;
  const ParameterLayout& parameters = function.parameters;
  if (values.pointers != nullptr && parameters.bytes() <= Canonical::kBuffer)
    return hash_runs(parameters, values.pointers);
  if (values.pointers == nullptr && values.packed == nullptr) return 0;
  return hash_slots(parameters, values);
}

uint64_t fingerprint_of_bytes(const void* bytes, size_t size) noexcept {
  if (bytes == nullptr) return 0;
  Canonical canonical;
  canonical.add(static_cast<const unsigned char*>(bytes),
                std::min<size_t>(size, kMaxParameterBytes), true);
  return canonical.hash();
}

}  // namespace flopinj
