// Gives a fuzzer every file of a folder once, and every torn and flipped form of the smaller ones.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "support/effort.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

// What a damaged form does wrong is for the sanitizers to see; without them it can only crash.
constexpr size_t kMostVariants = flopinj::test::effort<size_t>(64, 256);

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

void give(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

void give_damaged(const Bytes& bytes) {
  const size_t step = bytes.size() / kMostVariants + 1;
  for (size_t at = 0; at < bytes.size(); at += step) {
    give(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at)));
    Bytes flipped = bytes;
    flipped[at] = static_cast<uint8_t>(flipped[at] ^ (1U << (at % 8)));
    give(flipped);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const Bytes bytes = read_file(entry.path());
      give(bytes);
      give_damaged(bytes);
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
