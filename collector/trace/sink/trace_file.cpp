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
  constexpr uint32_t kMostTries = 100;
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
  for (uint32_t number = name.of_process ? 2 : 1; opened.exists && number <= kMostTries; ++number) {
    trace.name = number == 1 ? own : extended_output_name(own, std::to_string(number));
    opened = open_sink(trace.name, options);
  }
  if (opened.sink && trace.name != name.name && !name.of_process)
    trace.notice =
        name.name + " is there already and is kept: this process records to " + trace.name;
  trace.sink = std::move(opened.sink);
  trace.error = std::move(opened.error);
  return trace;
}

}  // namespace flopinj
