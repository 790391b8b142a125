// What is wrong with one input, counted by kind. Reading never stops at damage; it is counted here
// and reported.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopinj::reduce {

enum class Damage : uint32_t {
  kBadFrame,
  kSkippedBytes,
  kTornTail,
  kGaveUp,
  kLostPackets,
  kRepeatedPackets,
  kMalformedPacket,
  kNoHeader,
  kNoEnd,
  kGoesOn,
  kStopped,
  kBadColumns,
  kBadId,
  kUndefinedId,
  kParentLoop,
  kBadCounter,
  kBadTime,
  kOverflow,
  kTableFull,
  kLedger,
  kKinds
};
inline constexpr size_t kDamageKinds = static_cast<size_t>(Damage::kKinds);

struct DamageText {
  const char* code;     // stable, for programs
  const char* meaning;  // for people; follows the count
  bool partial;         // something is missing from the report
};
const DamageText& damage_text(Damage kind);
std::optional<Damage> damage_of_code(std::string_view code);

class DamageLog {
 public:
  void add(Damage kind, uint64_t count = 1) {
    auto& c = count_[static_cast<size_t>(kind)];
    c = c > UINT64_MAX - count ? UINT64_MAX : c + count;
  }
  void add(const DamageLog& other) {
    for (size_t i = 0; i < kDamageKinds; ++i) add(static_cast<Damage>(i), other.count_[i]);
  }
  uint64_t count(Damage kind) const { return count_[static_cast<size_t>(kind)]; }
  // True when the report lacks something this input held or should have held.
  bool partial() const;

 private:
  std::array<uint64_t, kDamageKinds> count_{};
};

}  // namespace flopinj::reduce
