// How far apart two names are, to tell which ones a misspelt name may have meant.
#pragma once
#include <cstddef>
#include <string_view>

namespace flopinj::reduce {

// Insertions, deletions and changes of bytes that turn one into the other. Takes the product of
// both lengths in time: cut long names first.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace flopinj::reduce
