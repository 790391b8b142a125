#include <cupti_activity.h>
#include <cupti_activity_deprecated.h>
#include <injector/vendor/copy_record.h>

namespace flopinj {
namespace {

CopyKind kind_of(uint8_t copy_kind) {
  switch (copy_kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return CopyKind::kHostToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return CopyKind::kDeviceToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
      return CopyKind::kWithinDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return CopyKind::kHostToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return CopyKind::kBetweenDevices;
    default:
      return CopyKind::kOther;
  }
}

// Devices are CUDA ordinals.
DeviceId id_of(uint32_t ordinal) { return DeviceId{ordinal + 1}; }

template <class Record>
void read_common(const Record& record, CopyTime& copy) {
  copy.start_ns = record.start;
  copy.end_ns = record.end;
  copy.bytes = record.bytes;
  copy.devices[0] = id_of(record.deviceId);
}

template <class Record>
void read_memcpy(const Record& record, CopyTime& copy) {
  read_common(record, copy);
  copy.kind = kind_of(record.copyKind);
  copy.pageable = record.srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE ||
                  record.dstKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

}  // namespace

bool read_copy(const CUpti_Activity& record, CopyTime& copy) {
  copy = {};
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      read_memcpy(reinterpret_cast<const CUpti_ActivityMemcpy5&>(record), copy);
      return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& peer = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record);
      read_memcpy(peer, copy);
      copy.devices[1] = id_of(peer.srcDeviceId);
      copy.devices[2] = id_of(peer.dstDeviceId);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
      read_common(reinterpret_cast<const CUpti_ActivityMemset4&>(record), copy);
      copy.kind = CopyKind::kFill;
      return true;
    default:
      return false;
  }
}

}  // namespace flopinj
