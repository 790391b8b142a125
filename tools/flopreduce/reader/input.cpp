#include "reader/input.h"

#include <decompress.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "edit_distance.h"
#include "reader/columns.h"
#include "reader/import_child.h"
#include "reader/packet_reader.h"
#include "shell_word.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

InputError error_for(const std::string& path, const std::string& what, int code) {
  return {printable(path) + ": " + what, code == EACCES || code == EPERM};
}

// Programs that print what a URL names, which goes in the place of "*".
constexpr std::pair<std::string_view, std::string_view> kFetching[] = {
    {"s3://", "aws s3 cp * -"},
    {"gs://", "gcloud storage cat *"},
    {"http://", "curl -fsSL *"},
    {"https://", "curl -fsSL *"}};

// "curl -fsSL https://host/run.pb | flopinj report -"; empty where `name` is no URL.
std::string fetched(const std::string& name) {
  for (const auto& [begin, program] : kFetching)
    if (const size_t star = program.find('*'); name.starts_with(begin))
      return std::string(program.substr(0, star)) + shell_quoted(name) +
             std::string(program.substr(star + 1)) + " | " + typed("report -");
  return "";
}

// A file that is no trace, by the bytes with which it begins, or has at `at`.
constexpr const char* kTraces = "flopinj run writes traces (flop-PID.pb)";
struct OtherFile {
  size_t at;
  std::string_view bytes;
  const char *is, *instead = kTraces;
};
constexpr OtherFile kOtherFiles[] = {
    {257, "ustar", "an archive", "unpack it (tar xf), and give the traces in it"},
    {0, "PK\3\4", "a zip file (torch.save writes one, too)", "unzip it, and give the traces in it"},
    {0, "version https://git-lfs", "a pointer of Git LFS", "git lfs pull fetches the trace"},
    {0, "\x80\2", "a pickle of Python's"},
    {0, "\x80\3", "a pickle of Python's"},
    {0, "\x80\4", "a pickle of Python's"},
    {0, "\x80\5", "a pickle of Python's"},
    {0, "\177ELF", "a program", "flopinj run -- ./PROGRAM records it"},
    {0, "\x93NUMPY", "an array of NumPy's"},
    {0, "\x89HDF", "an HDF5 file"},
    {0, "PAR1", "a table of Parquet", "flopinj fleet sql asks a table of a lake"},
    {0, "%PDF", "a PDF"},
    {0, "\x89PNG", "a picture"}};

// Null: it may be a trace, which begins with a line feed.
const OtherFile* other_file(std::string_view first) {
  if (first.starts_with('\n')) return nullptr;
  for (const OtherFile& other : kOtherFiles)
    if (first.size() > other.at && first.substr(other.at).starts_with(other.bytes)) return &other;
  return nullptr;
}

// JSON that this program has written.
bool is_own_json(std::string_view first) {
  constexpr size_t kLooked = 200;
  const std::string_view head = first.substr(0, kLooked);
  return first.starts_with('{') &&
         (head.find("\"producer\":\"flopinj") != head.npos ||
          (head.find("\"schema_version\":") != head.npos && head.find("\"screen\":") != head.npos));
}

// What may have been meant by a name that nothing has: the nearest name beside it, else the traces
// there are. Of many missing files only the first ones are looked for, as lists can be long.
std::string instead_of(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr size_t kMostLooked = 10'000, kLongest = 100, kShown = 3, kMostPath = 4096;
  static std::atomic<int> left = 3;
  const std::string name = fs::path(path).filename().string();
  std::error_code error;
  if (name.find('*') != name.npos) return ": no name fits the pattern";
  if (path.size() > kMostPath || left-- <= 0) return "";
  for (const char between : {' ', ','})
    if (const auto parts = parts_of(path, between);
        std::ranges::all_of(parts, [&](auto part) { return fs::exists(std::string(part), error); }))
      return ": " + std::to_string(parts.size()) + " names are one word here: " +
             typed("report " + joined(parts, " ", [](auto part) {
                     return shell_quoted(printable(std::string(part)));
                   }));
  if (path.starts_with("~/"))
    return ": a shell expands ~ where it is not in quotes: leave the quotes out";
  if (const size_t colon = path.find(":/");
      colon != path.npos && colon > 0 && path.find('/') == colon + 1)
    return ": nothing is fetched: scp " + printable(path) + " . copies it";
  if (name.size() > kLongest) return "";
  const fs::path folder = fs::path(path).parent_path();
  if (!fs::is_directory(folder.empty() ? "." : folder, error))
    return ": there is no folder " + printable(folder.string());
  std::vector<std::string> traces;
  std::pair<size_t, std::string> nearest{std::max<size_t>(2, name.size() / 4) + 1, ""};
  size_t looked = 0;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end;
       !error && at != end && ++looked <= kMostLooked; at.increment(error)) {
    const std::string other = at->path().filename().string();
    if (is_trace_name(other)) traces.push_back((folder / other).string());
    if (other.size() <= kLongest)
      nearest = std::min(nearest, std::pair{edit_distance(name, other), (folder / other).string()});
  }
  if (!nearest.second.empty()) return ": did you mean " + printable(nearest.second) + "?";
  std::sort(traces.begin(), traces.end());
  return traces.empty() ? "; flopinj run makes a trace (flop-PID.pb)"
                        : "; traces there: " + first_few(traces, kShown, printable);
}

InputError open_error(const std::string& path, int code) {
  if (const std::string line = fetched(path); code == ENOENT && !line.empty())
    return error_for(path, "nothing is fetched: " + printable(line), code);
  if (code == ENOENT) return error_for(path, "no such file" + instead_of(path), code);
  if (code == EACCES || code == EPERM)
    return error_for(path, "permission denied: read it as the user who recorded it", code);
  return error_for(path, std::string("cannot be opened: ") + std::strerror(code), code);
}

int open_spool() {
  const char* dir = std::getenv("TMPDIR");
  const std::string folder = dir != nullptr && *dir != '\0' ? dir : "/tmp";
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string name = folder + "/flopreduce-XXXXXX";  // file systems without O_TMPFILE
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// To open a file again takes longer than to read so few bytes of it.
constexpr uint64_t kSmallFile = 16U << 10;
constexpr uint64_t kMostKept = 16U << 20;  // of all small files
std::atomic<uint64_t> kept_bytes{0};

// All of a small file, with room for kReadAhead bytes more.
std::string first_bytes(int fd) {
  std::array<char, kSmallFile> bytes;
  const auto size =
      static_cast<size_t>(std::max<ssize_t>(::pread(fd, bytes.data(), bytes.size(), 0), 0));
  std::string first;
  first.reserve(size + kReadAhead);
  first.append(bytes.data(), size);
  return first;
}

// The first bytes as they were before compression, and back to the file's beginning.
std::string first_decompressed(int fd) {
  DecompressedStream stream(fd);
  std::array<char, 4096> bytes;
  size_t filled = 0;
  for (ssize_t count = 1; count > 0 && filled < bytes.size();) {
    count = stream.read(bytes.data() + filled, bytes.size() - filled);
    filled += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  ::lseek(fd, 0, SEEK_SET);
  return {bytes.data(), filled};
}

bool is_of_text(char c) { return c == '\n' || c == '\t' || c == '\r' || (c >= ' ' && c <= '~'); }

// A stream that may never end is looked at each time that so much of it has been copied.
constexpr uint64_t kLookAfter = 32U << 20;
static_assert(kLookAfter >= 4 * uint64_t{kMaxPacketBytes});

}  // namespace

// Copies everything from `from` into a new temporary file, decompressed where it is compressed.
// Ends where kLookAfter bytes have held no packet at all, as those of /dev/zero, and where
// compressed bytes are damaged: what came before is read like any damaged trace.
std::optional<InputError> Input::spool(int from, bool again) {
  fd_ = open_spool();
  const auto failed = [&] {
    return error_for(
        name_,
        std::string("cannot be copied to a temporary file (set TMPDIR): ") + std::strerror(errno),
        0);
  };
  if (fd_ < 0) return failed();
  DecompressedStream stream(from);
  std::vector<char> buffer(1U << 20);
  uint64_t copied = 0, looked_at = 0;
  while (!again || copied < size_) {
    const ssize_t n = stream.read(buffer.data(), buffer.size());
    if (stream.damaged()) failed_ = true;
    if (n == 0) return std::nullopt;
    if (n < 0 || !write_all(fd_, buffer.data(), static_cast<size_t>(n))) return failed();
    copied += static_cast<uint64_t>(n);
    if (again) continue;
    size_ = copied;
    if (size_ - looked_at < kLookAfter) continue;
    DamageLog ignored;
    Packet packet;
    if (!PacketReader(*this, ignored, Batches::kCheck, looked_at).next(packet)) {
      if (looked_at > 0) return std::nullopt;
      return error_for(name_,
                       "is no trace: no packet with a right check sum is in its first 32 MiB", 0);
    }
    looked_at = size_;
  }
  return std::nullopt;
}

bool is_trace_name(const std::string& name) {
  const std::filesystem::path path = name;
  const bool packed = path.extension() == ".gz" || path.extension() == ".zst";
  const std::filesystem::path kind = packed ? path.stem().extension() : path.extension();
  return kind == ".pb" || kind == ".sum" || name.ends_with(".pt.trace.json") ||
         name.ends_with(".pt.trace.json.gz");
}

std::string folders_with_traces(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr size_t kMostLooked = 100'000, kShown = 3;
  std::vector<std::string> found;
  size_t looked = 0, without = 0;
  std::error_code error, ignored;
  for (fs::directory_iterator at(folder, error), end;
       !error && at != end && ++looked <= kMostLooked; at.increment(error)) {
    if (!at->is_directory(ignored)) continue;
    bool any = false;
    std::error_code of_child;
    for (fs::directory_iterator in(at->path(), of_child), last; !of_child && in != last && !any;
         in.increment(of_child))
      any = ++looked <= kMostLooked && is_trace_name(in->path().string());
    if (any)
      found.push_back(at->path().lexically_normal().string());
    else
      ++without;
  }
  if (found.empty()) return "";
  std::sort(found.begin(), found.end());
  const std::string pattern = (fs::path(folder) / "*").lexically_normal().string();
  const bool all = without == 0 && looked <= kMostLooked && found.size() > 1;
  return (found.size() == 1 ? std::string("; a folder in it has: ")
                            : "; " + to_grouped(found.size()) + " folders in it have: ") +
         (all ? printable(pattern) : first_few(found, kShown, printable));
}

std::variant<std::unique_ptr<Input>, InputError> Input::open(const std::string& path,
                                                             const std::string& counters) {
  std::unique_ptr<Input> input(new Input);
  const bool standard_input = path == "-";
  input->name_ = standard_input ? "standard input" : path;
  input->fd_ =
      standard_input ? ::fcntl(0, F_DUPFD_CLOEXEC, 3) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (input->fd_ < 0) return open_error(input->name_, errno);
  struct stat info {};
  if (::fstat(input->fd_, &info) != 0) return open_error(input->name_, errno);
  if (S_ISDIR(info.st_mode)) {
    if (std::error_code no; std::filesystem::exists(path + "/flopinj-lake.json", no))
      return error_for(
          path,
          "is a lake of flopinj fleet: flopinj fleet jobs --lake " + shell_quoted(printable(path)),
          EISDIR);
    std::string others = folders_with_traces(path);
    if (others.empty()) others = "; flopinj run -o " + printable(path) + "/NAME.pb records into it";
    return error_for(path, "is a directory with no trace in it (*.pb, *.sum)" + others, EISDIR);
  }
  std::string first;
  if (S_ISREG(info.st_mode)) first = first_bytes(input->fd_);
  input->compressed_ = is_compressed(reinterpret_cast<const uint8_t*>(first.data()), first.size());
  const bool file = S_ISREG(info.st_mode) && !standard_input;
  if (input->compressed_ && file) first = first_decompressed(input->fd_);
  if (const OtherFile* const other = other_file(first); other != nullptr)
    return error_for(input->name_,
                     std::string("is no trace: it is ") + other->is + "; " + other->instead, 0);
  if (file && is_own_json(first))
    return error_for(
        path, "is a report of flopinj's as JSON; give the trace that it was made of (*.pb)", 0);
  if (file && (has_foreign_name(path) || may_be_foreign(first)))
    return import(std::move(input), path, counters);
  if (!counters.empty())
    return error_for(input->name_,
                     "--counters are for a recording of torch.profiler or Nsight Systems, and it "
                     "is none",
                     0);
  if (!S_ISREG(info.st_mode) || standard_input || input->compressed_) {
    const int stream = input->fd_;
    auto error = input->spool(stream, false);
    ::close(stream);
    if (error) return std::move(*error);
  } else {
    input->size_ = static_cast<uint64_t>(info.st_size);
  }
  if (file) {
    input->regular_ = true;
    input->device_ = info.st_dev;
    input->inode_ = info.st_ino;
    if (!input->compressed_ && first.size() == input->size_) input->keep(std::move(first));
  }
  if (input->size_ == 0)
    return error_for(input->name_,
                     "is empty: nothing was recorded, or the file was cut; flopinj doctor says "
                     "whether programs can be recorded here",
                     0);
  return input;
}

// What flopimport makes of a file stays in a temporary one.
std::variant<std::unique_ptr<Input>, InputError> Input::import(std::unique_ptr<Input> input,
                                                               const std::string& path,
                                                               const std::string& counters) {
  ::close(input->fd_.exchange(-1));
  ImportChild child(path, counters);
  if (child.trace() < 0) return InputError{child.error()};
  if (auto error = input->spool(child.trace(), false)) return std::move(*error);
  if (!child.finish()) return InputError{child.error()};
  input->compressed_ = false;
  return input;
}

std::unique_ptr<Input> Input::from_memory(std::string name, const void* bytes, size_t size) {
  std::unique_ptr<Input> input(new Input);
  input->name_ = std::move(name);
  input->memory_.assign(static_cast<const char*>(bytes), size).append(kReadAhead, '\0');
  input->in_memory_ = true;
  input->size_ = size;
  return input;
}

// Where there is no room the file is read as others are.
void Input::keep(std::string bytes) {
  if (kept_bytes + size_ > kMostKept) return;
  memory_ = std::move(bytes.append(kReadAhead, '\0'));
  kept_bytes += size_;
  in_memory_ = is_kept_ = true;
  ::close(fd_.exchange(-1));
}

// By the kernel's list of locks: to try the lock could keep a recorder from getting it.
bool Input::being_written() const {
  if (!regular_) return false;
  const std::string file =
      printed(" %02x:%02x:%" PRIu64 " ", major(device_), minor(device_), inode_);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);)
    if (line.find(": FLOCK ") != line.npos && line.find(" WRITE ") != line.npos &&
        line.find(file) != line.npos)
      return true;
  return false;
}

Input::~Input() {
  if (fd_ >= 0) ::close(fd_);
  if (is_kept_) kept_bytes -= size_;
}

void Input::begin_reading() {
  if (!regular_ || in_memory_) return;
  const std::scoped_lock lock(mutex_);
  if (readers_++ > 0 || fd_ >= 0) return;
  const int fd = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd >= 0 && ::fstat(fd, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_) {
    if (!compressed_) {
      fd_ = fd;
      return;
    }
    if (spool(fd, true)) failed_ = true;
    ::close(fd);
    return;
  }
  if (fd >= 0) ::close(fd);
  failed_ = true;
}

void Input::end_reading() {
  if (!regular_ || in_memory_) return;
  const std::scoped_lock lock(mutex_);
  if (--readers_ > 0) return;
  if (const int fd = fd_.exchange(-1); fd >= 0) ::close(fd);
}

std::string Input::not_a_trace() {
  std::array<uint8_t, 64> head{};
  const size_t size = read_at(0, head.data(), head.size());
  size_t at = 0;
  while (at < size && std::strchr(" \t\r\n", head[at]) != nullptr && head[at] != 0) ++at;
  if (at < size && (head[at] == '{' || head[at] == '['))
    return "is JSON, not a trace: a recording of another profiler's has to be a file";
  if (is_compressed(head.data(), size)) return "is compressed twice: decompress it once";
  std::string_view text(reinterpret_cast<const char*>(head.data()), size);
  const std::string start = lower(std::string(text.substr(at, 5)));
  if (start == "<!doc" || start == "<html")
    return "is no trace: it is a page for a browser; give the trace that it was made of (*.pb)";
  const bool is_text = std::ranges::all_of(text, is_of_text);
  return std::string("is no trace: ") +
         (is_text ? "it is text; " : "no packet with a right check sum is in it; ") + kTraces;
}

size_t Input::read_at(uint64_t offset, uint8_t* to, size_t size) {
  if (offset >= size_) return 0;
  size = static_cast<size_t>(std::min<uint64_t>(size, size_ - offset));
  if (in_memory_) {
    std::memcpy(to, memory_.data() + offset, size);
    return size;
  }
  const Reading reading(*this);
  if (fd_ < 0) return 0;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd_, to + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failed_ = true;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

}  // namespace flopinj::reduce
