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

// The loader has made addresses of what the file has as offsets; not in every library.
uint64_t address_of(uint64_t base, uint64_t value) { return value < base ? base + value : value; }

// What the library's dynamic section has, by tag; as addresses.
std::map<int64_t, uint64_t> dynamic_section(pid_t pid, uint64_t base) {
  std::map<int64_t, uint64_t> section;
  const auto header = read_value<Elf64_Ehdr>(pid, base);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return section;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto part = read_value<Elf64_Phdr>(pid, base + header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part || part->p_type != PT_DYNAMIC) continue;
    for (uint64_t at = base + part->p_vaddr;; at += sizeof(Elf64_Dyn)) {
      const auto entry = read_value<Elf64_Dyn>(pid, at);
      if (!entry || entry->d_tag == DT_NULL) break;
      section[entry->d_tag] = address_of(base, entry->d_un.d_ptr);
    }
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
  for (std::string line; std::getline(file, line);) {
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
  for (uint64_t index = *bucket;; ++index) {
    const auto chain = read_value<uint32_t>(pid, chains + (index - head->first_symbol) * 4);
    const auto symbol = read_value<Elf64_Sym>(pid, symbols + index * sizeof(Elf64_Sym));
    if (!chain || !symbol) return std::nullopt;
    if ((*chain | 1) == (hash | 1) && symbol->st_value != 0 &&
        ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        is_named(pid, names + symbol->st_name, function))
      return Symbol{base + symbol->st_value, symbol->st_size};
    if ((*chain & 1) != 0) return std::nullopt;
  }
}

}  // namespace flopinj
