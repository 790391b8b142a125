// Stream capture: work given to a capturing stream becomes graph nodes. Other streams join by
// waiting for an event recorded in a capturing stream, and must be joined back the same way before
// the capture ends.
#pragma once
#include <unordered_map>

#include "driver/graphs/graph.h"

namespace simgpu {

struct Capture {
  uint64_t id = 0;  // unique per process
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  std::shared_ptr<Graph> graph;
  bool own_graph = true;  // it is new, and goes with a capture that fails
  Stream* origin = nullptr;

  std::mutex mutex;
  bool invalidated = false;
  // The streams taking part, and the nodes that each one's next work comes behind.
  std::unordered_map<Stream*, std::vector<GraphNode*>> tails;
  // The handles of a tail as the program was last told them, which it may read until it asks again.
  std::unordered_map<Stream*, std::vector<CUgraphNode>> told;
  std::vector<std::shared_ptr<Stream>> participants;
};

// Into a new graph, or into one that is there, behind some of its nodes.
CUresult begin_capture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
                       std::shared_ptr<Graph> graph = nullptr,
                       const std::vector<GraphNode*>& behind = {});
CUresult end_capture(Stream& stream, CUgraph* graph);
std::shared_ptr<Capture> capture_of(Stream& stream);  // null when not capturing

// Of a stream: its capture, and which nodes its next work comes behind.
struct CaptureState {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // Of an active one alone. The nodes are there until the stream is asked again, or the end.
  uint64_t id = 0;
  CUgraph graph = nullptr;
  std::span<const CUgraphNode> behind;
};
CaptureState capture_state(Stream& stream);
// The stream's next work comes behind these nodes of the graph: too, or with `set` instead.
CUresult put_behind(Stream& stream, std::span<const CUgraphNode> nodes, bool set);

// Gives work to the stream: as a node if it is capturing, else run now. Work on the legacy default
// stream while a stream that synchronises with it is capturing is
// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT and spoils the capture.
CUresult submit(const std::shared_ptr<Stream>& stream, NodeWork work);

CUresult record_event(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event);
CUresult wait_event(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event);

// For calls that cannot be captured (synchronise, query): spoils the stream's capture, if there is
// one, and says so.
CUresult refuse_in_capture(Stream& stream);
// The same for a whole context, and for the calls that a capture in global mode forbids everywhere
// and one in thread-local mode on its own thread (allocation).
CUresult refuse_in_context_capture(const Context& context);
CUresult refuse_unsafe_call();
// Exchanges the thread's mode for refuse_unsafe_call().
CUstreamCaptureMode exchange_thread_mode(CUstreamCaptureMode mode);

}  // namespace simgpu
