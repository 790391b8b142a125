// Where no trace is named: those of the newest run in the current folder. Only the first packet of
// each is read, its header.
#include <decompress.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <list>
#include <optional>

#include "commands/arguments/arguments.h"
#include "reader/input.h"
#include "reader/message.h"
#include "reader/packet_reader.h"
#include "report/runs.h"

namespace flopinj::reduce {
namespace {

// The first bytes of a file, decompressed, and when it was last written to.
struct Beginning {
  std::string bytes;
  uint64_t written_ns = 0;
};

std::optional<Beginning> beginning_of(const std::string& name, size_t most) {
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  Beginning found;
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    found.written_ns = static_cast<uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000 +
                       static_cast<uint64_t>(info.st_mtim.tv_nsec);
    found.bytes.resize(most);
    DecompressedStream stream(fd);
    size_t read = 0;
    while (read < most) {
      const ssize_t size = stream.read(found.bytes.data() + read, most - read);
      if (size <= 0) break;
      read += static_cast<size_t>(size);
    }
    found.bytes.resize(read);
  }
  ::close(fd);
  return found;
}

// Nothing where the file does not begin with the header of a recording, or cannot be read.
std::optional<trace::Header> header_in(const std::string& name, const Beginning& beginning) {
  const auto input = Input::from_memory(name, beginning.bytes.data(), beginning.bytes.size());
  DamageLog ignored;
  Packet packet;
  trace::Header header;
  if (!PacketReader(*input, ignored, Batches::kCheck).next(packet) ||
      packet.body_field != trace::TracePacket::kHeaderFieldNumber ||
      !parse_message(header, packet.body) || header.clock_realtime_ns() == 0)
    return std::nullopt;
  return header;
}

}  // namespace

std::vector<std::string> newest_run(const std::vector<std::string>& traces) {
  constexpr size_t kUsual = 64U << 10, kMost = kMaxPacketBytes + 64;
  std::list<trace::Header> headers;
  std::vector<RecordedProcess> recordings;
  std::vector<std::string> names;
  for (const std::string& name : traces)
    for (const size_t most : {kUsual, kMost}) {
      const auto beginning = beginning_of(name, most);
      if (!beginning) break;
      if (auto header = header_in(name, *beginning)) {
        headers.push_back(std::move(*header));
        recordings.emplace_back(headers.back()).end_ns = beginning->written_ns;
        names.push_back(name);
        break;
      }
      if (beginning->bytes.size() < most) break;
    }
  const Runs found = runs_of(recordings, SIZE_MAX);
  std::vector<std::string> newest;
  for (size_t i = 0; i < names.size(); ++i)
    if (found.of[i] + 1 == found.runs.size()) newest.push_back(names[i]);
  return newest;
}

}  // namespace flopinj::reduce
