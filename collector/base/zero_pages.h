// Memory for large tables. Its pages are fresh from the kernel: each is the process's from its
// first write on, so that a thousand threads with a few entries each take a few pages each. They go
// back to the kernel: malloc would keep them in the thread's arena, where the tables of the next
// recording touch other ones.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace flopinj {

// Null where there is no memory.
inline void* new_pages(size_t bytes) noexcept {
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}
inline void delete_pages(void* pages, size_t bytes) noexcept {
  if (pages != nullptr) munmap(pages, bytes);
}

// Zero bytes have to be what a T begins with.
template <class T>
class ZeroPages {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  ZeroPages() = default;
  ZeroPages(ZeroPages&& other) noexcept : table_(std::exchange(other.table_, nullptr)) {}
  ZeroPages& operator=(ZeroPages&& other) noexcept {
    std::swap(table_, other.table_);
    return *this;
  }
  ~ZeroPages() { delete_pages(table_, sizeof(T)); }

  // False where there is no memory.
  bool make() noexcept {
    if (table_ == nullptr) table_ = static_cast<T*>(new_pages(sizeof(T)));
    return table_ != nullptr;
  }
  explicit operator bool() const noexcept { return table_ != nullptr; }
  T& operator*() noexcept { return *table_; }
  const T& operator*() const noexcept { return *table_; }

 private:
  T* table_ = nullptr;
};

}  // namespace flopinj
