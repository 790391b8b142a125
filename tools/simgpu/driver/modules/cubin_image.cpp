#include "driver/modules/cubin_image.h"

#include <cuda.h>
#include <elf.h>

#include <cstring>
#include <string>

#include "driver/modules/fatbin.h"

namespace simgpu {
namespace {

constexpr uint32_t kCudaInfo = SHT_LOPROC;      // of .nv.info sections
constexpr uint8_t kEntry = 0x10;                // of a kernel's symbol: st_other
constexpr uint32_t kOldMostParameters = 4'096;  // bytes; more take the second kind of record
// What the system takes of each block's shared memory is in the size of the kernel's section, from
// this compute capability on.
constexpr uint32_t kReservedFrom = 90, kReservedBytes = 1'024;

uint64_t hash_of(std::span<const std::byte> bytes) {  // FNV-1a
  uint64_t hash = 0xcbf2'9ce4'8422'2325U;
  for (const std::byte byte : bytes)
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x0000'0100'0000'01b3U;
  return hash;
}

template <class T>
void put(std::vector<std::byte>& to, const T& value) {
  const size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}

// Attributes as ptxas writes them: format, attribute, then a value, or a length and so many bytes.
std::vector<std::byte> attributes_of(const ptx::Kernel& kernel) {
  constexpr uint8_t kValue = 3, kSized = 4;
  constexpr uint8_t kParameter = 0x17, kParameterV2 = 0x45, kEnd = 0x19, kVersion = 0x37;
  std::vector<std::byte> out;
  put(out, kSized);
  put(out, kVersion);
  put(out, uint16_t{4});
  put(out, uint32_t{CUDA_VERSION / 100});
  for (size_t i = kernel.parameters.size(); i-- > 0;) {  // the last one comes first
    const ptx::Parameter& parameter = kernel.parameters[i];
    const auto bytes = static_cast<uint32_t>(parameter.bytes);
    const bool old = kernel.parameter_bytes <= kOldMostParameters;
    put(out, kSized);
    put(out, old ? kParameter : kParameterV2);
    put(out, uint16_t{12});
    put(out, uint32_t{0});
    put(out, static_cast<uint16_t>(i));
    put(out, static_cast<uint16_t>(parameter.offset));
    put(out, old ? bytes << 18 | 0x1f000 : bytes);
  }
  if (kernel.parameters.empty()) return out;
  put(out, kValue);
  put(out, kEnd);
  put(out, static_cast<uint16_t>(kernel.parameter_bytes));
  return out;
}

// Registers of each kernel, whose symbols are numbered from 1.
std::vector<std::byte> registers_of(std::span<const ptx::Kernel> kernels) {
  constexpr uint8_t kSized = 4, kRegisters = 0x2f;
  std::vector<std::byte> out;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    put(out, kSized);
    put(out, kRegisters);
    put(out, uint16_t{8});
    put(out, i + 1);
    put(out, static_cast<uint32_t>(kernels[i].registers));
  }
  return out;
}

class ElfWriter {
 public:
  // The section, until the next one is added.
  Elf64_Shdr& add(const std::string& name, uint32_t type, std::span<const std::byte> contents) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<uint32_t>(names_.size());
    section.sh_type = type;
    section.sh_offset = sizeof(Elf64_Ehdr) + body_.size();
    section.sh_size = contents.size();
    section.sh_addralign = 1;
    names_ += name + '\0';
    body_.insert(body_.end(), contents.begin(), contents.end());
    return sections_.emplace_back(section);
  }
  uint32_t last() const { return static_cast<uint32_t>(sections_.size() - 1); }

  std::vector<std::byte> finish() {
    const std::string name = ".shstrtab";
    const std::string names = names_ + name + '\0';
    add(name, SHT_STRTAB, std::as_bytes(std::span(names)));
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = kMachineCuda;
    header.e_version = EV_CURRENT;
    header.e_shoff = sizeof header + body_.size();
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    // More sections than 16 bits hold are counted in the first one.
    const bool many = sections_.size() >= SHN_LORESERVE;
    header.e_shnum = many ? 0 : static_cast<uint16_t>(sections_.size());
    header.e_shstrndx = many ? SHN_XINDEX : static_cast<uint16_t>(last());
    if (many) {
      sections_[0].sh_size = sections_.size();
      sections_[0].sh_link = last();
    }
    std::vector<std::byte> out;
    put(out, header);
    out.insert(out.end(), body_.begin(), body_.end());
    for (const Elf64_Shdr& section : sections_) put(out, section);
    return out;
  }

 private:
  std::string names_ = std::string(1, '\0');
  std::vector<std::byte> body_;
  std::vector<Elf64_Shdr> sections_ = std::vector<Elf64_Shdr>(1);  // the first is always empty
};

}  // namespace

std::vector<std::byte> make_cubin(std::span<const ptx::Kernel> kernels,
                                  std::span<const std::byte> module, uint32_t capability) {
  const uint64_t content = hash_of(module);
  const uint32_t reserved = capability >= kReservedFrom ? kReservedBytes : 0;
  ElfWriter elf;
  if (reserved != 0) elf.add(".nv.shared.reserved.0", SHT_NOBITS, {});
  std::string names(1, '\0');
  std::vector<std::byte> symbols;
  put(symbols, Elf64_Sym{});
  for (const ptx::Kernel& kernel : kernels) {
    const std::string& name = kernel.name;
    std::vector<std::byte> code;
    put(code, content);
    for (const char c : name) put(code, c);
    elf.add(".text." + name, SHT_PROGBITS, code);
    elf.add(".nv.info." + name, kCudaInfo, attributes_of(kernel));
    if (kernel.shared_bytes != 0)
      elf.add(".nv.shared." + name, SHT_NOBITS, {}).sh_size = kernel.shared_bytes + reserved;
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_other = kEntry;
    put(symbols, symbol);
    names += name + '\0';
  }
  elf.add(".nv.info", kCudaInfo, registers_of(kernels));
  elf.add(".strtab", SHT_STRTAB, std::as_bytes(std::span(names)));
  const uint32_t strings = elf.last();
  Elf64_Shdr& table = elf.add(".symtab", SHT_SYMTAB, symbols);
  table.sh_link = strings;
  table.sh_entsize = sizeof(Elf64_Sym);
  return elf.finish();
}

}  // namespace simgpu
