// Launches on a time line, as JSON in the Trace Event Format, which Perfetto (ui.perfetto.dev) and
// chrome://tracing open. Format: "Trace Event Format", Google,
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once
#include <cstdint>
#include <ostream>
#include <string_view>

#include "passes/launches.h"

namespace flopinj::reduce {

struct TraceEventOptions {
  std::string_view program;
  int fma = 2;
  // Launches that ran in this time, since the first recording began.
  uint64_t begin_ns = 0, end_ns = UINT64_MAX;
};

// One process of the format for each device of each recorded process: counters of FLOP/s and, where
// peaks are known, of HFU; a track of training steps; and for each of its streams three tracks,
// NVTX ranges (projected_ranges.h), phases, and launches, each one complete event ("X"). Launches
// of a track never overlap: what ran beside another launch of its stream (nodes of a graph) goes to
// further tracks of that stream. Written as read: memory is bounded, whatever the number of
// launches.
//
// Times are microseconds since the first recording began, with three decimals: exact nanoseconds.
// FLOP above 2^53 are decimal strings. Returns how many launches were written.
uint64_t write_trace_events(std::ostream& out, Launches& launches,
                            const TraceEventOptions& options);

// Launches that run at one time on one stream: as many as GPUs can run (CUDA C++ Programming Guide,
// "Maximum number of resident grids per device"). What goes beyond is left out.
inline constexpr size_t kMostLanes = 128;
// Launches that are put in the order of their start before they are written.
inline constexpr size_t kReordered = 1U << 18;

}  // namespace flopinj::reduce
