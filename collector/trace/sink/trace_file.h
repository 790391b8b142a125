// Where a process writes its trace: the name that it was given, or one beside it that is its own.
// Processes of one job never share a file, and none is overwritten that another of them wrote.
#pragma once
#include <collector/trace/sink/output_name.h>
#include <collector/trace/sink/sink.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace flopinj {

struct OpenedTrace {
  std::unique_ptr<Sink> sink;  // null on failure
  std::string error;           // one line that says what to do
  std::string name;            // as it was opened
  std::string others;  // shell pattern for it and the job's other ranks; empty: there is none
  std::string notice;  // one line for the user where the name is not the one expected
};

// The name that `pattern` gives a process, before a file that is there is looked at. In a job of
// several ranks (`world_size` is not 1: 0 is unknown) a file's name gets the rank where it has
// neither the rank, nor the process id, nor a variable: "trace.rank3.pb".
OutputName trace_name(std::string_view pattern, const OutputNameContext&, uint32_t world_size);

// A name that is taken gets the process id, "trace.pid17.pb". Where it has that already the file is
// one of this process before an exec(), or of an earlier process with that id: a number is added.
OpenedTrace open_trace(std::string_view pattern, const OutputNameContext&, uint32_t world_size,
                       const SinkOptions&);

}  // namespace flopinj
