// Prints what the collector counts in machine code, for sass_test.py.
//
//   cubin_reader FILE.cubin       per function: name, whether all is known, then for each operation
//                                 that it has: name, instructions of no, one and all operations
//   cubin_reader CAPABILITY FILE  the same for each 16 bytes of the file, on a line each
#include <collector/identity/cubin.h>
#include <collector/identity/sass.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::array<const char*, flopinj::kSassOperations> kNames = {
    "fadd", "fmul", "ffma", "fadd2", "fmul2", "ffma2",
    "dadd", "dmul", "dfma", "hadd",  "hmul",  "hfma"};

void print(std::string_view name, const flopinj::InstructionMix& mix) {
  std::cout << name << ' ' << (mix.known ? "known" : "unknown");
  for (size_t i = 0; i < mix.counts.size(); ++i)
    if (const auto& c = mix.counts[i]; c != flopinj::InstructionCounts{})
      std::cout << ' ' << kNames[i] << ' ' << c.none << ' ' << c.one << ' ' << c.all;
  std::cout << (mix.moves_registers ? " setmaxnreg 0 0 1\n" : "\n");
}

}  // namespace

int main(int argc, char** argv) {
  const auto capability = static_cast<uint32_t>(argc == 3 ? std::atoi(argv[1]) : 0);
  std::ifstream file(argv[argc - 1], std::ios::binary);
  if (argc < 2 || !file) return 2;
  const std::vector<unsigned char> bytes(std::istreambuf_iterator<char>(file), {});
  if (capability != 0) {
    for (size_t at = 0; at + 16 <= bytes.size(); at += 16)
      print(std::to_string(at), flopinj::read_sass(std::span(bytes).subspan(at, 16), capability));
    return 0;
  }
  return flopinj::read_cubin(bytes,
                             [](const flopinj::CubinFunction& f) { print(f.name, f.instructions); })
             ? 0
             : 1;
}
