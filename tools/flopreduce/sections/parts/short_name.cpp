#include "sections/parts/short_name.h"

#include <array>
#include <map>

namespace flopinj::reduce {
namespace {

// Where the bracket opens that closes at the end of `text`; npos where none does.
size_t opening_of_last(std::string_view text, char open, char close) {
  size_t depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == close) ++depth;
    if (text[i] == open && --depth == 0) return i;
  }
  return text.npos;
}

std::string_view without_parameters(std::string_view name) {
  if (!name.ends_with(')')) return name;
  const size_t open = opening_of_last(name, '(', ')');
  return open == name.npos || open == 0 ? name : name.substr(0, open);
}

// Templates that only launch what they are given.
std::string_view unwrapped(std::string_view name) {
  constexpr std::array kWrappers = {std::string_view("cutlass::Kernel2<"),
                                    std::string_view("cutlass::Kernel<"),
                                    std::string_view("cutlass::device_kernel<")};
  for (const std::string_view wrapper : kWrappers)
    if (name.starts_with(wrapper) && name.ends_with('>') &&
        opening_of_last(name, '<', '>') == wrapper.size() - 1)
      return name.substr(wrapper.size(), name.size() - wrapper.size() - 1);
  return name;
}

}  // namespace

std::string short_kernel_name(std::string_view name) {
  constexpr std::string_view kVoid = "void ", kAnonymous = "(anonymous namespace)::";
  if (name.starts_with(kVoid)) name.remove_prefix(kVoid.size());
  std::string text(unwrapped(without_parameters(name)));
  for (size_t at = text.find(kAnonymous); at != text.npos; at = text.find(kAnonymous))
    text.erase(at, kAnonymous.size());
  return text.empty() ? std::string(name) : text;
}

std::vector<std::string> short_kernel_names(const std::vector<std::string>& demangled) {
  std::vector<std::string> names;
  std::map<std::string, size_t> count;
  for (const std::string& name : demangled) ++count[names.emplace_back(short_kernel_name(name))];
  for (size_t i = 0; i < names.size(); ++i)
    if (count[names[i]] > 1) names[i] = demangled[i];
  return names;
}

}  // namespace flopinj::reduce
