#include "gpu/gpu.h"

namespace trainer {

Context::Context(const DriverApi& api) : api_(api) {
  api.check(api.cuDeviceGet(&device_, 0), "cuDeviceGet");
  api.check(api.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  make_current();
}

Context::~Context() {
  api_.cuCtxSetCurrent(nullptr);
  api_.cuDevicePrimaryCtxRelease(device_);
}

void Context::make_current() const {
  api_.check(api_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

Stream::Stream(const DriverApi& api) : api_(api) {
  api.check(api.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

Stream::~Stream() { api_.cuStreamDestroy(stream_); }

void Stream::synchronize() const {
  api_.check(api_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

CapturedGraph::CapturedGraph(const Stream& stream) : stream_(stream) {
  const DriverApi& api = stream.api();
  api.check(api.cuStreamBeginCapture(stream.handle(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "cuStreamBeginCapture");
  capturing_ = true;
}

CapturedGraph::~CapturedGraph() {
  const DriverApi& api = stream_.api();
  if (capturing_) api.cuStreamEndCapture(stream_.handle(), &graph_);
  if (executable_ != nullptr) api.cuGraphExecDestroy(executable_);
  if (graph_ != nullptr) api.cuGraphDestroy(graph_);
}

void CapturedGraph::finish() {
  const DriverApi& api = stream_.api();
  capturing_ = false;
  api.check(api.cuStreamEndCapture(stream_.handle(), &graph_), "cuStreamEndCapture");
  api.check(api.cuGraphInstantiateWithFlags(&executable_, graph_, 0),
            "cuGraphInstantiateWithFlags");
}

void CapturedGraph::launch() const {
  const DriverApi& api = stream_.api();
  api.check(api.cuGraphLaunch(executable_, stream_.handle()), "cuGraphLaunch");
}

}  // namespace trainer
