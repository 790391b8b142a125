#include <collector/options/cupti_file.h>

#include <system_error>

namespace flopinj {
namespace {

namespace fs = std::filesystem;

// Below the folder: the library's own, a toolkit's two, and those of NVIDIA's wheels.
constexpr const char* kPlaces[] = {
    "", "lib", "lib64", "extras/CUPTI/lib64", "nvidia/cuda_cupti/lib", "nvidia/cu13/lib"};
constexpr const char* kFileNames[] = {"libcupti.so.12", "libcupti.so.13"};

}  // namespace

CuptiFile find_cupti_file(const std::string& named, const fs::path& folder) {
  const fs::path path = folder / named;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (fs::is_regular_file(path, error)) return {path.string(), ""};
    if (named.find('/') == named.npos) return {named, ""};
    return {"", path.string() + " is neither a file nor a folder"};
  }
  fs::path found;
  for (const char* const place : kPlaces)
    for (const char* const name : kFileNames) {
      const fs::path candidate = (path / place / name).lexically_normal();
      if (!fs::is_regular_file(candidate, error)) continue;
      if (found.empty() || fs::equivalent(found, candidate, error)) {
        found = candidate;
        continue;
      }
      return {"", path.string() + " has " + found.string() + " and " + candidate.string() +
                      "; name one of the two"};
    }
  if (found.empty())
    return {"", path.string() + " has no libcupti.so.12 or libcupti.so.13; for the DIR of: " +
                    std::string(kToCountFlop)};
  return {found.string(), ""};
}

}  // namespace flopinj
