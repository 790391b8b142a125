// A library of the program's with a copy of NVTX in it, as plugins are: the program loads and
// closes it.
#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) void nvtx_copy_ranges() {
  nvtxRangePushA("of the copy");
  nvtxRangePop();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain of the copy");
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "string of the copy");
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
}
