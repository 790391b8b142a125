#include "running/process_image.h"

#include <elf.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "process.h"

namespace flopinj {
namespace {

template <typename Value>
std::optional<Value> read_value(pid_t pid, uint64_t address) {
  std::array<std::byte, sizeof(Value)> bytes;
  if (!read_memory(pid, address, bytes)) return std::nullopt;
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct DynamicTables {
  uint64_t symbols = 0, names = 0, hash = 0;
};

// The loader has made addresses of what the file has as offsets; not in every library.
uint64_t address_of(uint64_t base, uint64_t value) { return value < base ? base + value : value; }

std::optional<DynamicTables> dynamic_tables(pid_t pid, uint64_t base) {
  const auto header = read_value<Elf64_Ehdr>(pid, base);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  DynamicTables tables;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto part = read_value<Elf64_Phdr>(pid, base + header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part || part->p_type != PT_DYNAMIC) continue;
    for (uint64_t at = base + part->p_vaddr;; at += sizeof(Elf64_Dyn)) {
      const auto entry = read_value<Elf64_Dyn>(pid, at);
      if (!entry || entry->d_tag == DT_NULL) break;
      const uint64_t address = address_of(base, entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) tables.symbols = address;
      if (entry->d_tag == DT_STRTAB) tables.names = address;
      if (entry->d_tag == DT_GNU_HASH) tables.hash = address;
    }
  }
  if (tables.symbols == 0 || tables.names == 0 || tables.hash == 0) return std::nullopt;
  return tables;
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

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> all;
  std::ifstream file(proc_path(pid, "maps"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Mapping mapping;
    std::string rights, device, inode;
    char dash = 0;
    words >> std::hex >> mapping.begin >> dash >> mapping.end >> rights >> mapping.offset >>
        device >> inode >> std::ws;
    std::getline(words, mapping.name);
    mapping.writable = rights.find('w') != rights.npos;
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
  const auto found = std::ranges::find_if(
      mappings, [&](const Mapping& m) { return file_name(m.name).starts_with(file); });
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
  const auto tables = dynamic_tables(pid, base);
  if (!tables) return std::nullopt;
  struct Head {
    uint32_t buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto head = read_value<Head>(pid, tables->hash);
  if (!head || head->buckets == 0) return std::nullopt;
  const uint32_t hash = gnu_hash(function);
  const uint64_t buckets = tables->hash + sizeof(Head) + uint64_t{head->bloom_words} * 8;
  const uint64_t chains = buckets + uint64_t{head->buckets} * 4;
  const auto bucket = read_value<uint32_t>(pid, buckets + uint64_t{hash % head->buckets} * 4);
  if (!bucket || *bucket < head->first_symbol) return std::nullopt;
  for (uint64_t index = *bucket;; ++index) {
    const auto chain = read_value<uint32_t>(pid, chains + (index - head->first_symbol) * 4);
    const auto symbol = read_value<Elf64_Sym>(pid, tables->symbols + index * sizeof(Elf64_Sym));
    if (!chain || !symbol) return std::nullopt;
    if ((*chain | 1) == (hash | 1) && symbol->st_value != 0 &&
        ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        is_named(pid, tables->names + symbol->st_name, function))
      return Symbol{base + symbol->st_value, symbol->st_size};
    if ((*chain & 1) != 0) return std::nullopt;
  }
}

}  // namespace flopinj
