// NVTX hand-shake. A copy of NVTX hands us nvtxGetExportTable; table NVTX_ETID_CALLBACKS gives, per
// module, an array of pointers to its function pointers, indexed by NVTX_CBID_*. We write our
// functions into those of CORE and CORE2 that open, close or name ranges, threads and domains; all
// others stay no-ops.
//
// Handles (domains, registered strings) are ours to choose: a domain is the id of its interned
// name, a registered string points at a copy that is kept. Several copies of NVTX therefore share
// domains by name. Version 2 has the CORE module alone.
#include <collector/identity/mutex.h>
#include <injector/nvtx.h>
#include <injector/process/edge.h>
#include <injector/process/this_thread.h>

#include <array>
#include <cwchar>
#include <deque>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

// The types of NVTX's tables, without the implementation that a client of NVTX would get with them.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

namespace flopinj {
namespace {

// Registered strings, kept for the life of the process and bounded in number and bytes: past the
// bound a string is not kept and its ranges are named "[registered string]".
class RegisteredStrings {
 public:
  nvtxStringHandle_t add(std::string text) {
    const MutexLock lock(mutex_);
    if (const auto found = index_.find(text); found != index_.end()) return handle(*found->second);
    if (strings_.size() >= kMax || bytes_ + text.size() > kMaxBytes) return handle(full_);
    strings_.push_back(std::move(text));
    index_.emplace(strings_.back(), &strings_.back());
    bytes_ += strings_.back().size();
    return handle(strings_.back());
  }
  static const std::string& get(nvtxStringHandle_t handle) {
    return *reinterpret_cast<const std::string*>(handle);
  }

 private:
  static constexpr size_t kMax = 65'536, kMaxBytes = kMaxAllStringBytes;
  static nvtxStringHandle_t handle(const std::string& s) {
    return reinterpret_cast<nvtxStringHandle_t>(const_cast<std::string*>(&s));
  }
  Mutex mutex_;
  std::deque<std::string> strings_;  // addresses stay
  size_t bytes_ = 0;
  std::unordered_map<std::string_view, const std::string*> index_;
  const std::string full_ = "[registered string]";
};

RegisteredStrings& registered() {
  static auto* instance = new RegisteredStrings;  // never destroyed: handles outlive everything
  return *instance;
}

std::string utf8(const wchar_t* text) {
  std::string out;
  for (; text != nullptr && *text != 0 && out.size() < kMaxScannedBytes; ++text) {
    const auto c = static_cast<uint32_t>(*text);
    const auto put = [&out](uint32_t byte) {
      out += static_cast<char>(static_cast<unsigned char>(byte));
    };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
    } else if (c < 0x110000) {
      put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F)), put(0x80 | ((c >> 6) & 0x3F)),
          put(0x80 | (c & 0x3F));
    }
  }
  return out;
}

// A program may hand over a very long or unterminated-looking name; nothing past the limit is read.
std::string_view bounded(const char* text) {
  return text == nullptr ? std::string_view{}
                         : std::string_view(text, strnlen(text, kMaxScannedBytes));
}

// What an attribute structure calls its range. `storage` backs the result when it had to be
// converted.
std::string_view message_of(const nvtxEventAttributes_t* attributes, std::string& storage) {
  constexpr size_t kThroughMessage =
      offsetof(nvtxEventAttributes_t, message) + sizeof(attributes->message);
  if (attributes == nullptr || attributes->size < kThroughMessage) return {};
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return bounded(attributes->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return storage = utf8(attributes->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return attributes->message.registered == nullptr
                 ? std::string_view{}
                 : RegisteredStrings::get(attributes->message.registered);
    default:
      return {};
  }
}

StringId domain_id(nvtxDomainHandle_t domain) {
  return StringId{
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(domain))};  // the default domain is null
}

void count_interrupting_call() noexcept {
  if (Edge* const edge = recording_edge(); edge != nullptr)
    edge->collector->count_interrupting_range();
}

// Every function below is called by the program. Nothing may escape into it. A call in a signal
// handler that interrupted us on this thread is counted and does nothing, since we may hold a lock.
template <class Result, class Body>
Result contain(Result fallback, Body&& body) noexcept {
  try {
    if (RecursionGuard::inside()) {
      count_interrupting_call();
      return fallback;
    }
    const RecursionGuard guard;
    if constexpr (std::is_invocable_v<Body, const RecursionGuard&>)
      return body(guard);
    else
      return body();
  } catch (...) {
    return fallback;
  }
}

int push(const RecursionGuard& guard, StringId domain, std::string_view name) {
  ThreadState* const thread = thread_state(guard);
  return thread == nullptr ? NVTX_NO_PUSH_POP_TRACKING : thread->ranges.push(domain, name);
}
int pop(const RecursionGuard& guard, StringId domain) {
  ThreadState* const thread = thread_state(guard);
  return thread == nullptr ? NVTX_NO_PUSH_POP_TRACKING : thread->ranges.pop(domain);
}
nvtxRangeId_t start(StringId domain, std::string_view name) {
  Edge* edge = session_edge();
  return edge == nullptr ? 0 : edge->collector->process_ranges().start(domain, name);
}
void end(nvtxRangeId_t id) {
  if (Edge* edge = session_edge(); edge != nullptr) edge->collector->process_ranges().end(id);
}
nvtxDomainHandle_t create_domain(std::string_view name) {
  Edge* edge = session_edge();
  if (edge == nullptr) return nullptr;
  return reinterpret_cast<nvtxDomainHandle_t>(
      uintptr_t{edge->collector->paths().intern_string(name).value});
}

// --- CORE: the default domain
int NVTX_API push_ex(const nvtxEventAttributes_t* a) {
  return contain(NVTX_NO_PUSH_POP_TRACKING, [&](const RecursionGuard& guard) {
    std::string storage;
    return push(guard, {}, message_of(a, storage));
  });
}
int NVTX_API push_a(const char* name) {
  return contain(NVTX_NO_PUSH_POP_TRACKING,
                 [&](const RecursionGuard& guard) { return push(guard, {}, bounded(name)); });
}
int NVTX_API push_w(const wchar_t* name) {
  return contain(NVTX_NO_PUSH_POP_TRACKING,
                 [&](const RecursionGuard& guard) { return push(guard, {}, utf8(name)); });
}
int NVTX_API pop_default() {
  return contain(NVTX_NO_PUSH_POP_TRACKING,
                 [&](const RecursionGuard& guard) { return pop(guard, {}); });
}
nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t* a) {
  return contain(nvtxRangeId_t{0}, [&] {
    std::string storage;
    return start({}, message_of(a, storage));
  });
}
nvtxRangeId_t NVTX_API start_a(const char* name) {
  return contain(nvtxRangeId_t{0}, [&] { return start({}, bounded(name)); });
}
nvtxRangeId_t NVTX_API start_w(const wchar_t* name) {
  return contain(nvtxRangeId_t{0}, [&] { return start({}, utf8(name)); });
}
void NVTX_API end_default(nvtxRangeId_t id) {
  contain(0, [&] { return end(id), 0; });
}

// --- CORE2: domains and registered strings
int NVTX_API domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  return contain(NVTX_NO_PUSH_POP_TRACKING, [&](const RecursionGuard& guard) {
    std::string storage;
    return push(guard, domain_id(domain), message_of(a, storage));
  });
}
int NVTX_API domain_pop(nvtxDomainHandle_t domain) {
  return contain(NVTX_NO_PUSH_POP_TRACKING,
                 [&](const RecursionGuard& guard) { return pop(guard, domain_id(domain)); });
}
nvtxRangeId_t NVTX_API domain_start_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  return contain(nvtxRangeId_t{0}, [&] {
    std::string storage;
    return start(domain_id(domain), message_of(a, storage));
  });
}
void NVTX_API domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) {
  contain(0, [&] { return end(id), 0; });
}
nvtxDomainHandle_t NVTX_API domain_create_a(const char* name) {
  return contain(nvtxDomainHandle_t{nullptr}, [&] { return create_domain(bounded(name)); });
}
nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t* name) {
  return contain(nvtxDomainHandle_t{nullptr}, [&] { return create_domain(utf8(name)); });
}
nvtxStringHandle_t NVTX_API register_a(nvtxDomainHandle_t, const char* text) {
  return contain(nvtxStringHandle_t{nullptr},
                 [&] { return registered().add(std::string(bounded(text))); });
}
nvtxStringHandle_t NVTX_API register_w(nvtxDomainHandle_t, const wchar_t* text) {
  return contain(nvtxStringHandle_t{nullptr}, [&] { return registered().add(utf8(text)); });
}

// --- Installing
using AnyFunction = NvtxFunctionPointer;
template <class Function>
AnyFunction any(Function function) {
  return reinterpret_cast<AnyFunction>(function);
}

struct Replacement {
  uint32_t index;
  AnyFunction function;
};

const auto& core() {
  static const std::array<Replacement, 8> table = {{
      {NVTX_CBID_CORE_RangeStartEx, any(start_ex)},
      {NVTX_CBID_CORE_RangeStartA, any(start_a)},
      {NVTX_CBID_CORE_RangeStartW, any(start_w)},
      {NVTX_CBID_CORE_RangeEnd, any(end_default)},
      {NVTX_CBID_CORE_RangePushEx, any(push_ex)},
      {NVTX_CBID_CORE_RangePushA, any(push_a)},
      {NVTX_CBID_CORE_RangePushW, any(push_w)},
      {NVTX_CBID_CORE_RangePop, any(pop_default)},
  }};
  return table;
}

const auto& core2() {
  static const std::array<Replacement, 8> table = {{
      {NVTX_CBID_CORE2_DomainRangeStartEx, any(domain_start_ex)},
      {NVTX_CBID_CORE2_DomainRangeEnd, any(domain_end)},
      {NVTX_CBID_CORE2_DomainRangePushEx, any(domain_push_ex)},
      {NVTX_CBID_CORE2_DomainRangePop, any(domain_pop)},
      {NVTX_CBID_CORE2_DomainRegisterStringA, any(register_a)},
      {NVTX_CBID_CORE2_DomainRegisterStringW, any(register_w)},
      {NVTX_CBID_CORE2_DomainCreateA, any(domain_create_a)},
      {NVTX_CBID_CORE2_DomainCreateW, any(domain_create_w)},
  }};
  return table;
}

template <class Table>
bool install(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
             const Table& table) {
  NvtxFunctionTable functions = nullptr;
  unsigned int count = 0;
  if (callbacks.GetModuleFunctionTable(module, &functions, &count) == 0 || functions == nullptr)
    return false;
  for (const auto& [index, function] : table)
    if (index < count && functions[index] != nullptr) *functions[index] = function;
  return true;
}

}  // namespace

bool attach_nvtx(const void* (*get_export_table)(uint32_t)) noexcept {
  return contain(false, [&] {
    if (get_export_table == nullptr || session_edge() == nullptr) return false;
    const auto* callbacks =
        static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks) ||
        callbacks->GetModuleFunctionTable == nullptr)
      return false;
    const bool has_core = install(*callbacks, NVTX_CB_MODULE_CORE, core());
    const bool has_core2 =
        install(*callbacks, NVTX_CB_MODULE_CORE2, core2());  // absent in version 2 before domains
    return has_core || has_core2;
  });
}

}  // namespace flopinj
