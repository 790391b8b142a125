// What can be asked of the library while the program runs, and the answers. Text as in
// common/control_address.h.
#pragma once
#include <string>
#include <string_view>

namespace flopinj {

// May take as long as a recording takes to start or to end.
std::string answer(std::string_view request);

}  // namespace flopinj
