// What the program does to graphs and captures, as calls of the driver say it.
#pragma once
#include <cuda.h>
#include <injector/vendor/launch_calls.h>

#include <cstdint>
#include <span>

namespace flopinj {

enum class GraphAction : uint8_t {
  kAddKernel,       // a node, by hand
  kSetKernel,       // new parameters for a node of a graph
  kAddChild,        // a node that holds a copy of another graph
  kAddConditional,  // a node with graphs of its own, its bodies
  kInstantiate,
  kSetExecKernel,  // new parameters for a node of an executable graph
  kSetExecChild,
  kSetAttribute,  // of a kernel node of a graph: what is part of a launch's shape
  kTell,          // the program the parameters of a kernel node: its handle may be the driver's own
  kEnable,        // a node of an executable graph on or off
  kUpdate,        // all parameters of an executable graph from another graph
  kBeginCapture,  // of a stream
  kEndCapture,
};

// What a call was given. Only the fields of its action are set. Out parameters are valid at EXIT.
struct GraphCall {
  GraphAction action;    // the function's, or another one where it adds any type of node
  bool relevant = true;  // false: a node of a type that runs no kernels
  CUgraph graph = nullptr;
  CUgraph other = nullptr;  // the child; the source of an update
  CUgraphNode node = nullptr;
  CUgraphNode source = nullptr;  // of attributes that are copied
  CUgraphExec exec = nullptr;
  CUkernel kernel = nullptr;  // where kernel_call.function is null
  LaunchCall kernel_call;
  bool enabled = true;
  CUstream stream = nullptr;        // of a capture; CU_STREAM_PER_THREAD for the thread's own
  std::span<const CUgraph> bodies;  // of a conditional node; the driver's
  bool for_device = false;          // an executable graph that kernels may launch
};

}  // namespace flopinj
