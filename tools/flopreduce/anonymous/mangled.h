// The identifiers in a C++ name mangled by the rules of the Itanium ABI.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace flopinj::reduce {

// The name with each of its identifiers replaced, wherever it is: in template arguments, around
// lambdas, as a tag or a vendor's type; and with it the length before it. Nothing for a name that
// the demangler does not read to its end, or that holds text in another form.
std::optional<std::string> replace_identifiers(
    std::string_view mangled, const std::function<std::string(std::string_view)>& replace);

}  // namespace flopinj::reduce
