// GCC 12's static libgcc finds unwinding tables by _dl_find_object(), which came with glibc 2.35.
// This one takes its place, so that what is built there also runs on older ones. It asks the C
// library's where there is one, which takes no lock; and else dl_iterate_phdr(), as libgcc did
// before. It is called when an exception is thrown, and where a stack is looked at.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>

#ifdef DLFO_STRUCT_HAS_EH_DBASE
namespace {

using FindObject = int(void*, dl_find_object*) noexcept;

// Null where the C library has none.
FindObject* look_up() noexcept {
  static std::atomic<bool> known{false};
  static std::atomic<FindObject*> glibcs{nullptr};
  if (!known.load(std::memory_order_acquire)) {
    glibcs.store(reinterpret_cast<FindObject*>(dlsym(RTLD_DEFAULT, "_dl_find_object")),
                 std::memory_order_relaxed);
    known.store(true, std::memory_order_release);
  }
  return glibcs.load(std::memory_order_relaxed);
}

// While this is loaded: dlsym() takes the loader's lock.
__attribute__((constructor)) void look_up_early() { look_up(); }

struct Search {
  uintptr_t address;
  dl_find_object* result;
};

int look_in_object(dl_phdr_info* object, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  uintptr_t low = UINTPTR_MAX, high = 0;
  uintptr_t unwinding = 0;
  bool found = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) unwinding = begin;
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t end = begin + header.p_memsz;
    if (begin <= search.address && search.address < end) found = true;
    if (begin < low) low = begin;
    if (end > high) high = end;
  }
  if (!found || unwinding == 0) return 0;
  // The link map is left out: libgcc does not read it.
  search.result->dlfo_map_start = reinterpret_cast<void*>(low);
  search.result->dlfo_map_end = reinterpret_cast<void*>(high);
  search.result->dlfo_eh_frame = reinterpret_cast<void*>(unwinding);
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* address, dl_find_object* result) noexcept {
  if (FindObject* const glibcs = look_up(); glibcs != nullptr) return glibcs(address, result);
  *result = {};
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(look_in_object, &search) == 1 ? 0 : -1;
}
#endif
