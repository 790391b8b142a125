// Memory for a large table of which most threads write little. Its pages are fresh from the kernel:
// each is the process's from its first write on, so that a thousand threads with a few entries
// each take a few pages each.
#pragma once
#include <sys/mman.h>

#include <type_traits>

namespace flopinj {

// Zero bytes have to be what a T begins with.
template <class T>
class ZeroPages {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  ZeroPages() = default;
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;
  ~ZeroPages() {
    if (table_ != nullptr) munmap(table_, sizeof(T));
  }

  // False where there is no memory.
  bool make() noexcept {
    if (table_ != nullptr) return true;
    void* const pages =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    table_ = static_cast<T*>(pages);
    return true;
  }
  explicit operator bool() const noexcept { return table_ != nullptr; }
  T& operator*() noexcept { return *table_; }
  const T& operator*() const noexcept { return *table_; }

 private:
  T* table_ = nullptr;
};

}  // namespace flopinj
