// Names of kernels as short as they can be and still differ.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace flopinj::reduce {

// Without the return type, the parameters, "(anonymous namespace)::" and wrappers that say nothing
// ("cutlass::Kernel2<X>(X::Params)" is X). Takes demangled names; another text stays as it is.
std::string short_kernel_name(std::string_view demangled);

// Of all names; a name that another one would share stays in full.
std::vector<std::string> short_kernel_names(const std::vector<std::string>& demangled);

}  // namespace flopinj::reduce
