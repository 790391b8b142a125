// NVTX ranges for Python: NVTX's header finds the tool by NVTX_INJECTION64_PATH, and calls it.
#include <nvtx3/nvToolsExt.h>

#include <cstdint>

extern "C" {
__attribute__((visibility("default"))) int flopinj_nvtx_push(const char* name) {
  return nvtxRangePushA(name);
}
__attribute__((visibility("default"))) int flopinj_nvtx_pop() { return nvtxRangePop(); }
// Ranges of the process: their ends may be on another thread.
__attribute__((visibility("default"))) uint64_t flopinj_nvtx_start(const char* name) {
  return nvtxRangeStartA(name);
}
__attribute__((visibility("default"))) void flopinj_nvtx_end(uint64_t range) {
  nvtxRangeEnd(range);
}
// A number of the range that is open: proto/FORMAT.md, "Numbers of ranges".
__attribute__((visibility("default"))) void flopinj_nvtx_number(const char* name, uint64_t number) {
  static nvtxDomainHandle_t domain = nullptr;  // of equal names, tools make one domain
  if (__atomic_load_n(&domain, __ATOMIC_ACQUIRE) == nullptr)
    __atomic_store_n(&domain, nvtxDomainCreateA("flopinj"), __ATOMIC_RELEASE);
  nvtxEventAttributes_t mark = {};
  mark.version = NVTX_VERSION;
  mark.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  mark.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  mark.payload.ullValue = number;
  mark.messageType = NVTX_MESSAGE_TYPE_ASCII;
  mark.message.ascii = name;
  nvtxDomainMarkEx(__atomic_load_n(&domain, __ATOMIC_ACQUIRE), &mark);
}
}
