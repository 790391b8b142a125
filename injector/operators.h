// Operators as a source of range paths: for a caller that can tell one operator from another by a
// hash, as python/flopinj/torch/observer.cpp does. A range in NVTX's default domain, whose name is
// written down once and not at each call. Also C.
#pragma once
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)

#ifdef __cplusplus
extern "C" {
#endif

// What flopinj_operators() gives. Members may be added at the end; `bytes` says how many there are.
struct FlopinjOperators {
  uint64_t bytes;
  // Begins a range on this thread. `hash` is of its name, and of nothing that changes with every
  // call; `sequence` is autograd's number, negative for none. 0: it has begun, or nothing records.
  // 1: this thread has not seen the hash at this place, nothing was done, and push_named() is to be
  // called.
  int (*push)(uint64_t hash, int64_t sequence);
  // The same with the name: `bytes` of text as emit_nvtx writes it, without seq, op_id and
  // input_op_ids.
  void (*push_named)(uint64_t hash, int64_t sequence, const char* name, uint64_t bytes);
  // Ends the innermost range of this thread in the default domain, NVTX's too.
  void (*pop)(void);  // NOLINT(modernize-redundant-void-arg)
};

#ifdef __cplusplus
}

namespace flopinj {

// Null where recording is off for good.
const FlopinjOperators* operators() noexcept;

}  // namespace flopinj
#endif
