// The fields of a batch: columns as views into its packet, and single numbers. Others are left out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <protozero/data_view.hpp>
#include <protozero/exception.hpp>
#include <string>

#include "reader/columns.h"
#include "reader/damage.h"

namespace flopinj::reduce {

class BatchFields {
 public:
  // By their numbers in the message, as bits.
  struct Kinds {
    uint32_t columns = 0, numbers = 0;
  };
  explicit BatchFields(Kinds kinds) : kinds_(kinds) {}

  // False where the bytes are no Message; then the views are not to be used. Protobuf allows a
  // column to come unpacked or in pieces, and our writer never does it: such a batch is written
  // anew, through the generated code, and read from there. `body` must outlive the views.
  template <typename Message>
  bool read(protozero::data_view body) {
    bool packed_once = true;
    if (!take(body, packed_once)) return false;
    if (packed_once) return true;
    Message message;
    if (!message.ParseFromArray(body.data(), static_cast<int>(body.size()))) return false;
    message.SerializeToString(&canonical_);
    const size_t size = canonical_.size();
    canonical_.append(kReadAhead, '\0');
    packed_once = true;
    return take(protozero::data_view(canonical_.data(), size), packed_once) && packed_once;
  }
  // The same, and whether the columns fit each other; what is false is logged as damage.
  template <typename Message, typename Fit>
  bool read(protozero::data_view body, DamageLog& damage, Fit&& fit) {
    try {
      if (read<Message>(body) && fit()) return true;
    } catch (const protozero::exception&) {
    }
    damage.add(Damage::kBadColumns);
    return false;
  }
  template <typename Field>
  const protozero::data_view& column(Field field) const {
    return columns_[static_cast<size_t>(field)];
  }
  template <typename Field>
  uint64_t number(Field field) const {
    return numbers_[static_cast<size_t>(field)];
  }

 private:
  static constexpr size_t kMost = 22;  // above the numbers of all fields
  bool take(protozero::data_view body, bool& packed_once);

  const Kinds kinds_;
  std::array<protozero::data_view, kMost> columns_;
  std::array<uint64_t, kMost> numbers_{};
  std::string canonical_;
};

// The bits of some fields.
template <typename... Fields>
constexpr uint32_t field_bits(Fields... fields) {
  return ((uint32_t{1} << static_cast<uint32_t>(fields)) | ...);
}

}  // namespace flopinj::reduce
