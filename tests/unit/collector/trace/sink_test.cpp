// Sinks against real files, FIFOs, pipes and sockets.
#include <collector/trace/sink/sink.h>
#include <collector/trace/sink/trace_file.h>
#include <collector/trace/sink/whole_file.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "catch.h"
#include "full_file.h"
#include "scratch.h"
#include "trace_reader.h"

using flopinj::open_sink;
using flopinj::SinkOptions;
using flopinj::test::file_bytes;
using flopinj::test::full_file;
using flopinj::test::Scratch;
using Clock = std::chrono::steady_clock;

namespace {

constexpr SinkOptions kQuick{false, 200};
constexpr int kLongSeconds = 30;  // seconds that nothing takes, on a loaded machine either
bool says(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}
double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}
std::string read_all(int fd) {
  std::string all;
  char buffer[65536];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof(buffer))) > 0;)
    all.append(buffer, static_cast<size_t>(n));
  return all;
}

// Standard output, for as long as it lives, is `fd`.
class StdoutIs {
 public:
  explicit StdoutIs(int fd) : saved_(::dup(STDOUT_FILENO)) { ::dup2(fd, STDOUT_FILENO); }
  ~StdoutIs() {
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

}  // namespace

TEST_CASE("a file is created, and is there after every write") {
  const Scratch dir;
  const std::string name = dir / "trace.pb";
  const mode_t before = ::umask(027);
  auto opened = open_sink(name, {});
  ::umask(before);
  REQUIRE(opened.sink);
  CHECK(opened.error.empty());
  REQUIRE(opened.sink->write("abc"));
  CHECK(file_bytes(name) == "abc");
  REQUIRE(opened.sink->write("def"));
  CHECK(file_bytes(name) == "abcdef");
  CHECK(opened.sink->bytes_written() == 6);
  REQUIRE(opened.sink->close());
  REQUIRE(opened.sink->close());
  struct stat status {};
  REQUIRE(::stat(name.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);  // its owner's only
}

TEST_CASE("an existing file is kept unless force, which empties it") {
  const Scratch dir;
  const std::string name = dir / "trace.pb";
  std::ofstream(name) << "precious and long";
  const auto refused = open_sink(name, {});
  CHECK_FALSE(refused.sink);
  CHECK(says(refused.error, "exists; choose another name, or overwrite it with --force"));
  CHECK(file_bytes(name) == "precious and long");
  const auto forced = open_sink(name, {true, 100});
  REQUIRE(forced.sink);
  REQUIRE(forced.sink->write("new"));
  CHECK(file_bytes(name) == "new");
}

TEST_CASE("a process finds a name for its trace, however many it has written before") {
  const Scratch dir;
  flopinj::OutputNameContext context;
  context.pid = 17;
  const auto next = [&] { return flopinj::open_trace(dir / "t-%p.pb", context, 1, {}).name; };
  CHECK(next() == dir / "t-17.pb");
  for (int i = 2; i <= 700; ++i) {
    CAPTURE(i);
    REQUIRE(next() == dir / ("t-17." + std::to_string(i) + ".pb"));
  }
  std::filesystem::remove(dir / "t-17.5.pb");
  CHECK(next() == dir / "t-17.5.pb");
}

TEST_CASE("force keeps a file of the same run, and one that another process writes") {
  const Scratch dir;
  const std::string name = dir / "trace.pb";
  std::ofstream(name) << "of this run";
  struct stat status {};
  REQUIRE(::stat(name.c_str(), &status) == 0);
  flopinj::SinkOptions options{true, 100};
  options.keep_from_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  const auto kept = open_sink(name, options);
  CHECK_FALSE(kept.sink);
  CHECK(kept.exists);
  CHECK(file_bytes(name) == "of this run");

  ++options.keep_from_ns;  // the run began just after
  auto first = open_sink(name, options);
  REQUIRE(first.sink);
  REQUIRE(first.sink->write("first"));
  options.keep_from_ns = INT64_MAX;
  const auto second = open_sink(name, options);
  CHECK(second.exists);
  CHECK(says(second.error, "is being written by another process"));
  CHECK(file_bytes(name) == "first");
  REQUIRE(first.sink->close());
  CHECK(open_sink(name, options).sink);
}

TEST_CASE("a link is not followed, even with force") {
  const Scratch dir;
  const std::string theirs = dir / "theirs", name = dir / "trace.pb";
  std::ofstream(theirs) << "theirs";
  REQUIRE(::symlink(theirs.c_str(), name.c_str()) == 0);
  CHECK(says(open_sink(name, {true, 100}).error, "symbolic link"));
  REQUIRE(::unlink(name.c_str()) == 0);
  REQUIRE(::link(theirs.c_str(), name.c_str()) == 0);
  CHECK(says(open_sink(name, {true, 100}).error, "hard links"));
  CHECK(file_bytes(theirs) == "theirs");
}

TEST_CASE("nothing is written to what another user has put in the place of the trace") {
  if (::geteuid() != 0) return;  // only root can be two users
  constexpr uid_t kOther = 4'711;
  const Scratch dir;
  const std::string name = dir / "trace.pb";
  std::ofstream(name) << "theirs";
  REQUIRE(::chmod(name.c_str(), 0666) == 0);
  REQUIRE(::chown(name.c_str(), kOther, kOther) == 0);
  CHECK(says(open_sink(name, {true, 100}).error, "belongs to another user"));
  CHECK(file_bytes(name) == "theirs");
  REQUIRE(::unlink(name.c_str()) == 0);

  REQUIRE(::mkfifo(name.c_str(), 0666) == 0);
  const int reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  auto own = open_sink(name, {false, 100});  // on purpose
  REQUIRE(own.sink);
  REQUIRE(::chown(name.c_str(), kOther, kOther) == 0);  // or another one has come in its place
  CHECK_FALSE(own.sink->write("secret"));
  CHECK(says(own.sink->error(), "of another user"));
  CHECK(says(open_sink(name, {false, 100}).error, "belongs to another user"));
  char byte = 0;
  CHECK(::read(reader, &byte, 1) == 0);
  ::close(reader);

  REQUIRE(::symlink("/dev/null", (dir / "link").c_str()) == 0);  // as in containers
  CHECK(open_sink(dir / "link", {false, 100}).sink);
}

TEST_CASE("a number that the program has given to its own file is left alone") {
  const Scratch dir;
  const std::string name = dir / "trace.pb", theirs = dir / "theirs";
  const int before = ::open("/dev/null", O_RDONLY);
  auto opened = open_sink(name, {});
  REQUIRE(opened.sink);
  REQUIRE(opened.sink->write("abc"));
  CHECK(::fcntl(before + 1, F_GETFD) < 0);  // it is no number that a program would get
  const int own = ::open(theirs.c_str(), O_RDWR | O_CREAT, 0600);
  struct stat ours {};
  REQUIRE(::stat(name.c_str(), &ours) == 0);
  int taken = -1;
  for (int fd = 3; fd < 65'536 && taken < 0; ++fd) {
    struct stat status {};
    if (::fstat(fd, &status) == 0 && status.st_ino == ours.st_ino && status.st_dev == ours.st_dev)
      taken = fd;
  }
  REQUIRE(taken >= 0);
  REQUIRE(::dup2(own, taken) == taken);
  CHECK_FALSE(opened.sink->write("def"));
  CHECK(says(opened.sink->error(), "closed the descriptor"));
  CHECK_FALSE(opened.sink->rewrite(0, "x"));
  CHECK_FALSE(opened.sink->close());
  CHECK(::fcntl(taken, F_GETFD) >= 0);  // not closed either
  CHECK(file_bytes(theirs).empty());
  CHECK(file_bytes(name) == "abc");
  for (const int fd : {before, own, taken}) ::close(fd);
}

TEST_CASE("names that cannot be written are refused with one line") {
  const Scratch dir;
  ::mkdir((dir / "d").c_str(), 0700);
  CHECK(says(open_sink(dir / "missing/trace.pb", {}).error, "create the directory first"));
  CHECK(says(open_sink(dir / "d", {}).error, "is a directory"));
  CHECK(says(open_sink("", {}).error, "empty"));
  CHECK(says(open_sink("/proc/trace.pb", {}).error, "cannot write /proc/trace.pb"));
  CHECK(says(open_sink("unix:" + (dir / "none"), {}).error, "start the reader"));
  CHECK(says(open_sink("unix:" + std::string(200, 'x'), {}).error, "a socket path has"));
}

TEST_CASE("an unwritable directory is refused") {
  const Scratch dir;
  ::mkdir((dir / "d").c_str(), 0500);
  if (::geteuid() == 0) return;  // root writes anywhere
  CHECK(says(open_sink(dir / "d/trace.pb", {}).error, "Permission denied"));
}

TEST_CASE("a full disk fails once, says so, and later writes are refused") {
  auto opened = open_sink("/dev/full", {});
  REQUIRE(opened.sink);
  CHECK_FALSE(opened.sink->write("abc"));
  CHECK(says(opened.sink->error(), "No space left on device"));
  const std::string first = opened.sink->error();
  CHECK_FALSE(opened.sink->write("abc"));
  CHECK(opened.sink->error() == first);
  CHECK_FALSE(opened.sink->close());
}

TEST_CASE("a write that is only half done is taken back") {
  const std::string bytes = full_file(1000, [](const std::string& name) {
    auto opened = open_sink(name, {});
    const bool first = opened.sink->write(std::string(600, 'a'));
    const bool second = opened.sink->write(std::string(600, 'b'));
    return first && !second && !opened.sink->error().empty();
  });
  CHECK(bytes == std::string(600, 'a'));
}

TEST_CASE("a file that can take no more takes its last packets, if need be for earlier ones") {
  // What a file of 1,000 bytes holds in the end, after a write of 950 bytes, one of 600 that fails,
  // and last packets of 100 bytes at these offsets.
  const auto holds = [](std::initializer_list<uint64_t> offsets) {
    return full_file(1000, [&](const std::string& name) {
      auto opened = open_sink(name, {});
      bool right = opened.sink->write(std::string(950, 'a'));
      right &= !opened.sink->write_last(0, "?");  // nothing has failed yet
      right &= !opened.sink->write(std::string(600, 'b'));
      right &= !opened.sink->write_last(951, "?");  // that is not written
      for (const uint64_t offset : offsets)
        right &= opened.sink->write_last(offset, std::string(100, 'y')) == (offset <= 900);
      return right && !opened.sink->write("c");
    });
  };
  CHECK(holds({}) == std::string(950, 'a'));
  CHECK(holds({900}) == std::string(900, 'a') + std::string(100, 'y'));
  CHECK(holds({950}) == std::string(950, 'a'));
  CHECK(holds({950, 920, 500}) == std::string(500, 'a') + std::string(100, 'y'));
}

TEST_CASE("a FIFO without a reader opens at once and gives up within its time") {
  const Scratch dir;
  const std::string name = dir / "fifo";
  REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
  const auto start = Clock::now();
  CHECK(open_sink(name, {false, 10 * 1000 * kLongSeconds}).sink);
  auto opened = open_sink(name, kQuick);
  REQUIRE(opened.sink);
  CHECK_FALSE(opened.sink->write("abc"));
  CHECK(says(opened.sink->error(), "no reader within 200 ms"));
  CHECK(seconds_since(start) < kLongSeconds);
  CHECK_FALSE(opened.sink->write("abc"));
}

TEST_CASE("a FIFO whose reader comes late gets everything") {
  const Scratch dir;
  const std::string name = dir / "fifo";
  REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
  const std::string data(3'000'000, 'x');  // many times what a pipe holds
  std::string read;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int fd = ::open(name.c_str(), O_RDONLY);
    read = read_all(fd);
    ::close(fd);
  });
  auto opened = open_sink(name, {false, 1000 * kLongSeconds});
  CHECK(opened.sink->write(data));
  CHECK(opened.sink->close());
  reader.join();
  CHECK(read == data);
}

TEST_CASE("a reader that leaves raises no signal; one that stops is given up on") {
  const Scratch dir;
  const std::string name = dir / "fifo";
  REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
  const int reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK);
  auto opened = open_sink(name, kQuick);
  REQUIRE(opened.sink->write("abc"));
  SECTION("leaves") {
    ::close(reader);
    CHECK_FALSE(opened.sink->write("def"));  // SIGPIPE would end this test
    CHECK(says(opened.sink->error(), "the reader has gone"));
    sigset_t pending;
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGPIPE) == 0);
  }
  SECTION("stops") {
    const auto start = Clock::now();
    CHECK_FALSE(opened.sink->write(std::string(1 << 20, 'x')));
    CHECK(says(opened.sink->error(), "the reader took nothing for 200 ms"));
    CHECK(seconds_since(start) < kLongSeconds);
    ::close(reader);
  }
}

TEST_CASE("a Unix socket") {
  const Scratch dir;
  const std::string path = dir / "socket";
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  CHECK(says(open_sink(path, {}).error, "write unix:"));
  auto opened = open_sink("unix:" + path, kQuick);
  REQUIRE(opened.sink);
  const int peer = ::accept(listener, nullptr, nullptr);
  SECTION("carries everything") {
    const std::string data(2'000'000, 'y');
    std::string read;
    std::thread reader([&] { read = read_all(peer); });
    CHECK(opened.sink->write(data));
    CHECK(opened.sink->close());
    reader.join();
    CHECK(read == data);
    ::close(peer);
  }
  SECTION("whose reader leaves") {
    ::close(peer);
    CHECK_FALSE(opened.sink->write("abc"));
    CHECK(says(opened.sink->error(), "the reader has gone"));
  }
  ::close(listener);
}

TEST_CASE("standard output: a pipe, though the program closes its own descriptor") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  flopinj::OpenedSink opened;
  {
    const StdoutIs redirected(ends[1]);
    opened = open_sink("-", kQuick);
  }
  ::close(ends[1]);
  REQUIRE(opened.sink);
  SECTION("is read to the end") {
    const std::string data(1'000'000, 'z');
    std::string read;
    std::thread reader([&] { read = read_all(ends[0]); });
    CHECK(opened.sink->write(data));
    CHECK(opened.sink->close());
    reader.join();
    CHECK(read == data);
  }
  SECTION("is not read") {
    const auto start = Clock::now();
    CHECK_FALSE(opened.sink->write(std::string(1 << 20, 'x')));
    CHECK(seconds_since(start) < kLongSeconds);
  }
  ::close(ends[0]);
}

TEST_CASE("standard output: a file is written after what is there already") {
  const Scratch dir;
  const std::string name = dir / "out";
  const int fd = ::open(name.c_str(), O_CREAT | O_RDWR, 0600);
  REQUIRE(::write(fd, "log\n", 4) == 4);
  {
    const StdoutIs redirected(fd);
    auto opened = open_sink("-", {});
    REQUIRE(opened.sink);
    CHECK(opened.sink->write("abc"));
  }
  ::close(fd);
  CHECK(file_bytes(name) == "log\nabc");
}

TEST_CASE("a forked child gives up the descriptor, and only that") {
  const Scratch dir;
  const std::string name = dir / "trace.pb";
  auto opened = open_sink(name, {});
  const pid_t child = ::fork();
  if (child == 0) {
    opened.sink->abandon_after_fork();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(opened.sink->write("abc"));
  CHECK(file_bytes(name) == "abc");
}

TEST_CASE("a file that is written whole stays as it was where there is no room") {
  const Scratch dir;
  flopinj::WholeFile file{.name = dir / "m.prom"};
  REQUIRE(file.write("old") == 0);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{4, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const int error = file.write("new and long");
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(error == EFBIG);
  CHECK(file_bytes(file.name) == "old");
  const std::filesystem::directory_iterator files(dir / ""), none;
  CHECK(std::distance(files, none) == 1);
  flopinj::WholeFile other{.name = dir / "none/m.prom"};
  CHECK(other.write("new") == ENOENT);
}

TEST_CASE("of two that write a file whole, each removes its own only") {
  const Scratch dir;
  flopinj::WholeFile first{.name = dir / "m.prom"}, second{.name = dir / "m.prom"};
  REQUIRE(first.write("first") == 0);
  REQUIRE(second.write("second") == 0);
  first.remove();
  CHECK(file_bytes(first.name) == "second");
  second.remove();
  CHECK_FALSE(std::filesystem::exists(first.name));
}
