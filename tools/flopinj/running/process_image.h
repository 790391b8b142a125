// What can be read of another process: its mappings, its memory, the functions of its libraries. It
// may be anybody's, and its libraries any bytes: what it says of sizes and lengths has a limit.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

struct Mapping {
  uint64_t begin = 0, end = 0;
  bool executable = false;
  std::string name;  // a path, "[stack]", or empty

  bool holds(uint64_t address) const { return begin <= address && address < end; }
  std::string_view file() const { return std::string_view(name).substr(name.rfind('/') + 1); }
};

// In the order of addresses, up to 2^17, which is twice what Linux lets a process have by default.
// Empty where they cannot be read.
std::vector<Mapping> mappings_of(pid_t);

// nullptr: in none.
const Mapping* mapping_at(const std::vector<Mapping>&, uint64_t address);

// Of a file whose name, without its folder, begins so. nullptr: there is none.
const Mapping* mapping_of(const std::vector<Mapping>&, std::string_view file);

// Bytes of the process's memory. False: not all of them may be read, or written. Nothing stops.
bool read_memory(pid_t, uint64_t address, std::span<std::byte> into);
bool write_memory(pid_t, uint64_t address, std::span<const std::byte> bytes);

template <typename Value>
std::optional<Value> read_value(pid_t pid, uint64_t address) {
  Value value;
  if (!read_memory(pid, address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
  return value;
}

struct Symbol {
  uint64_t begin = 0, size = 0;

  bool holds(uint64_t address) const { return begin <= address && address - begin < size; }
};

// The files of executable mappings whose names, without their folders, begin so: at most eight.
std::vector<std::string> libraries_of(const std::vector<Mapping>&, std::string_view file);

// An exported function of the library whose mappings have this name, from its image in memory: the
// file may have been replaced since. Nothing: the library has no such function.
std::optional<Symbol> function_of(pid_t, const std::vector<Mapping>&, const std::string& library,
                                  std::string_view function);

// Where a variable of the library's that each thread has, and that the library is linked to by its
// name, is in the thread with this thread pointer. x86-64 only. Nothing: there is none.
std::optional<uint64_t> thread_variable(pid_t, const std::vector<Mapping>&,
                                        const std::string& library, std::string_view variable,
                                        uint64_t thread_pointer);

}  // namespace flopinj
