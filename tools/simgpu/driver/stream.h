// Streams on the modelled timeline. Work runs at the call that gives it, which is one legal
// execution of asynchronous work; when it starts and ends is modelled: it starts when the host
// gives it or when what it has to wait for is done, whichever is later.
#pragma once
#include "driver/runtime.h"

namespace simgpu {

std::shared_ptr<Stream> make_stream(const std::shared_ptr<Context>& context, Stream::Kind kind,
                                    unsigned int flags, int priority);

// Finds the stream behind a handle, 0, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD; the last three
// need a current context. 0 is the legacy default stream, or this thread's own within a
// DefaultStreamScope.
Found<Stream> resolve_stream(CUstream handle);

// While alive, 0 means this thread's own default stream: what the _ptsz and _ptds entry points mean
// by it.
class DefaultStreamScope {
 public:
  DefaultStreamScope();
  ~DefaultStreamScope();
  DefaultStreamScope(const DefaultStreamScope&) = delete;
  DefaultStreamScope& operator=(const DefaultStreamScope&) = delete;
};

struct Interval {
  uint64_t start_ns, end_ns;
};
// Places work of this length on the stream, behind its earlier work and, as the legacy default
// stream demands, behind that of other streams.
Interval place(Stream& stream, uint64_t duration_ns, uint64_t issued_ns);

bool is_idle(const Stream& stream);  // by the clock
void synchronize(const Stream& stream);
void synchronize_context(const Context& context);
uint64_t context_ready_ns(const Context& context);

}  // namespace simgpu
