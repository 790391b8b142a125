// Activity records of copies and fills. All fields that are read lie in the same places in every
// version of CUPTI from 12.6 on: records have only grown at their end.
#pragma once
#include <collector/identity/copy_time.h>
#include <cupti_activity.h>

#include <array>

namespace flopinj {

inline constexpr std::array kCopyKinds{CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                       CUPTI_ACTIVITY_KIND_MEMSET};

// False where it is of another kind.
bool read_copy(const CUpti_Activity& record, CopyTime& copy);

}  // namespace flopinj
