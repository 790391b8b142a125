// For vectors whose elements are written right after they were made: they get no values before.
#pragma once
#include <memory>
#include <type_traits>

namespace flopinj::reduce {

template <typename T>
struct WithoutValues : std::allocator<T> {
  static_assert(std::is_trivial_v<T>);
  template <typename Other>
  struct rebind {
    using other = WithoutValues<Other>;
  };
  void construct(T*) noexcept {}
  void construct(T* to, const T& from) noexcept { *to = from; }
};

}  // namespace flopinj::reduce
