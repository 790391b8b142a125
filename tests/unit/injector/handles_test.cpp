// What is learned of handles, and how parameters are handed over: handles are numbers here.
#include <injector/handles/kernel_handles.h>
#include <injector/vendor/launch_calls.h>

#include <string>
#include <vector>

#include "catch.h"

using namespace flopinj;

namespace {

CUfunction function(uintptr_t n) { return reinterpret_cast<CUfunction>(n); }
CUkernel kernel(uintptr_t n) { return reinterpret_cast<CUkernel>(n); }
const void* const kModule = reinterpret_cast<const void*>(uintptr_t{100});
const void* const kLibrary = reinterpret_cast<const void*>(uintptr_t{200});

struct Handles {
  KernelHandles known;
  bool give(const void* owner, CUfunction handle, const char* name) {
    return known.learn({.owner = owner, .handles = &handle, .count = 1, .name = name});
  }
  void give_function_of(CUkernel of, CUfunction handle) {
    known.learn({.handles = &handle, .count = 1, .kernel = of});
  }
  bool is(CUfunction handle, const void* owner, const std::string& name) const {
    const KernelHandles::Given given = known.find(handle);
    return given.owner == owner && given.name == name;
  }
};

}  // namespace

TEST_CASE("a handle has the name and the owner of the last call that gave it") {
  Handles handles;
  CHECK(handles.is(function(1), nullptr, ""));
  handles.give(kModule, function(1), "one");
  CHECK(handles.is(function(1), kModule, "one"));
  handles.give(kLibrary, function(1), "other");  // it came back
  CHECK(handles.is(function(1), kLibrary, "other"));
  CHECK(handles.is(function(2), nullptr, ""));
}

TEST_CASE("handles that come many in one call have an owner, and a name once it is asked for") {
  Handles handles;
  const CUkernel many[] = {kernel(1), nullptr, kernel(3)};
  handles.known.learn({.owner = kLibrary, .handles = many, .count = 3});
  CHECK(handles.is(function(3), kLibrary, ""));
  CHECK(handles.is(nullptr, nullptr, ""));
  handles.give(nullptr, function(3), "three");
  CHECK(handles.is(function(3), kLibrary, "three"));
  CHECK(handles.is(function(1), kLibrary, ""));
}

TEST_CASE(
    "the function of a kernel is what the kernel is, and owned by it where nothing is known") {
  Handles handles;
  handles.give(kLibrary, function(1), "one");
  handles.give_function_of(kernel(1), function(2));
  CHECK(handles.is(function(2), kLibrary, "one"));
  handles.give_function_of(kernel(7), function(8));
  CHECK(handles.is(function(8), kernel(7), ""));
}

TEST_CASE("handles beyond the bound are told, and what comes then is known") {
  Handles handles;
  std::vector<CUfunction> many;
  for (uintptr_t i = 1; i <= 1U << 18; ++i) many.push_back(function(i));
  CHECK(handles.known.learn({.owner = kModule, .handles = many.data(), .count = many.size()}));
  CHECK_FALSE(handles.give(kModule, function(1U << 20), "more"));
  CHECK(handles.is(function(1U << 20), kModule, "more"));
  CHECK(handles.is(many[0], nullptr, ""));
}

TEST_CASE("parameters that are handed over as one buffer are found in any order, with their size") {
  char buffer[24];
  size_t size = sizeof buffer;
  void* const pointer_first[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
                                 CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void* const size_first[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER,
                              buffer, CU_LAUNCH_PARAM_END};
  for (void* const* extra : {pointer_first, size_first}) {
    const ParameterValues values = parameter_values(nullptr, extra);
    CHECK(values.pointers == nullptr);
    CHECK(values.packed == buffer);
    CHECK(values.packed_bytes == sizeof buffer);
  }
}

TEST_CASE("a buffer of unknown size is not read, and a list without an end is not followed on") {
  char buffer[24];
  void* const without_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END};
  CHECK(parameter_values(nullptr, without_size).packed == nullptr);
  void* endless[16];
  for (void*& entry : endless) entry = buffer;
  CHECK(parameter_values(nullptr, endless).packed == nullptr);
  CHECK(parameter_values(nullptr, nullptr).packed == nullptr);
  void* const parameters[] = {buffer};
  CHECK(parameter_values(parameters, without_size).pointers == parameters);
}
