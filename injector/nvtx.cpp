// NVTX hand-shake. A copy of NVTX hands us nvtxGetExportTable; table NVTX_ETID_CALLBACKS gives, per
// module, an array of pointers to its function pointers, indexed by NVTX_CBID_*. We write our
// functions into those of CORE and CORE2 that open, close or name ranges, threads and domains; all
// others stay no-ops.
//
// Handles (domains, registered strings) are ours to choose: see nvtx_handles.h. Several copies of
// NVTX share domains by name. Version 2 has the CORE module only.
//
// Numbers of a range (FORMAT.md, "Numbers of ranges") are marks of the domain "flopinj"; marks of
// others end at one comparison.
//
// Our functions stay where they are for good: the library that a copy of NVTX belongs to may be
// closed, and its tables with it, so no table is written to but in the hand-shake. While nothing is
// recorded the functions return at once, but for those that make handles: the program keeps what
// they give it.
#include <injector/nvtx.h>
#include <injector/nvtx_handles.h>
#include <injector/process/contained.h>

#include <cwchar>
#include <optional>
#include <span>
#include <string>

namespace flopinj {
namespace {

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
      return registered_string(attributes->message.registered);
    default:
      return {};
  }
}

// The whole number that an attribute structure carries, if there is one from 0 on.
std::optional<uint64_t> number_of(const nvtxEventAttributes_t* attributes) {
  constexpr size_t kThroughPayload =
      offsetof(nvtxEventAttributes_t, payload) + sizeof(attributes->payload);
  if (attributes == nullptr || attributes->size < kThroughPayload) return std::nullopt;
  const auto whole = [](int64_t value) {
    return value < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(value));
  };
  switch (attributes->payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      return attributes->payload.ullValue;
    case NVTX_PAYLOAD_TYPE_INT64:
      return whole(attributes->payload.llValue);
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return attributes->payload.uiValue;
    case NVTX_PAYLOAD_TYPE_INT32:
      return whole(attributes->payload.iValue);
    default:
      return std::nullopt;
  }
}

int push(const RecursionGuard& guard, nvtxDomainHandle_t domain, std::string_view name) {
  Edge* const edge = session_edge();
  ThreadState* const thread = edge != nullptr ? thread_state(guard) : nullptr;
  return thread == nullptr ? NVTX_NO_PUSH_POP_TRACKING
                           : thread->ranges.push(domain_id(*edge, domain), name);
}
int pop(const RecursionGuard& guard, nvtxDomainHandle_t domain) {
  Edge* const edge = session_edge();
  ThreadState* const thread = edge != nullptr ? thread_state(guard) : nullptr;
  return thread == nullptr ? NVTX_NO_PUSH_POP_TRACKING
                           : thread->ranges.pop(domain_id(*edge, domain));
}
// In ranges whose launches the user leaves out, numbers are left out too.
void add_number(const RecursionGuard& guard, const nvtxEventAttributes_t* attributes) {
  const auto number = number_of(attributes);
  Edge* const edge = session_edge();
  ThreadState* const thread = edge != nullptr && number ? thread_state(guard) : nullptr;
  if (thread == nullptr || !thread->ranges.chosen()) return;
  std::string storage;
  const StringId name = edge->collector->paths().intern_string(message_of(attributes, storage));
  edge->collector->range_numbers().add(thread->ranges.path(), name, *number);
}
// A range's id says which recording it began in: in the next one it is unknown.
constexpr int kRecordingShift = 48;
nvtxRangeId_t start(nvtxDomainHandle_t domain, std::string_view name) {
  Edge* const edge = session_edge();
  if (edge == nullptr) return 0;
  return edge->collector->process_ranges().start(domain_id(*edge, domain), name) |
         nvtxRangeId_t{edge->number} << kRecordingShift;
}
void end(nvtxRangeId_t id) {
  if (Edge* const edge = session_edge(); edge != nullptr)
    edge->collector->process_ranges().end(id ^ nvtxRangeId_t{edge->number} << kRecordingShift);
}

// --- CORE2: domains and registered strings
int NVTX_API domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  return while_recorded(NVTX_NO_PUSH_POP_TRACKING, [=](const RecursionGuard& guard) {
    std::string storage;
    return push(guard, domain, message_of(a, storage));
  });
}
int NVTX_API domain_pop(nvtxDomainHandle_t domain) {
  return while_recorded(NVTX_NO_PUSH_POP_TRACKING,
                        [=](const RecursionGuard& guard) { return pop(guard, domain); });
}
nvtxRangeId_t NVTX_API domain_start_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  return while_recorded(nvtxRangeId_t{0}, [=] {
    std::string storage;
    return start(domain, message_of(a, storage));
  });
}
void NVTX_API domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) {
  while_recorded(0, [=] { return end(id), 0; });
}
void NVTX_API domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  if (domain == nullptr || domain != own_domain()) return;
  while_recorded(0, [=](const RecursionGuard& guard) { return add_number(guard, a), 0; });
}
nvtxDomainHandle_t NVTX_API domain_create_a(const char* name) {
  return contain(nvtxDomainHandle_t{nullptr}, [&] { return kept_domain(bounded(name)); });
}
nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t* name) {
  return contain(nvtxDomainHandle_t{nullptr}, [&] { return kept_domain(utf8(name)); });
}
nvtxStringHandle_t NVTX_API register_a(nvtxDomainHandle_t, const char* text) {
  return contain(nvtxStringHandle_t{nullptr}, [&] { return kept_string(bounded(text)); });
}
nvtxStringHandle_t NVTX_API register_w(nvtxDomainHandle_t, const wchar_t* text) {
  return contain(nvtxStringHandle_t{nullptr}, [&] { return kept_string(utf8(text)); });
}

// --- CORE: the default domain
int NVTX_API push_ex(const nvtxEventAttributes_t* a) { return domain_push_ex(nullptr, a); }
int NVTX_API push_a(const char* name) {
  return while_recorded(NVTX_NO_PUSH_POP_TRACKING, [=](const RecursionGuard& guard) {
    return push(guard, nullptr, bounded(name));
  });
}
int NVTX_API push_w(const wchar_t* name) {
  return while_recorded(NVTX_NO_PUSH_POP_TRACKING, [=](const RecursionGuard& guard) {
    return push(guard, nullptr, utf8(name));
  });
}
int NVTX_API pop_default() { return domain_pop(nullptr); }
nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t* a) {
  return domain_start_ex(nullptr, a);
}
nvtxRangeId_t NVTX_API start_a(const char* name) {
  return while_recorded(nvtxRangeId_t{0}, [=] { return start(nullptr, bounded(name)); });
}
nvtxRangeId_t NVTX_API start_w(const wchar_t* name) {
  return while_recorded(nvtxRangeId_t{0}, [=] { return start(nullptr, utf8(name)); });
}
void NVTX_API end_default(nvtxRangeId_t id) { domain_end(nullptr, id); }

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

// Programs read these pointers at each call, without a lock: so they are written whole.
bool install(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
             std::span<const Replacement> table) {
  NvtxFunctionTable functions = nullptr;
  unsigned int count = 0;
  if (callbacks.GetModuleFunctionTable(module, &functions, &count) == 0 || functions == nullptr)
    return false;
  for (const auto& [index, function] : table)
    if (index < count && functions[index] != nullptr)
      __atomic_store_n(functions[index], function, __ATOMIC_RELEASE);
  return true;
}

bool install_core(const NvtxExportTableCallbacks& callbacks) {
  const Replacement table[] = {
      {NVTX_CBID_CORE_RangeStartEx, any(start_ex)}, {NVTX_CBID_CORE_RangeStartA, any(start_a)},
      {NVTX_CBID_CORE_RangeStartW, any(start_w)},   {NVTX_CBID_CORE_RangeEnd, any(end_default)},
      {NVTX_CBID_CORE_RangePushEx, any(push_ex)},   {NVTX_CBID_CORE_RangePushA, any(push_a)},
      {NVTX_CBID_CORE_RangePushW, any(push_w)},     {NVTX_CBID_CORE_RangePop, any(pop_default)},
  };
  return install(callbacks, NVTX_CB_MODULE_CORE, table);
}

// Absent in version 2 before domains.
bool install_core2(const NvtxExportTableCallbacks& callbacks) {
  const Replacement table[] = {
      {NVTX_CBID_CORE2_DomainMarkEx, any(domain_mark_ex)},
      {NVTX_CBID_CORE2_DomainRangeStartEx, any(domain_start_ex)},
      {NVTX_CBID_CORE2_DomainRangeEnd, any(domain_end)},
      {NVTX_CBID_CORE2_DomainRangePushEx, any(domain_push_ex)},
      {NVTX_CBID_CORE2_DomainRangePop, any(domain_pop)},
      {NVTX_CBID_CORE2_DomainRegisterStringA, any(register_a)},
      {NVTX_CBID_CORE2_DomainRegisterStringW, any(register_w)},
      {NVTX_CBID_CORE2_DomainCreateA, any(domain_create_a)},
      {NVTX_CBID_CORE2_DomainCreateW, any(domain_create_w)},
  };
  return install(callbacks, NVTX_CB_MODULE_CORE2, table);
}

}  // namespace

bool attach_nvtx(const void* (*get_export_table)(uint32_t)) noexcept {
  return contain(false, [&] {
    if (get_export_table == nullptr) return false;
    if (session_edge() == nullptr && session_phase() == Phase::kOff) return false;
    const auto* callbacks =
        static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks) ||
        callbacks->GetModuleFunctionTable == nullptr)
      return false;
    const bool has_core = install_core(*callbacks);
    return install_core2(*callbacks) || has_core;
  });
}

}  // namespace flopinj
