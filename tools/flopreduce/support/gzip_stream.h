// A stream that compresses into another one (gzip, RFC 1952).
#pragma once
#include <zlib.h>

#include <array>
#include <ostream>
#include <streambuf>

namespace flopinj::reduce {

class GzipBuffer : public std::streambuf {
 public:
  explicit GzipBuffer(std::ostream& to);
  ~GzipBuffer() override;
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;
  void finish();  // the last bytes; what comes after is lost

 protected:
  int_type overflow(int_type c) override;
  int sync() override { return 0; }  // a flush inside would cost size

 private:
  bool deflate_all(int flush);
  std::ostream& to_;
  z_stream zlib_{};
  std::array<char, 1U << 16> in_{}, out_{};
};

}  // namespace flopinj::reduce
