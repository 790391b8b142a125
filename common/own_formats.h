// File formats that only NVIDIA's own programs can read, known by the endings of files' names.
#pragma once
#include <string_view>

namespace flopinj {

struct OwnFormat {
  std::string_view ending, remedy;  // remedy: what it is, and how it is made one to import
};
inline constexpr OwnFormat kOwnFormats[] = {
    {".nsys-rep", "a report of Nsight Systems: nsys export --type sqlite FILE makes one to import"},
    {".qdrep", "a report of Nsight Systems: nsys export --type sqlite FILE makes one to import"},
    {".ncu-rep", "a report of Nsight Compute: ncu --import FILE --csv --page raw prints it"},
};

// Null where the file is of none of them.
inline const OwnFormat* own_format(std::string_view file) {
  for (const OwnFormat& own : kOwnFormats)
    if (file.ends_with(own.ending)) return &own;
  return nullptr;
}

}  // namespace flopinj
