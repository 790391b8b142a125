// The events of a file in Chrome's trace event format, one after another: a list of objects, or an
// object whose member "traceEvents" is that list. Its other members may come before or after it.
//
// The file is read in windows: memory is bounded by the largest single event.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace flopinj::import {

struct JsonEventReader {
  // At least one byte; 0 at the end; -1 with errno.
  std::function<ssize_t(char* to, size_t size)> read;
  // Each is given its text, which is whole and balanced, for as long as the call lasts.
  std::function<void(std::string_view event)> event;
  std::function<void(std::string_view name, std::string_view value)> member;
};

struct JsonEventsResult {
  std::string error;  // of reading, or that the file is no such list: one line
  bool cut = false;   // the file ends before its list does; what was before is used
};
JsonEventsResult read_json_events(const JsonEventReader&);

}  // namespace flopinj::import
