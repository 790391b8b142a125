// What is shown of a fuzzed trace.
#pragma once
#include <string_view>

namespace flopinj::reduce {
struct Report;
class Launches;
}  // namespace flopinj::reduce

namespace flopinj::test {

// Every launch on a time line.
void show(reduce::Launches& launches);
// The report as text and, of a few inputs in a hundred, always the same ones, as JSON: building
// that takes several times as long as all else, and most of it is the same for every input.
void show(const reduce::Report& report, std::string_view input);

}  // namespace flopinj::test
