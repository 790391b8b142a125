// Devices.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "driver/api.h"
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

std::string pci_bus_id(const Device& device) {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", device.ordinal() + 1);
  return text;
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

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device->uuid();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return api::cuDeviceGetUuid(uuid, dev); }

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

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const auto value = [&](CUdevice_attribute attribute) {
    return device_attribute(*device, attribute).value_or(0);
  };
  *prop = CUdevprop{};
  prop->maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  prop->maxThreadsDim[2] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  prop->maxGridSize[0] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  prop->maxGridSize[1] = prop->maxGridSize[2] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  prop->sharedMemPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  prop->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  prop->SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  prop->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  prop->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  prop->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  const Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return copy_text(pciBusId, len, pci_bus_id(*device));
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string wanted =
      pciBusId;  // [domain]:[bus]:[device].[function], the first and the last may be missing
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const Runtime& runtime = Runtime::get();
  for (int i = 0; i < runtime.device_count(); ++i) {
    const std::string full = pci_bus_id(*runtime.device(i));
    if (wanted == full || wanted == full.substr(5) || wanted == full.substr(5, 5)) {
      *dev = i;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Runtime& runtime = Runtime::get();
  if (runtime.device(dev) == nullptr || runtime.device(peerDev) == nullptr)
    return CUDA_ERROR_INVALID_DEVICE;
  *canAccessPeer = dev != peerDev ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
