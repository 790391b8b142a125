#include <collector/trace/sink/trace_file.h>
#include <sys/stat.h>

namespace flopinj {
namespace {

// False for standard output, sockets, and for FIFOs and devices that are there.
bool names_file(const std::string& name) {
  if (name == "-" || name.starts_with("unix:")) return false;
  struct stat status {};
  return ::stat(name.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

std::string rank_part(const std::string& rank) { return "rank" + rank; }

bool lacks_rank(const OutputName& name, const OutputNameContext& context, uint32_t world_size) {
  return context.rank >= 0 && world_size != 1 && !name.of_process && !name.of_rank &&
         names_file(name.name);
}

std::string numbered(const std::string& own, uint32_t number) {
  return number == 1 ? own : extended_output_name(own, std::to_string(number));
}

bool is_there(const std::string& name) {
  struct stat status {};
  return ::lstat(name.c_str(), &status) == 0;
}

// A number after `taken` that no file has: the first such, where all before it are taken.
uint32_t free_number(const std::string& own, uint32_t taken) {
  constexpr uint32_t kMost = 1U << 30;
  uint32_t free = 2 * taken;
  for (; free < kMost && is_there(numbered(own, free)); free *= 2) taken = free;
  while (free - taken > 1) {
    const uint32_t middle = taken + (free - taken) / 2;
    (is_there(numbered(own, middle)) ? taken : free) = middle;
  }
  return free;
}

}  // namespace

OutputName trace_name(std::string_view pattern, const OutputNameContext& context,
                      uint32_t world_size) {
  OutputName name = expand_output_name(pattern, context);
  if (name.error.empty() && lacks_rank(name, context, world_size))
    name.name = extended_output_name(name.name, rank_part(std::to_string(context.rank)));
  return name;
}

OpenedTrace open_trace(std::string_view pattern, const OutputNameContext& context,
                       uint32_t world_size, const SinkOptions& options) {
  constexpr uint32_t kMostInTurn = 100, kMostTries = 110;
  const OutputName plain = expand_output_name(pattern, context);
  const OutputName name = trace_name(pattern, context, world_size);
  OpenedTrace trace;
  trace.name = name.name;
  if (!name.error.empty()) {
    trace.error = "FLOPINJ_OUTPUT: " + name.error;
    return trace;
  }
  if (name.name != plain.name) trace.others = extended_output_name(plain.name, rank_part("*"));
  OpenedSink opened = open_sink(name.name, options);
  const std::string own =
      name.of_process ? name.name
                      : extended_output_name(name.name, "pid" + std::to_string(context.pid));
  uint32_t number = name.of_process ? 2 : 1;
  for (uint32_t tries = 1; opened.exists && tries <= kMostTries; ++tries) {
    trace.name = numbered(own, number);
    opened = open_sink(trace.name, options);
    number = tries < kMostInTurn ? number + 1 : free_number(own, number);
  }
  if (opened.sink && trace.name != name.name && !name.of_process)
    trace.notice =
        name.name + " is there already and is kept: this process records to " + trace.name;
  trace.sink = std::move(opened.sink);
  trace.error = std::move(opened.error);
  return trace;
}

}  // namespace flopinj
