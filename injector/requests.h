// What can be asked of the library while the program runs. One table of requests (requests.cpp) has
// two callers: the thread that listens at the control socket (process/control_server.h), for other
// processes, and flopinj_request(), for the program itself. Also C.
#pragma once
#include <stddef.h>  // NOLINT(modernize-deprecated-headers)

#ifdef __cplusplus
extern "C" {
#endif

// Asks the library in this process; it listens to the program also with --no-control.
//
// `request`: a verb, and for "start" settings, a line each, as common/control_address.h has them,
// without the secret; 65,536 bytes at most, ended by a 0. `answer`: memory of the caller's, of
// `size` bytes, which gets the answer's text, ended by a 0. A text that has no room is cut. Returns
// the text's bytes without the 0: `size` or more where it was cut. No text is longer than 65,535
// bytes. Both pointers are used until the return only, and may be null, `answer` where `size` is 0.
//
// Errors are answers: "error " and a line that says what to do. A recording cannot be started
// before the program has called cuInit, nor in the child of a process that has.
//
// Any thread of the program's, several at once, and while the process ends. "start" and "stop" take
// as long as a recording takes to begin or end, seconds where CUPTI is slow, and "stop" calls the
// driver (cuDeviceGet); "status" waits for neither of them. Refused inside of a call of the
// library's, as in a signal handler that has interrupted one, and in the middle of a launch. Not in
// functions that CUDA forbids to call the driver (cuLaunchHostFunc).
size_t flopinj_request(const char* request, char* answer, size_t size);

#ifdef __cplusplus
}

#include <string>
#include <string_view>

namespace flopinj {

// The answer's text. May take as long as a recording takes to start or to end. The first on a
// thread of ours, the second on one of the program's.
std::string answer(std::string_view request);
std::string answer_program(std::string_view request);

}  // namespace flopinj
#endif
