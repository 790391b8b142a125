#include "running/process_image.h"

#include <elf.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "process.h"

namespace flopinj {
namespace {

// Libraries of the C library have 70 symbols in a chain at most, 40 entries and 14 headers.
constexpr uint64_t kMostInChain = 4'096, kMostEntries = 1'024, kMostHeaders = 256;
constexpr uint64_t kMostRelocations = 65'536;
constexpr size_t kMostMappings = size_t{1} << 17, kMostBytes = size_t{64} << 20;
constexpr size_t kMostLibraries = 8;

// The loader has made addresses of what the file has as offsets; not in every library.
uint64_t address_of(uint64_t base, uint64_t value) { return value < base ? base + value : value; }

// What the library's dynamic section has, by tag; as addresses.
std::map<int64_t, uint64_t> dynamic_section(pid_t pid, uint64_t base) {
  std::map<int64_t, uint64_t> section;
  const auto header = read_value<Elf64_Ehdr>(pid, base);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return section;
  for (uint64_t i = 0; i < std::min<uint64_t>(header->e_phnum, kMostHeaders); ++i) {
    const auto part = read_value<Elf64_Phdr>(pid, base + header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part || part->p_type != PT_DYNAMIC) continue;
    const uint64_t begin = base + part->p_vaddr;
    for (uint64_t n = 0; n < kMostEntries; ++n) {
      const auto entry = read_value<Elf64_Dyn>(pid, begin + n * sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL) break;
      section[entry->d_tag] = address_of(base, entry->d_un.d_ptr);
    }
    break;
  }
  return section;
}

// The hash function of DT_GNU_HASH.
uint32_t gnu_hash(std::string_view name) {
  uint32_t hash = 5381;
  for (const char letter : name) hash = hash * 33 + static_cast<unsigned char>(letter);
  return hash;
}

bool is_named(pid_t pid, uint64_t address, std::string_view name) {
  std::string text(name.size() + 1, '\1');
  return read_memory(pid, address, std::as_writable_bytes(std::span(text))) && text.back() == 0 &&
         text.compare(0, name.size(), name) == 0;
}

}  // namespace

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> all;
  std::ifstream file(proc_path(pid, "maps"));
  size_t bytes = 0;
  for (std::string line; all.size() < kMostMappings && bytes < kMostBytes;) {
    if (!std::getline(file, line)) break;
    bytes += line.size();
    std::istringstream words(line);
    Mapping mapping;
    std::string rights, offset, device, inode;
    char dash = 0;
    words >> std::hex >> mapping.begin >> dash >> mapping.end >> rights >> offset >> device >>
        inode >> std::ws;
    std::getline(words, mapping.name);
    mapping.executable = rights.find('x') != rights.npos;
    all.push_back(mapping);
  }
  return all;
}

const Mapping* mapping_at(const std::vector<Mapping>& mappings, uint64_t address) {
  const auto found =
      std::ranges::find_if(mappings, [&](const Mapping& m) { return m.holds(address); });
  return found != mappings.end() ? &*found : nullptr;
}

const Mapping* mapping_of(const std::vector<Mapping>& mappings, std::string_view file) {
  const auto found =
      std::ranges::find_if(mappings, [&](const Mapping& m) { return m.file().starts_with(file); });
  return found != mappings.end() ? &*found : nullptr;
}

std::vector<std::string> libraries_of(const std::vector<Mapping>& mappings, std::string_view file) {
  std::vector<std::string> names;
  for (const Mapping& mapping : mappings)
    if (mapping.executable && mapping.file().starts_with(file) && names.size() < kMostLibraries &&
        std::ranges::find(names, mapping.name) == names.end())
      names.push_back(mapping.name);
  return names;
}

bool read_memory(pid_t pid, uint64_t address, std::span<std::byte> into) {
  const iovec here{into.data(), into.size()};
  const iovec there{reinterpret_cast<void*>(address), into.size()};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(into.size());
}

bool write_memory(pid_t pid, uint64_t address, std::span<const std::byte> bytes) {
  const iovec here{const_cast<std::byte*>(bytes.data()), bytes.size()};  // which is only read
  const iovec there{reinterpret_cast<void*>(address), bytes.size()};
  return process_vm_writev(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes.size());
}

std::optional<Symbol> function_of(pid_t pid, const std::vector<Mapping>& mappings,
                                  const std::string& library, std::string_view function) {
  const auto first =
      std::ranges::find_if(mappings, [&](const Mapping& m) { return m.name == library; });
  if (first == mappings.end()) return std::nullopt;
  const uint64_t base = first->begin;
  auto section = dynamic_section(pid, base);
  const uint64_t symbols = section[DT_SYMTAB], names = section[DT_STRTAB];
  const uint64_t table = section[DT_GNU_HASH];
  if (symbols == 0 || names == 0 || table == 0) return std::nullopt;
  struct Head {
    uint32_t buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto head = read_value<Head>(pid, table);
  if (!head || head->buckets == 0) return std::nullopt;
  const uint32_t hash = gnu_hash(function);
  const uint64_t buckets = table + sizeof(Head) + uint64_t{head->bloom_words} * 8;
  const uint64_t chains = buckets + uint64_t{head->buckets} * 4;
  const auto bucket = read_value<uint32_t>(pid, buckets + uint64_t{hash % head->buckets} * 4);
  if (!bucket || *bucket < head->first_symbol) return std::nullopt;
  for (uint64_t index = *bucket; index - *bucket < kMostInChain; ++index) {
    const auto chain = read_value<uint32_t>(pid, chains + (index - head->first_symbol) * 4);
    const auto symbol = read_value<Elf64_Sym>(pid, symbols + index * sizeof(Elf64_Sym));
    if (!chain || !symbol) return std::nullopt;
    if ((*chain | 1) == (hash | 1) && symbol->st_value != 0 &&
        ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        is_named(pid, names + symbol->st_name, function))
      return Symbol{base + symbol->st_value, symbol->st_size};
    if ((*chain & 1) != 0) break;
  }
  return std::nullopt;
}

std::optional<uint64_t> thread_variable(pid_t pid, const std::vector<Mapping>& mappings,
                                        const std::string& library, std::string_view variable,
                                        uint64_t thread_pointer) {
  const auto first =
      std::ranges::find_if(mappings, [&](const Mapping& m) { return m.name == library; });
  if (first == mappings.end()) return std::nullopt;
  const uint64_t base = first->begin;
  auto section = dynamic_section(pid, base);
  const uint64_t symbols = section[DT_SYMTAB], names = section[DT_STRTAB], table = section[DT_RELA];
  const uint64_t bytes = section[DT_RELASZ] - base;  // no address
  if (symbols == 0 || names == 0 || table == 0 || bytes / sizeof(Elf64_Rela) > kMostRelocations)
    return std::nullopt;
  std::vector<Elf64_Rela> relocations(bytes / sizeof(Elf64_Rela));
  if (!read_memory(pid, table, std::as_writable_bytes(std::span(relocations)))) return std::nullopt;
  for (const Elf64_Rela& one : relocations) {
    if (ELF64_R_TYPE(one.r_info) != R_X86_64_TPOFF64 || ELF64_R_SYM(one.r_info) == 0) continue;
    const auto symbol =
        read_value<Elf64_Sym>(pid, symbols + ELF64_R_SYM(one.r_info) * sizeof(Elf64_Sym));
    if (!symbol || !is_named(pid, names + symbol->st_name, variable)) continue;
    const auto offset = read_value<uint64_t>(pid, base + one.r_offset);
    return offset ? std::optional(thread_pointer + *offset) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace flopinj
