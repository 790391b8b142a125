// Every kind of NVTX range, each around a launch of its own size, so that a launch's FLOP tell
// where it was counted.
#include <nvtx3/nvToolsExt.h>

#include <thread>

#include "client.h"

int main(int, char** argv) {
  nvtxRangePushA("before cuInit");  // open when the profiler starts
  const client::Gpu gpu(argv[0]);
  gpu.axpy(1);
  nvtxRangePop();

  // What follows is launched once each; its groups of counters are read here.
  nvtxRangePushA("measured");
  for (int i = 0; i < 4; ++i)
    for (int n = 1; n <= 10; ++n) gpu.axpy(n);
  nvtxRangePop();

  nvtxRangePushA("outer");
  nvtxRangePushW(L"gr\u00fc\u00df");
  gpu.axpy(2);
  nvtxRangePop();
  gpu.axpy(3);
  nvtxRangePop();
  gpu.axpy(4);     // no range
  nvtxRangePop();  // one too many

  const nvtxDomainHandle_t library = nvtxDomainCreateA("library");
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(library, "registered");
  nvtxDomainRangePushEx(library, &attributes);
  gpu.axpy(5);
  nvtxRangePushA("inside");
  gpu.axpy(6);
  nvtxDomainRangePop(library);  // closes the outer one first: stacks are per domain
  gpu.axpy(7);
  nvtxRangePop();

  // Start/end ranges belong to the process: another thread's launches are in them too.
  const nvtxRangeId_t id = nvtxRangeStartA("process");
  std::thread([&] {
    gpu.use();
    nvtxRangePushA("worker");
    gpu.axpy(8);
    nvtxRangePop();
  }).join();
  gpu.axpy(9);
  nvtxRangeEnd(id);
  nvtxRangeEnd(id);  // unknown by now
  gpu.axpy(10);

  // PyTorch's names: seq and op_id change at every step, the range stays one.
  for (int step = 0; step < 3; ++step) {
    const std::string name = "aten::mm, op_id = " + std::to_string(step * 7) +
                             ", seq = " + std::to_string(step) + ", sizes = [[4, 4], [4, 4]]";
    nvtxRangePushA(name.c_str());
    gpu.axpy(11);
    nvtxRangePop();
  }
  // A fused optimizer's name has the sizes of all its tensors: parameters, gradients, two moments,
  // none of AMSGrad, steps, and nine numbers.
  std::string adam = "aten::_fused_adam_, seq = 5, op_id = 99, sizes = [";
  for (int tensor = 0; tensor < 4 * 200; ++tensor) adam += "[1024, 512], ";
  for (int number = 0; number < 1 + 200 + 8; ++number) adam += "[], ";
  adam += "[]], input_op_ids = [(7,0)]";
  nvtxRangePushA(adam.c_str());
  gpu.axpy(10);
  nvtxRangePop();
  nvtxRangePushA(std::string(40'000, 'x').c_str());  // longer than names may be
  gpu.axpy(9);
  nvtxRangePop();
  // Names with counters in them: many ranges, a bounded table.
  for (int step = 0; step < 5000; ++step) {
    nvtxRangePushA(("iteration " + std::to_string(step)).c_str());
    gpu.axpy(12);
    nvtxRangePop();
  }
  client::Gpu::synchronize();
  return 0;
}
