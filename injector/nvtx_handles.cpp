#include <collector/base/mutex.h>
#include <injector/nvtx_handles.h>
#include <injector/process/process_state.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace flopinj {
namespace {

constexpr uint32_t kMost = 65'536;
constexpr size_t kMostBytes = kMaxAllStringBytes;
constexpr size_t kSlots = 2 * kMost;

struct KeptName {
  explicit constexpr KeptName(std::string_view text) : name(text) {}
  const std::string_view name;
  // Of a domain: number of the recording plus 1, and the name's id in it.
  std::atomic<uint64_t> interned{0};
};

// Names of one kind, from number 1 on, and where each is found: open addressing, at most half full.
// A forked child goes on with it, whatever other threads of its parent were doing: each step of
// add() is one store, and what is between two of them is a number that is not used.
struct Table {
  std::array<std::atomic<KeptName*>, kMost> entries;
  std::array<std::atomic<uint32_t>, kSlots> slots;  // 0: free
  std::atomic<uint32_t> last;                       // number that is taken
  std::atomic<size_t> bytes;
};

class KeptNames {
 public:
  // `first` is the handle of number 0, and has no bits in common with addresses.
  constexpr KeptNames(uint64_t first, Table& table, std::string_view past_bound)
      : first_(first), table_(table), past_bound_(past_bound) {}

  uint64_t add(std::string_view name) {
    const size_t hash = std::hash<std::string_view>{}(name);
    if (const Place known = place_of(name, hash); known.number != 0) return first_ + known.number;
    const MutexLock lock(process_state().kept_names);
    const Place place = place_of(name, hash);
    if (place.number != 0) return first_ + place.number;
    const uint32_t number = table_.last + 1;
    const size_t bytes = table_.bytes + name.size();
    if (number >= kMost || bytes > kMostBytes) return first_;
    auto text = std::make_unique<char[]>(name.size());
    std::ranges::copy(name, text.get());
    auto entry = std::make_unique<KeptName>(std::string_view(text.get(), name.size()));
    table_.last = number;
    table_.bytes = bytes;
    table_.entries[number] = entry.release();
    place.slot = number;
    static_cast<void>(text.release());
    return first_ + number;
  }

  KeptName& operator[](uint64_t handle) noexcept {
    const uint64_t number = handle - first_;
    KeptName* const entry =
        number < kMost ? table_.entries[number].load(std::memory_order_acquire) : nullptr;
    return entry != nullptr ? *entry : past_bound_;
  }

 private:
  struct Place {
    std::atomic<uint32_t>& slot;
    uint32_t number;  // 0: the slot is free, and the name is new
  };
  // Takes no lock.
  Place place_of(std::string_view name, size_t hash) noexcept {
    for (;; ++hash) {
      std::atomic<uint32_t>& slot = table_.slots[hash % kSlots];
      const uint32_t number = slot.load(std::memory_order_acquire);
      if (number == 0 || (*this)[first_ + number].name == name) return {slot, number};
    }
  }

  const uint64_t first_;
  Table& table_;
  KeptName past_bound_;
};

constinit Table g_string_table{}, g_domain_table{};
constinit KeptNames g_strings{0xf10b'7e87'0000'0000, g_string_table, "[registered string]"};
constinit KeptNames g_domains{0xf10b'd03a'0000'0000, g_domain_table, "[domain]"};

constexpr std::string_view kOwnDomain = "flopinj";
std::atomic<nvtxDomainHandle_t> g_own_domain{nullptr};

}  // namespace

nvtxStringHandle_t kept_string(std::string_view text) {
  return reinterpret_cast<nvtxStringHandle_t>(g_strings.add(text));
}

std::string_view registered_string(nvtxStringHandle_t handle) noexcept {
  if (handle == nullptr) return {};
  return g_strings[reinterpret_cast<uint64_t>(handle)].name;
}

nvtxDomainHandle_t kept_domain(std::string_view name) {
  const auto domain = reinterpret_cast<nvtxDomainHandle_t>(g_domains.add(name));
  if (name == kOwnDomain) g_own_domain.store(domain, std::memory_order_release);
  return domain;
}

nvtxDomainHandle_t own_domain() noexcept { return g_own_domain.load(std::memory_order_acquire); }

StringId domain_id(Edge& edge, nvtxDomainHandle_t handle) {
  if (handle == nullptr) return {};
  KeptName& domain = g_domains[reinterpret_cast<uint64_t>(handle)];
  const uint64_t recording = uint64_t{edge.number} + 1;
  const uint64_t known = domain.interned.load(std::memory_order_relaxed);
  if (known >> 32 == recording) return StringId{static_cast<uint32_t>(known)};
  const StringId id = edge.collector->paths().intern_string(domain.name);
  domain.interned.store(recording << 32 | id.value, std::memory_order_relaxed);
  return id;
}

}  // namespace flopinj
