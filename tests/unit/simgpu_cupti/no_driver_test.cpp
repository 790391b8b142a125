// CUPTI in a process without any libcuda.so.1. The version comes from the environment of the test;
// what is expected was tried with the wheels of 13.0.85, 13.2.75 and 13.5.25.
#include <cupti.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "catch.h"

namespace {

uint32_t expected_version() {
  const char* text = std::getenv("EXPECTED_VERSION");
  return text == nullptr ? CUPTI_API_VERSION : static_cast<uint32_t>(std::atoi(text));
}

// How a child that calls this ends.
template <class Call>
int status_of(Call call) {
  const pid_t child = fork();
  if (child == 0) _exit(static_cast<int>(call()) & 0x7f);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("without a libcuda.so.1, 13.2 crashes at any call and later ones refuse it") {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
    std::puts("SKIPPED: this machine has a libcuda.so.1");
    return;
  }
  const uint32_t version = expected_version();
  uint32_t answer = 0;
  const char* text = nullptr;
  if (version >= 130200 && version < 130300) {
    CHECK(status_of([&] { return cuptiGetVersion(&answer); }) != 0);
    CHECK(status_of([&] { return cuptiGetResultString(CUPTI_SUCCESS, &text); }) != 0);
    return;
  }
  const bool mute = version >= 130300;
  CHECK(cuptiGetVersion(&answer) == (mute ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS));
  CHECK(answer == (mute ? 0 : version));
}
