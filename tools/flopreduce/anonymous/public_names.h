#pragma once
#include <string_view>

namespace flopinj::reduce {

extern const std::string_view kPublicNames;  // public_names.txt

}  // namespace flopinj::reduce
