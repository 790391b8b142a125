// A file that can take no more: a write takes what fits and raises SIGXFSZ, which would kill the
// program, then fails.
#pragma once
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "catch.h"
#include "scratch.h"
#include "trace_reader.h"

namespace flopinj::test {

// Content of a file that has room for so many bytes, after `write` was called with its name in a
// child; false from it fails the test.
template <class Write>
std::string full_file(rlim_t room, Write&& write) {
  const Scratch dir;
  const std::string name = dir / "trace.pb";
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{room, room};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(write(name) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return file_bytes(name);
}

}  // namespace flopinj::test
