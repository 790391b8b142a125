#include <collector/identity/mutex.h>
#include <injector/nvtx_handles.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace flopinj {
namespace {

// By name, each once. `Entry` is made from a string and has it as `name`.
template <class Entry>
class KeptNames {
 public:
  explicit KeptNames(const char* past_bound) : full_(past_bound) {}
  Entry& add(std::string_view name) {
    const MutexLock lock(mutex_);
    if (const auto found = index_.find(name); found != index_.end()) return *found->second;
    if (entries_.size() >= kMost || bytes_ + name.size() > kMostBytes) return full_;
    Entry& entry = entries_.emplace_back(std::string(name));
    index_.emplace(entry.name, &entry);
    bytes_ += name.size();
    return entry;
  }

 private:
  static constexpr size_t kMost = 65'536, kMostBytes = kMaxAllStringBytes;
  Mutex mutex_;
  std::deque<Entry> entries_ FLOPINJ_GUARDED_BY(mutex_);  // addresses stay
  size_t bytes_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string_view, Entry*> index_ FLOPINJ_GUARDED_BY(mutex_);
  Entry full_;
};

struct RegisteredString {
  explicit RegisteredString(std::string text) : name(std::move(text)) {}
  const std::string name;
};

struct Domain {
  explicit Domain(std::string text) : name(std::move(text)) {}
  const std::string name;
  // Number of the recording plus 1, and the name's id in it.
  std::atomic<uint64_t> interned{0};
};

// Never destroyed: handles outlive everything.
KeptNames<RegisteredString>& strings() {
  static auto* const instance = new KeptNames<RegisteredString>("[registered string]");
  return *instance;
}
KeptNames<Domain>& domains() {
  static auto* const instance = new KeptNames<Domain>("[domain]");
  return *instance;
}

constexpr std::string_view kOwnDomain = "flopinj";
std::atomic<nvtxDomainHandle_t> g_own_domain{nullptr};

}  // namespace

nvtxStringHandle_t kept_string(std::string_view text) {
  return reinterpret_cast<nvtxStringHandle_t>(&strings().add(text));
}

const std::string& registered_string(nvtxStringHandle_t handle) {
  return reinterpret_cast<const RegisteredString*>(handle)->name;
}

nvtxDomainHandle_t kept_domain(std::string_view name) {
  auto* const domain = reinterpret_cast<nvtxDomainHandle_t>(&domains().add(name));
  if (name == kOwnDomain) g_own_domain.store(domain, std::memory_order_release);
  return domain;
}

nvtxDomainHandle_t own_domain() noexcept { return g_own_domain.load(std::memory_order_acquire); }

StringId domain_id(Edge& edge, nvtxDomainHandle_t handle) {
  if (handle == nullptr) return {};
  Domain& domain = *reinterpret_cast<Domain*>(handle);
  const uint64_t recording = uint64_t{edge.number} + 1;
  const uint64_t known = domain.interned.load(std::memory_order_relaxed);
  if (known >> 32 == recording) return StringId{static_cast<uint32_t>(known)};
  const StringId id = edge.collector->paths().intern_string(domain.name);
  domain.interned.store(recording << 32 | id.value, std::memory_order_relaxed);
  return id;
}

}  // namespace flopinj
