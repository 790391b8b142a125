// Fat binaries as nvcc -fatbin writes them: a header, then parts, each behind a header of its own.
#include "driver/modules/fatbin.h"

#include <elf.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "driver/modules/lz4.h"
#include "driver/runtime.h"

namespace simgpu {
namespace {

constexpr uint32_t kMagic = 0xBA55ED50;
constexpr uint32_t kWrapperMagic = 0x466243B1;  // fatbinary_section.h

// __fatBinC_Wrapper_t of that header.
struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* further;
};

struct Header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of what follows
};

struct Part {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;  // of what follows
  uint32_t compressed_bytes;
  uint32_t options;
  uint16_t minor, major;
  uint32_t architecture;  // 80
};
constexpr uint16_t kPtx = 1;

// The rest of the header of a part that is compressed.
struct Packing {
  uint32_t name_offset, name_bytes;
  uint64_t flags;
  uint64_t reserved;
  uint64_t unpacked_bytes;
};
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;
constexpr uint64_t kMostUnpacked = uint64_t{1} << 31;  // more is damage

template <class T>
bool read(std::string_view& from, T& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  return true;
}

// Comments and blanks, then ".version": the first directive of every PTX text.
bool is_ptx(const char* at, const char* end) {
  constexpr std::string_view kVersion = ".version";
  while (at < end) {
    if (*at != '\0' && std::strchr(" \t\r\n", *at) != nullptr) {
      ++at;
    } else if (end - at > 1 && at[0] == '/' && at[1] == '/') {
      at = std::find(at, end, '\n');
    } else {
      return std::string_view(at, static_cast<size_t>(end - at)).starts_with(kVersion);
    }
  }
  return false;
}

// What a compressed part holds; null: it is damaged, or packed in another way.
std::shared_ptr<const std::string> unpack(std::string_view header, std::string_view contents) {
  Part part;
  Packing packing;
  if (!read(header, part)) return nullptr;
  header.remove_prefix(sizeof part);
  if (!read(header, packing) || part.compressed_bytes > contents.size() ||
      packing.unpacked_bytes > kMostUnpacked)
    return nullptr;
  contents = contents.substr(0, part.compressed_bytes);
  auto text = std::make_shared<std::string>(packing.unpacked_bytes, '\0');
  const bool whole = (packing.flags & kZstd) != 0
                         ? ZSTD_decompress(text->data(), text->size(), contents.data(),
                                           contents.size()) == text->size()
                         : (packing.flags & kLz4) != 0 && unpack_lz4(contents, *text);
  return whole ? text : nullptr;
}

// The part for the newest architecture that the chip has.
FoundPtx in_fatbin(std::string_view from) {
  const FoundPtx damaged{CUDA_ERROR_INVALID_IMAGE, {}, {}, "a fat binary that is damaged"};
  Header header;
  if (!read(from, header) || header.header_bytes < sizeof header ||
      header.header_bytes > from.size() || header.bytes > from.size() - header.header_bytes)
    return damaged;
  from = from.substr(header.header_bytes, header.bytes);
  const Chip& chip = Runtime::get().settings().chip;
  const auto most = static_cast<uint32_t>(chip.compute_major * 10 + chip.compute_minor);
  FoundPtx found{CUDA_ERROR_NO_BINARY_FOR_GPU, {}, {}, {}};
  uint32_t best = 0;
  bool unreadable = false;
  while (!from.empty()) {
    Part part;
    if (!read(from, part) || part.header_bytes < sizeof part || part.header_bytes > from.size() ||
        part.bytes > from.size() - part.header_bytes)
      return damaged;
    const std::string_view part_header = from.substr(0, part.header_bytes);
    const std::string_view contents = from.substr(part.header_bytes, part.bytes);
    from.remove_prefix(part.header_bytes + part.bytes);
    if (part.kind != kPtx || part.architecture > most || part.architecture < best) continue;
    std::string_view text = contents;
    if (part.compressed_bytes != 0) {
      const auto unpacked = unpack(part_header, contents);
      if (unpacked == nullptr) {
        unreadable = true;
        continue;
      }
      found.decompressed = unpacked;
      text = *unpacked;
    }
    best = part.architecture;
    found.text = text.substr(0, text.find('\0'));
    found.error = CUDA_SUCCESS;
  }
  if (found.error != CUDA_SUCCESS && unreadable)
    found.problem = "compressed PTX cannot be read: build with -no-compress";
  return found;
}

}  // namespace

FoundPtx find_ptx(const void* data, size_t bytes) {
  const auto* const first = static_cast<const char*>(data);
  uint32_t magic = 0;
  if (bytes != 0 && bytes < sizeof magic)
    return {CUDA_ERROR_INVALID_IMAGE, {}, {}, "not a module: too short"};
  std::memcpy(&magic, first, sizeof magic);
  if (magic == kWrapperMagic && (bytes == 0 || bytes >= sizeof(Wrapper))) {
    Wrapper wrapper;
    std::memcpy(&wrapper, data, sizeof wrapper);
    return find_ptx(wrapper.data, 0);
  }
  if (magic == kMagic) {
    Header header{};
    if (bytes == 0) {
      std::memcpy(&header, data, sizeof header);
      bytes = header.header_bytes + header.bytes;
    }
    return in_fatbin({first, bytes});
  }
  if (is_ptx(first, first + (bytes != 0 ? bytes : strnlen(first, 1 << 16))))
    return {CUDA_SUCCESS, {first, bytes != 0 ? strnlen(first, bytes) : std::strlen(first)}, {}, {}};
  Elf64_Ehdr header;
  const bool is_elf = std::memcmp(&magic, ELFMAG, SELFMAG) == 0;
  if (!is_elf || (bytes != 0 && bytes < sizeof header))
    return {CUDA_ERROR_INVALID_IMAGE, {}, {}, "neither PTX nor CUDA code"};
  std::memcpy(&header, data, sizeof header);
  if (header.e_machine == kMachineCuda) return {CUDA_ERROR_NO_BINARY_FOR_GPU, {}, {}, {}};
  return {CUDA_ERROR_INVALID_IMAGE, {}, {}, "an ELF file that is no CUDA code"};
}

}  // namespace simgpu
