// Streams on the modelled timeline. Work runs at the call that gives it, which is one legal
// execution of asynchronous work; when it starts and ends is modelled: it starts when the host
// gives it or when all that it has to wait for is done, whichever is later.
#pragma once
#include <functional>

#include "driver/runtime.h"

namespace simgpu {

std::shared_ptr<Stream> make_stream(const std::shared_ptr<Context>& context, Stream::Kind kind,
                                    unsigned int flags);

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

// When the work that this thread does was given: now, but where a stream's own thread does it.
uint64_t issued_ns();

struct Interval {
  uint64_t start_ns, end_ns;
};
// Places work of this length on the stream, behind its earlier work and, as the legacy default
// stream demands, behind that of other streams.
Interval place(Stream& stream, uint64_t duration_ns, uint64_t given_ns);

Mark newest(const Stream& stream);  // of the work given so far

// Has the work done on the stream: now, or by its thread behind what it has to wait for. The error
// of work that is done later is the context's.
CUresult give(const std::shared_ptr<Stream>& stream, std::function<CUresult()> work);
// Waits for all work in flight of the context, waiting kernels and host functions too.
void drain(const Context& context);
// Before a launch: in a profiler session it waits for all work in flight, and is done by the
// calling thread.
bool serialized(const Stream& stream);

bool is_idle(const Stream& stream);  // by the clock, all work done
// They give the error of asynchronous work.
CUresult synchronize(const Stream& stream);
CUresult synchronize_context(const Context& context);
uint64_t context_ready_ns(const Context& context);

}  // namespace simgpu
