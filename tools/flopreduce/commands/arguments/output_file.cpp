#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <new>
#include <optional>
#include <streambuf>
#include <string_view>
#include <utility>

#include "commands/arguments/arguments.h"
#include "own_user.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Of a regular file; of nothing else can it be said that reading and writing it meet.
std::optional<struct stat> file_state(const std::string& path) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return std::nullopt;
  return state;
}
std::optional<struct stat> file_state(int descriptor) {
  struct stat state {};
  if (::fstat(descriptor, &state) != 0 || !S_ISREG(state.st_mode)) return std::nullopt;
  return state;
}

bool same_file(const std::optional<struct stat>& a, const std::optional<struct stat>& b) {
  return a && b && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool is_standard_output(const std::string& file) {
  return file.empty() || file == "/dev/stdout" || file == "/dev/fd/1" || file == "/proc/self/fd/1";
}

// A new file beside `place`, which a symbolic link is followed to. Removed unless it was moved.
class Beside {
 public:
  explicit Beside(const std::string& file) {
    std::error_code error;
    const auto place = std::filesystem::weakly_canonical(file, error);
    place_ = error ? std::filesystem::path(file) : place;
    const auto old = file_state(place_.string());
    constexpr int kAttempts = 100;
    for (int i = 0; i < kAttempts && name_.empty(); ++i) {
      const std::string name =
          place_.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp";
      const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor < 0 && errno == EEXIST) continue;
      if (descriptor < 0) return;
      name_ = name;
      if (old && is_own_user(old->st_uid))
        static_cast<void>(::fchmod(descriptor, old->st_mode & 0777));
      ::close(descriptor);
    }
  }
  ~Beside() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  const std::string& name() const { return name_; }  // empty where none could be made
  // False and errno: EEXIST where `force` is not given and there is a file by now.
  bool move(bool force) {
    const unsigned flags = force ? 0 : RENAME_NOREPLACE;
    int failed = ::renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, place_.c_str(), flags);
    // Some file systems know no flags.
    if (failed != 0 && !force && (errno == EINVAL || errno == ENOSYS)) {
      errno = EEXIST;
      failed = file_state(place_.string()) ? -1 : ::rename(name_.c_str(), place_.c_str());
    }
    if (failed != 0) return false;
    name_.clear();
    return true;
  }

 private:
  std::filesystem::path place_;
  std::string name_;
};

// Forms of a report, by the endings of files' names.
struct NameOfForm {
  std::string_view ending;
  const char* form;
  const char* made;  // what a command says that makes traces, and none of it; null: nothing
};
constexpr NameOfForm kNamesOfForms[] = {{".html", "html", "a page"},   {".htm", "html", nullptr},
                                        {".json", "json", "JSON"},     {".csv", "csv", "tables"},
                                        {".md", "markdown", "text"},   {".db", "sqlite", nullptr},
                                        {".sqlite", "sqlite", nullptr}};
// Forms that no command writes, and what there is instead.
constexpr std::pair<std::string_view, const char*> kOthersForms[] = {
    {".pdf", "--format html makes a page, which a browser prints to PDF"},
    {".png", "--format html makes a page with pictures"},
    {".svg", "--format html makes a page with pictures"},
    {".xlsx", "--format csv makes tables for a spreadsheet"},
    {".parquet", "flopinj fleet ingest makes tables of Parquet"}};

const char* remedy_of(int code) {
  switch (code) {
    case ENOENT:
      return "; make the folder first";
    case EISDIR:
      return "; name a file in it";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose another folder";
    case ENOSPC:
    case EDQUOT:
      return "; make room, or choose another disk";
    case EFBIG:
      return "; raise the limit (ulimit -f), or choose a smaller form";
    default:
      return "";
  }
}

int cannot_write(const std::string& file, int code) {
  complain(printable(file) + ": cannot be written: " +
           (code != 0 ? std::strerror(code) : "write failed") + remedy_of(code));
  return code == EACCES || code == EPERM || code == EROFS ? kExitPermission : kExitUsage;
}

// A stream that compresses into another one (gzip, RFC 1952).
class GzipBuffer : public std::streambuf {
 public:
  explicit GzipBuffer(std::ostream& to) : to_(to) {
    constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
    if (deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
    setp(in_.data(), in_.data() + in_.size());
  }
  ~GzipBuffer() override { deflateEnd(&zlib_); }
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;
  void finish() { deflate_all(Z_FINISH); }  // the last bytes; what comes after is lost

 protected:
  int_type overflow(int_type c) override {
    if (!deflate_all(Z_NO_FLUSH)) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override { return 0; }  // a flush inside would cost size

 private:
  bool deflate_all(int flush) {
    zlib_.next_in = reinterpret_cast<Bytef*>(pbase());
    zlib_.avail_in = static_cast<uInt>(pptr() - pbase());
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(out_.data());
      zlib_.avail_out = static_cast<uInt>(out_.size());
      deflate(&zlib_, flush);
      to_.write(out_.data(), static_cast<std::streamsize>(out_.size() - zlib_.avail_out));
    } while (zlib_.avail_out == 0);
    setp(in_.data(), in_.data() + in_.size());
    return to_.good();
  }

  std::ostream& to_;
  z_stream zlib_{};
  std::array<char, 1U << 16> in_{}, out_{};
};

using Write = std::function<void(std::ostream&)>;

// The same, compressed.
Write gzipped(const Write& write) {
  return [&write](std::ostream& out) {
    GzipBuffer buffer(out);
    std::ostream compressed(&buffer);
    write(compressed);
    buffer.finish();
  };
}

bool write_file(const std::string& name, const Write& write) {
  std::ofstream file(name, std::ios::binary | std::ios::trunc);
  if (file) {
    write(file);
    file.close();
  }
  return static_cast<bool>(file);
}

}  // namespace

int write_output(const OutputArguments& output, const Write& write_plain) {
  const std::string& file = output.file;
  const Write write = file.ends_with(".gz") ? gzipped(write_plain) : write_plain;
  if (is_standard_output(file)) {
    errno = 0;
    write(std::cout);
    std::cout.flush();
    if (std::cout) return kExitFine;
    complain("standard output cannot be written" +
             (errno != 0 ? std::string(" (") + std::strerror(errno) + ")" : "") +
             ": -o FILE writes to a file");
    return kExitUsage;
  }
  refuse_to_overwrite(output);
  errno = 0;
  struct stat state {};
  const bool there = ::stat(file.c_str(), &state) == 0;
  // In a folder that others write to, anybody can make a FIFO by the name. A pipe of a shell has a
  // link for its name.
  struct stat link {};
  if (::lstat(file.c_str(), &link) == 0 && S_ISFIFO(link.st_mode) && !may_write_to(link)) {
    complain(printable(file) + " belongs to another user: choose another name");
    return kExitUsage;
  }
  if (there && (!S_ISREG(state.st_mode) || same_file(state, file_state(STDERR_FILENO))))
    return write_file(file, write) ? kExitFine : cannot_write(file, errno);
  // A file that must not be written is not replaced either.
  if (there && ::access(file.c_str(), W_OK) != 0) return cannot_write(file, errno);
  Beside beside(file);
  if (beside.name().empty()) {
    if (!there) return cannot_write(file, errno);
    return write_file(file, write) ? kExitFine : cannot_write(file, errno);
  }
  if (write_file(beside.name(), write) && beside.move(output.force)) return kExitFine;
  return cannot_write(file, errno);
}

std::optional<std::string> OutputArguments::form_of(const std::string& name) const {
  for (const NameOfForm& one : kNamesOfForms)
    if (name.ends_with(one.ending) && std::ranges::count(forms_, one.form) > 0) return one.form;
  return std::nullopt;
}

void refuse_other_forms(const OutputArguments& output) {
  const std::string& file = output.file;
  const auto refuse = [&](std::string_view ending, const std::string& instead) {
    if (file.ends_with(ending))
      throw Failure("-o " + printable(file) + ": no " + std::string(ending.substr(1)) +
                    " is written here; " + instead);
  };
  for (const auto& [ending, instead] : kOthersForms) refuse(ending, instead);
  if (!output.makes_traces) return;
  for (const NameOfForm& one : kNamesOfForms)
    if (one.made != nullptr)
      refuse(one.ending, std::string("flopinj report --format ") + one.form + " makes " + one.made);
}

void refuse_to_overwrite(const OutputArguments& to) {
  const std::string& file = to.file;
  const bool standard = is_standard_output(file);
  const auto output = standard ? file_state(STDOUT_FILENO) : file_state(file);
  if (!output) return;
  for (const auto& input : to.inputs) {
    if (!same_file(output, input == "-" ? file_state(STDIN_FILENO) : file_state(input))) continue;
    throw Failure(
        (standard ? "standard output" : "-o " + printable(file)) +
        " is an input: it would be overwritten before it can be read again; name another file");
  }
  if (standard || to.force) return;
  throw Failure(printable(file) + " exists; choose another name, or overwrite it with --force");
}

}  // namespace flopinj::reduce
