#include "driver/execution/stream.h"

#include <algorithm>

#include "driver/context.h"
#include "driver/execution/clock.h"
#include "driver/observer.h"

namespace simgpu {
namespace {

thread_local int per_thread_default = 0;
thread_local uint64_t deferred_since_ns = 0;  // of work that a stream's thread does; else 0

void raise_to(std::atomic<uint64_t>& value, uint64_t at_least) {
  uint64_t seen = value.load();
  while (seen < at_least && !value.compare_exchange_weak(seen, at_least)) {
  }
}

template <class Visit>
void for_each_stream(const Context& context, Visit visit) {
  auto& mutable_context = const_cast<Context&>(context);
  for (const auto& stream : Runtime::get().streams.find_all(
           [&](const Stream& s) { return s.context.get() == &context; }))
    visit(*stream);
  const std::lock_guard lock(mutable_context.mutex);
  for (const auto& [thread, stream] : context.per_thread_streams) visit(*stream);
  if (context.legacy_stream) visit(*context.legacy_stream);
}

// What new work on the stream comes behind, beside the stream's own: the legacy default stream's
// rule.
std::vector<Mark> marks_before(const Stream& stream) {
  std::vector<Mark> marks;
  if (stream.kind == Stream::Kind::kLegacyDefault) {
    for_each_stream(*stream.context, [&](const Stream& other) {
      if (other.blocking()) marks.push_back(newest(other));
    });
  } else if (stream.blocking()) {
    const std::lock_guard lock(stream.context->mutex);
    if (stream.context->legacy_stream) marks.push_back(newest(*stream.context->legacy_stream));
  }
  return marks;
}

}  // namespace

Mark newest(const Stream& stream) {
  return stream.queue != nullptr ? Mark{stream.queue, stream.queue->newest()} : Mark{};
}

std::shared_ptr<Stream> make_stream(const std::shared_ptr<Context>& context, Stream::Kind kind,
                                    unsigned int flags) {
  auto stream = std::make_shared<Stream>();
  stream->id = Runtime::get().next_id(Runtime::get().stream_ids);
  stream->kind = kind;
  stream->flags = flags;
  stream->context = context;
  if (Runtime::get().settings().async) stream->queue = WorkQueue::make();
  return stream;
}

Found<Stream> resolve_stream(CUstream handle) {
  const bool is_default =
      handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (!is_default) {
    auto stream = Runtime::get().streams.find(handle);
    if (!stream) return {CUDA_ERROR_INVALID_HANDLE, nullptr};
    if (const CUresult failure = stream->context->failure; failure != CUDA_SUCCESS)
      return {failure, nullptr};
    return {CUDA_SUCCESS, std::move(stream)};
  }
  const auto context = current_context();
  if (!context) return {context.error, nullptr};
  const bool per_thread =
      handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_default > 0);
  const std::lock_guard lock(context->mutex);
  if (!context->legacy_stream) return {CUDA_ERROR_CONTEXT_IS_DESTROYED, nullptr};
  if (!per_thread) return {CUDA_SUCCESS, context->legacy_stream};
  auto& stream = context->per_thread_streams[std::this_thread::get_id()];
  if (!stream) stream = make_stream(context.object, Stream::Kind::kPerThreadDefault, 0);
  return {CUDA_SUCCESS, stream};
}

DefaultStreamScope::DefaultStreamScope() { ++per_thread_default; }
DefaultStreamScope::~DefaultStreamScope() { --per_thread_default; }

uint64_t issued_ns() { return deferred_since_ns != 0 ? deferred_since_ns : now_ns(); }

Interval place(Stream& stream, uint64_t duration_ns, uint64_t given_ns) {
  uint64_t start = std::max(given_ns, stream.ready_ns.load());
  if (stream.kind == Stream::Kind::kLegacyDefault) {
    for_each_stream(*stream.context, [&](const Stream& other) {
      if (other.blocking()) start = std::max(start, other.ready_ns.load());
    });
  } else if (stream.blocking()) {
    const std::lock_guard lock(stream.context->mutex);
    if (stream.context->legacy_stream)
      start = std::max(start, stream.context->legacy_stream->ready_ns.load());
  }
  raise_to(stream.ready_ns, start + duration_ns);
  return {start, start + duration_ns};
}

bool is_idle(const Stream& stream) {
  return newest(stream).reached() && stream.ready_ns.load() <= now_ns();
}

CUresult give(const std::shared_ptr<Stream>& stream, std::function<CUresult()> work) {
  if (stream->queue == nullptr) return work();
  stream->queue->push([stream, work = std::move(work), before = marks_before(*stream),
                       correlation = ApiScope::current_correlation_id(), given = now_ns()] {
    for (const Mark& mark : before) mark.wait();
    ApiScope::set_correlation_id(correlation);
    deferred_since_ns = given;
    CUresult none = CUDA_SUCCESS;
    if (const CUresult result = work(); result != CUDA_SUCCESS)
      stream->context->failure.compare_exchange_strong(none, result);
  });
  return CUDA_SUCCESS;
}

void drain(const Context& context) {
  std::vector<Mark> marks;  // waited for without the context's lock, which the work may need
  for_each_stream(context, [&](const Stream& stream) { marks.push_back(newest(stream)); });
  {
    const std::lock_guard lock(const_cast<Context&>(context).mutex);
    marks.insert(marks.end(), context.destroyed_streams.begin(), context.destroyed_streams.end());
  }
  for (const Mark& mark : marks) mark.wait();
}

bool serialized(const Stream& stream) {
  if (stream.context->session.load().open == 0) return false;
  drain(*stream.context);
  return true;
}

CUresult synchronize(const Stream& stream) {
  const bool legacy = stream.kind == Stream::Kind::kLegacyDefault;
  if (legacy)
    for (const Mark& mark : marks_before(stream)) mark.wait();
  newest(stream).wait();
  wait_until_ns(legacy ? context_ready_ns(*stream.context) : stream.ready_ns.load());
  return stream.context->failure;
}

uint64_t context_ready_ns(const Context& context) {
  uint64_t ready = 0;
  for_each_stream(context,
                  [&](const Stream& stream) { ready = std::max(ready, stream.ready_ns.load()); });
  return ready;
}

CUresult synchronize_context(const Context& context) {
  drain(context);
  wait_until_ns(context_ready_ns(context));
  return context.failure;
}

}  // namespace simgpu
