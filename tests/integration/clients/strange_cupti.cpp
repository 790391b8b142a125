// Another libcupti.so.13 in the process, as PyTorch brings one. It works with its own driver only:
// a call of any of its functions ends the program.
#include <cstdio>
#include <cstdlib>

#define STRANGE(name)                                                              \
  extern "C" __attribute__((visibility("default"), noreturn)) void cupti##name() { \
    std::fputs("the other CUPTI was called: cupti" #name "\n", stderr);            \
    std::abort();                                                                  \
  }
STRANGE(ActivityDisable)
STRANGE(ActivityEnable)
STRANGE(ActivityFlushAll)
STRANGE(ActivityGetNextRecord)
STRANGE(ActivityGetNumDroppedRecords)
STRANGE(ActivityRegisterCallbacks)
STRANGE(EnableCallback)
STRANGE(EnableDomain)
STRANGE(Finalize)
STRANGE(GetContextId)
STRANGE(GetDeviceId)
STRANGE(GetResultString)
STRANGE(GetStreamIdEx)
STRANGE(GetTimestamp)
STRANGE(GetVersion)
STRANGE(Subscribe)
STRANGE(Subscribe_v2)
STRANGE(Unsubscribe)
