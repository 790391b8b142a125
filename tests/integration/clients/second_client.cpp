// A program with a client of CUPTI in it, as torch.profiler is one: 10 launches without it, 20 with
// it, 10 without it. Prints how many kernel records that client got, or why it could not begin.
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "client.h"

namespace {

// As in the headers of CUPTI 13.2 and later.
struct Params {
  size_t size = 40;
  const char* name = "second_client";
  char* old_name = nullptr;
  size_t old_name_size = 0;
  uint8_t allow_multiple = 1;
  uint8_t padding[7] = {};
};

template <class... Arguments>
CUptiResult cupti(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcupti.so.13", RTLD_LAZY);
  void* const symbol = library != nullptr ? dlsym(library, name) : nullptr;
  if (symbol == nullptr) std::exit(3);
  return reinterpret_cast<CUptiResult (*)(Arguments...)>(symbol)(arguments...);
}

CUpti_SubscriberHandle subscriber;
std::atomic<int> kernels{0};

void requested(uint8_t** buffer, size_t* size, size_t* records, void*) {
  *size = 1 << 16;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *records = 0;
}
void completed(uint8_t* buffer, size_t, size_t valid, void*) {
  CUpti_Activity* record = nullptr;
  while (cupti("cuptiActivityGetNextRecord_v2", subscriber, buffer, valid, &record) ==
         CUPTI_SUCCESS)
    ++kernels;
  std::free(buffer);
}

}  // namespace

int main(int, char** argv) {
  const client::Gpu gpu(argv[0]);
  const auto launch = [&](int times) {
    for (int i = 0; i < times; ++i) gpu.axpy(64);
    client::Gpu::synchronize();
  };
  launch(10);
  Params params;
  const CUpti_CallbackFunc nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId,
                                        const void*) {};
  void* const no_data = nullptr;
  const CUptiResult result = cupti("cuptiSubscribe_v2", &subscriber, nothing, no_data, &params);
  const CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (result == CUPTI_SUCCESS) {
    cupti("cuptiActivityRegisterCallbacks_v2", subscriber, requested, completed);
    cupti("cuptiActivityEnable_v2", subscriber, kind, no_data);
  }
  launch(20);
  if (result == CUPTI_SUCCESS) {
    cupti("cuptiActivityFlushAll", uint32_t{CUPTI_ACTIVITY_FLAG_FLUSH_FORCED});
    cupti("cuptiActivityDisable_v2", subscriber, kind, no_data);
    cupti("cuptiUnsubscribe", subscriber);
    std::printf("records %d\n", kernels.load());
  } else {
    std::printf("refused %d\n", static_cast<int>(result));
  }
  launch(10);
}
