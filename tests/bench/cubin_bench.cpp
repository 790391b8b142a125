// What reading a module's image costs the program's thread when the driver loads it.
#include <benchmark/benchmark.h>
#include <collector/identity/cubin.h>
#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

// Code of which a quarter are multiply-adds, as products in fp32 have them.
std::vector<unsigned char> code_of(size_t bytes, size_t seed) {
  constexpr uint64_t kMultiplyAdd = 0x7223, kOther[] = {0x7210, 0x7984, 0x7919};
  std::vector<unsigned char> code(bytes);
  for (size_t at = 0; at + 16 <= bytes; at += 16) {
    const size_t i = at / 16 + seed;
    const uint64_t low = (i % 4 == 0 ? kMultiplyAdd : kOther[i % 3]) | (i * 0x9e37) << 16;
    std::memcpy(code.data() + at, &low, 8);
  }
  return code;
}

// An image of that many functions with so many bytes of code each, and two parameters.
std::vector<unsigned char> image_of(size_t functions, size_t code_bytes) {
  std::vector<unsigned char> image(sizeof(Elf64_Ehdr));
  std::vector<Elf64_Shdr> sections(1);
  std::string names(1, '\0');
  const auto add = [&](const std::string& name, const std::vector<unsigned char>& contents) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<uint32_t>(names.size());
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = image.size();
    section.sh_size = contents.size();
    names += name + '\0';
    image.insert(image.end(), contents.begin(), contents.end());
    sections.push_back(section);
  };
  const std::vector<unsigned char> info = {
      3, 0x19, 16, 0,                                                   // CBANK_PARAM_SIZE
      4, 0x17, 12, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0x00, 0xf0, 0x21, 0x00,   // 8 bytes at 8
      4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0xf0, 0x21, 0x00};  // 8 bytes at 0
  for (size_t i = 0; i < functions; ++i) {
    const std::string name = "_ZN7library9templated6kernelILi" + std::to_string(i) + "EEEvPf";
    add(".text." + name, code_of(code_bytes, i));
    add(".nv.info." + name, info);
  }
  std::string last = ".shstrtab";
  add(last, {});
  sections.back().sh_offset = image.size();
  sections.back().sh_size = names.size();
  image.insert(image.end(), names.begin(), names.end());
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;
  header.e_flags = 90;  // the compute capability
  header.e_shoff = image.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(sections.size());
  header.e_shstrndx = static_cast<uint16_t>(sections.size() - 1);
  std::memcpy(image.data(), &header, sizeof header);
  const auto* const table = reinterpret_cast<const unsigned char*>(sections.data());
  image.insert(image.end(), table, table + sections.size() * sizeof(Elf64_Shdr));
  return image;
}

void read_image(benchmark::State& state) {
  const auto image =
      image_of(static_cast<size_t>(state.range(0)), static_cast<size_t>(state.range(1)));
  size_t functions = 0;
  for (auto _ : state)
    flopinj::read_cubin(
        image, [&](const flopinj::CubinFunction& f) { functions += f.instructions.known; });
  if (functions == 0) state.SkipWithError("no function was read");
  state.counters["image_MiB"] = static_cast<double>(image.size()) / (1 << 20);
}
// A kernel compiled at run time; a framework's file; a library; a large library.
BENCHMARK(read_image)
    ->ArgNames({"functions", "code_bytes"})
    ->Args({1, 8'192})
    ->Args({50, 16'384})
    ->Args({1'000, 16'384})
    ->Args({10'000, 20'480})
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
