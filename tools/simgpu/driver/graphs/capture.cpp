#include "driver/graphs/capture.h"

#include <algorithm>
#include <set>

#include "driver/execution/clock.h"
#include "driver/execution/memory.h"
#include "driver/graphs/graph_exec.h"

namespace simgpu {
namespace {

struct Captures {
  std::mutex mutex;
  std::set<std::shared_ptr<Capture>> all;
  std::atomic<uint32_t> count{0};
};
Captures& captures() {
  static auto* const captures = new Captures;
  return *captures;
}

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void join(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture) {
  const std::lock_guard lock(stream->capture_mutex);
  stream->capture = capture;
}

void spoil(Capture& capture) {
  const std::lock_guard lock(capture.mutex);
  capture.invalidated = true;
}

template <class Matches>
std::vector<std::shared_ptr<Capture>> ongoing(Matches matches) {
  Captures& known = captures();
  if (known.count.load() == 0) return {};
  const std::lock_guard lock(known.mutex);
  std::vector<std::shared_ptr<Capture>> found;
  for (const auto& capture : known.all)
    if (matches(*capture)) found.push_back(capture);
  return found;
}

template <class Wanted>
CUresult spoil_captures_in(const Context& context, Wanted wanted, CUresult error) {
  const auto hit = ongoing([&](Capture& capture) {
    const std::lock_guard lock(capture.mutex);
    return std::any_of(capture.participants.begin(), capture.participants.end(),
                       [&](const auto& s) { return s->context.get() == &context && wanted(*s); });
  });
  for (const auto& capture : hit) spoil(*capture);
  return hit.empty() ? CUDA_SUCCESS : error;
}

CUresult refuse_implicit(const Stream& stream) {
  if (stream.kind != Stream::Kind::kLegacyDefault) return CUDA_SUCCESS;
  return spoil_captures_in(
      *stream.context, [](const Stream& s) { return s.blocking(); },
      CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult capture_node(Stream& stream, Capture& capture, NodeWork work) {
  const std::lock_guard lock(capture.mutex);
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.context->session.load().open != 0) {
    capture.invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  auto& tail = capture.tails[&stream];
  std::vector<CUgraphNode> before;
  for (const GraphNode* node : tail) before.push_back(handle_of(*node));
  CUgraphNode added = nullptr;
  const CUresult result = add_node(*capture.graph, before, std::move(work), &added);
  if (result == CUDA_SUCCESS) tail.assign(1, reinterpret_cast<GraphNode*>(added));
  return result;
}

bool all_joined(const Capture& capture) {
  const auto& end = capture.tails.at(capture.origin);
  for (const auto& [stream, tail] : capture.tails)
    for (const GraphNode* node : tail)
      if (!is_ancestor(node, end)) return false;
  return true;
}

uint64_t time_of(Event& event) {
  const std::lock_guard lock(event.mutex);
  return event.time_ns;
}

bool copies_pageable(const NodeWork& work) {
  const auto* copy = std::get_if<CopyWork>(&work);
  HostBlock pinned;
  return copy != nullptr && ((!copy->from_device && !find_host(copy->from, pinned)) ||
                             (!copy->to_device && !find_host(copy->to, pinned)));
}

}  // namespace

std::shared_ptr<Capture> capture_of(Stream& stream) {
  if (captures().count.load() == 0) return nullptr;
  const std::lock_guard lock(stream.capture_mutex);
  return stream.capture;
}

CUresult begin_capture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
                       std::shared_ptr<Graph> graph, const std::vector<GraphNode*>& behind) {
  if (stream->kind == Stream::Kind::kLegacyDefault) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (capture_of(*stream)) return CUDA_ERROR_ILLEGAL_STATE;
  Captures& known = captures();
  static std::atomic<uint64_t> ids{0};
  auto capture = std::make_shared<Capture>();
  capture->id = ids.fetch_add(1) + 1;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->own_graph = graph == nullptr;
  capture->graph = graph != nullptr ? std::move(graph) : create_graph();
  capture->origin = stream.get();
  capture->tails[stream.get()] = behind;
  capture->participants.push_back(stream);
  {
    const std::lock_guard lock(known.mutex);
    known.all.insert(capture);
    known.count.fetch_add(1);
  }
  join(stream, capture);
  return CUDA_SUCCESS;
}

CUresult end_capture(Stream& stream, CUgraph* graph) {
  *graph = nullptr;
  const auto capture = capture_of(stream);
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult result = CUDA_SUCCESS;
  std::vector<std::shared_ptr<Stream>> participants;
  {
    const std::lock_guard lock(capture->mutex);
    if (capture->invalidated)
      result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined(*capture))
      result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    capture->invalidated = true;  // what still refers to it (events) is of no more use
    participants.swap(capture->participants);
    capture->tails.clear();
  }
  for (const auto& participant : participants) {
    const std::lock_guard lock(participant->capture_mutex);
    participant->capture.reset();
  }
  {
    Captures& known = captures();
    const std::lock_guard lock(known.mutex);
    known.all.erase(capture);
    known.count.fetch_sub(1);
  }
  if (result == CUDA_SUCCESS) {
    *graph = handle_of(*capture->graph);
  } else if (capture->own_graph) {
    destroy_graph(capture->graph);
  }
  return result;
}

CaptureState capture_state(Stream& stream) {
  const auto capture = capture_of(stream);
  if (!capture) return {};
  const std::lock_guard lock(capture->mutex);
  if (capture->invalidated) return {CU_STREAM_CAPTURE_STATUS_INVALIDATED, 0, nullptr, {}};
  auto& told = capture->told[&stream];
  told.clear();
  for (const GraphNode* node : capture->tails[&stream]) told.push_back(handle_of(*node));
  return {CU_STREAM_CAPTURE_STATUS_ACTIVE, capture->id, handle_of(*capture->graph), told};
}

CUresult put_behind(Stream& stream, std::span<const CUgraphNode> nodes, bool set) {
  const auto capture = capture_of(stream);
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  const std::lock_guard lock(capture->mutex);
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*> tail;
  if (!set) tail = capture->tails[&stream];
  for (const CUgraphNode handle : nodes) {
    const auto node = Runtime::get().nodes.find(handle);
    if (!node || node->graph != capture->graph.get()) return CUDA_ERROR_INVALID_VALUE;
    if (std::ranges::find(tail, node.get()) == tail.end()) tail.push_back(node.get());
  }
  capture->tails[&stream] = std::move(tail);
  return CUDA_SUCCESS;
}

CUresult submit(const std::shared_ptr<Stream>& stream, NodeWork work) {
  if (const auto capture = capture_of(*stream))
    return capture_node(*stream, *capture, std::move(work));
  if (const CUresult error = refuse_implicit(*stream); error != CUDA_SUCCESS) return error;
  // A launch is serialised in a session; memory that is not pinned is staged, or waited for.
  if (std::holds_alternative<LaunchWork>(work) && serialized(*stream))
    return run_work(*stream, work, {});
  const bool staged = copies_pageable(work);
  const CUresult result =
      give(stream, [stream, work = std::move(work)] { return run_work(*stream, work, {}); });
  if (staged) {
    newest(*stream).wait();
    wait_until_ns(stream->ready_ns.load());
  }
  return result;
}

CUresult record_event(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& shared) {
  Event& event = *shared;
  const auto capture = capture_of(*stream);
  if (!capture) {
    if (const CUresult error = refuse_implicit(*stream); error != CUDA_SUCCESS) return error;
    {
      const std::lock_guard lock(event.mutex);
      event.recorded = true;
      event.capture.reset();
      event.capture_nodes.clear();
    }
    const CUresult given = give(stream, [stream, shared] {
      const Interval point = place(*stream, 0, issued_ns());
      const std::lock_guard lock(shared->mutex);
      shared->time_ns = point.end_ns;
      return CUDA_SUCCESS;
    });
    const std::lock_guard lock(event.mutex);
    event.mark = newest(*stream);
    return given;
  }
  const std::scoped_lock lock(capture->mutex, event.mutex);
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event.capture = capture;
  event.capture_nodes.clear();
  for (const GraphNode* node : capture->tails[stream.get()])
    event.capture_nodes.push_back(handle_of(*node));
  return CUDA_SUCCESS;
}

CUresult wait_event(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& shared) {
  Event& event = *shared;
  std::shared_ptr<Capture> of_event;
  std::vector<CUgraphNode> nodes;
  bool recorded = false;
  Mark mark;
  {
    const std::lock_guard lock(event.mutex);
    of_event = event.capture;
    nodes = event.capture_nodes;
    recorded = event.recorded;
    mark = event.mark;
  }
  const auto of_stream = capture_of(*stream);
  if (!of_event) {
    if (of_stream) {
      spoil(*of_stream);
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (const CUresult error = refuse_implicit(*stream); error != CUDA_SUCCESS) return error;
    if (!recorded) return CUDA_SUCCESS;
    return give(stream, [stream, shared, mark] {
      mark.wait();
      place(*stream, 0, time_of(*shared));
      return CUDA_SUCCESS;
    });
  }
  if (of_stream && of_stream != of_event) {
    spoil(*of_stream);
    spoil(*of_event);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream->kind == Stream::Kind::kLegacyDefault) {
    spoil(*of_event);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  {
    const std::lock_guard lock(of_event->mutex);
    if (of_event->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    auto& tail = of_event->tails[stream.get()];
    for (const CUgraphNode handle : nodes) {
      auto* node = reinterpret_cast<GraphNode*>(handle);
      if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
    }
    if (!of_stream) of_event->participants.push_back(stream);
  }
  if (!of_stream) join(stream, of_event);
  return CUDA_SUCCESS;
}

CUresult refuse_in_capture(Stream& stream) {
  if (const auto capture = capture_of(stream)) {
    spoil(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return refuse_implicit(stream);
}

CUresult refuse_in_context_capture(const Context& context) {
  return spoil_captures_in(
      context, [](const Stream&) { return true; }, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult refuse_unsafe_call() {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const auto hit = ongoing([](const Capture& capture) {
    if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (capture.thread == std::this_thread::get_id()) return true;
    return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  });
  for (const auto& capture : hit) spoil(*capture);
  return hit.empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUstreamCaptureMode exchange_thread_mode(CUstreamCaptureMode mode) {
  return std::exchange(thread_mode, mode);
}

}  // namespace simgpu
