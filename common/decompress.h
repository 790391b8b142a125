// A stream as it was before gzip or zstd compressed it. What it begins with says which of them did
// (RFC 1952, RFC 8878); of neither, its bytes are as they are.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace flopinj {

bool is_compressed(const uint8_t* first, size_t size);
inline constexpr size_t kCompressionMagic = 4;  // first bytes that is_compressed() needs

class DecompressedStream {
 public:
  // Of a descriptor that stays the caller's.
  explicit DecompressedStream(int fd);
  ~DecompressedStream();
  DecompressedStream(const DecompressedStream&) = delete;
  DecompressedStream& operator=(const DecompressedStream&) = delete;

  // At least one byte; 0 at the end, and where the compressed bytes are damaged or cut off, which
  // damaged() then says; -1 with errno where they cannot be read.
  ssize_t read(char* to, size_t size);
  bool damaged() const { return damaged_; }

  class Format;

 private:
  bool fill();

  const int fd_;
  bool damaged_ = false, ended_ = false;
  std::unique_ptr<uint8_t[]> compressed_;
  size_t at_ = 0, filled_ = 0;      // in these
  std::unique_ptr<Format> format_;  // null before the first bytes
};

}  // namespace flopinj
