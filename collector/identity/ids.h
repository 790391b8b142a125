// Typed indices. Every id counts from 1 in the order of definition and is the id written to the
// trace; 0 is none.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace flopinj {

template <class Tag>
struct Id {
  uint32_t value = 0;
  constexpr explicit operator bool() const { return value != 0; }
  constexpr auto operator<=>(const Id&) const = default;
};

using StringId = Id<struct StringTag>;
using FunctionId = Id<struct FunctionTag>;
using SignatureId = Id<struct SignatureTag>;
using PathId = Id<struct PathTag>;
using StreamId = Id<struct StreamTag>;
using ThreadId = Id<struct ThreadTag>;
using DeviceId = Id<struct DeviceTag>;
using GroupId = Id<struct GroupTag>;
using GraphId = Id<struct GraphTag>;

}  // namespace flopinj

template <class Tag>
struct std::hash<flopinj::Id<Tag>> {
  size_t operator()(flopinj::Id<Tag> id) const noexcept { return id.value; }
};
