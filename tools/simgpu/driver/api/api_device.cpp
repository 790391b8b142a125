// Devices.
#include <cstdio>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/device_attributes.h"

namespace simgpu::api {
namespace {

// As snprintf, and as the driver: a short buffer gets what fits, terminated.
CUresult copy_text(char* to, int bytes, const std::string& text) {
  if (to == nullptr || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(to, static_cast<size_t>(bytes), "%s", text.c_str());
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Runtime::get().device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = Runtime::get().device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return copy_text(name, len, std::string("simgpu ") + device->chip().name + " (simulated)");
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device->uuid();
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = device->chip().memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (attrib == CU_DEVICE_ATTRIBUTE_MPS_ENABLED) {
    *pi = Runtime::get().settings().faults.mps ? 1 : 0;
    return CUDA_SUCCESS;
  }
  const auto value = device_attribute(*device, attrib);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  *pi = *value;
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *major = device->chip().compute_major;
  *minor = device->chip().compute_minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const auto bus = device_attribute(*device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", static_cast<unsigned int>(bus.value_or(0)));
  return copy_text(pciBusId, len, text);
}

// Every device can use the memory of all: it is the process's.
CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Runtime& runtime = Runtime::get();
  if (runtime.device(dev) == nullptr || runtime.device(peerDev) == nullptr)
    return CUDA_ERROR_INVALID_DEVICE;
  *canAccessPeer = dev != peerDev ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  const auto context = current_context();
  if (!context) return context.error;
  const auto peer = find_context(peerContext);
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return peer->device == context->device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  return find_context(peerContext) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace simgpu::api
