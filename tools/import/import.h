// One file of another profiler's, as a trace: one recording behind another, where it has several
// processes.
#pragma once
#include <collector/trace/sink/sink.h>

#include <cstdint>
#include <functional>
#include <string>

namespace flopinj::import {

struct ImportOptions {
  std::string gpu;       // name of the devices, where the file does not say it
  std::string counters;  // a file of Nsight Compute, of the same program; empty: none
};

struct Imported {
  std::string error;     // one line, which says what to do; empty: there is a trace
  std::string profiler;  // that recorded it: "torch.profiler"
  uint64_t processes = 0, launches = 0;
};

// `open` is called once the file has been understood, so that no trace is begun of one that is not.
// "-" is standard input. Throws std::bad_alloc alone.
Imported import_file(const std::string& file, const ImportOptions&,
                     const std::function<OpenedSink()>& open);

}  // namespace flopinj::import
