// The CUPTI that a user names, by --cupti or FLOPINJ_CUPTI: a file, a folder that has one, or a
// name for the dynamic loader.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace flopinj {

// For a user whose CUPTI has no range profiler, which is a CUPTI 12 before 12.6 Update 2.
inline constexpr std::string_view kToCountFlop =
    "pip install --target DIR 'nvidia-cuda-cupti-cu12>=12.6.80', and then flopinj run --cupti DIR";

struct CuptiFile {
  std::string path;     // absolute, or the name as it was given where it has no slash
  std::string problem;  // in place of the path: one line without the option's name
};

// `named` is taken from `folder` where it is relative. Of a folder: the only libcupti.so.12 or
// libcupti.so.13 in it, beside the headers of a toolkit, or where `pip install --target` puts it.
CuptiFile find_cupti_file(const std::string& named, const std::filesystem::path& folder);

}  // namespace flopinj
