// Numbers of a packed column into memory, for loops that want all of them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "reader/columns.h"

namespace flopinj::reduce {

// So many places after the last number must be writable.
inline constexpr size_t kUnpackRoom = 3;

// The next `count` numbers of each of two columns, as protobuf's sint64, which must be there.
// Several at a time where the processor has AVX2.
void unpack_signed(PackedColumn& first, PackedColumn& second, size_t count, int64_t* to_first,
                   int64_t* to_second);
// One after another, on any processor: the same numbers.
void unpack_signed_one_by_one(PackedColumn& first, PackedColumn& second, size_t count,
                              int64_t* to_first, int64_t* to_second);

}  // namespace flopinj::reduce
