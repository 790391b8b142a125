#include "support/gzip_stream.h"

#include <new>

namespace flopinj::reduce {

GzipBuffer::GzipBuffer(std::ostream& to) : to_(to) {
  constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
  if (deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::bad_alloc();
  setp(in_.data(), in_.data() + in_.size());
}

GzipBuffer::~GzipBuffer() { deflateEnd(&zlib_); }

bool GzipBuffer::deflate_all(int flush) {
  zlib_.next_in = reinterpret_cast<Bytef*>(pbase());
  zlib_.avail_in = static_cast<uInt>(pptr() - pbase());
  do {
    zlib_.next_out = reinterpret_cast<Bytef*>(out_.data());
    zlib_.avail_out = static_cast<uInt>(out_.size());
    deflate(&zlib_, flush);
    to_.write(out_.data(), static_cast<std::streamsize>(out_.size() - zlib_.avail_out));
  } while (zlib_.avail_out == 0);
  setp(in_.data(), in_.data() + in_.size());
  return to_.good();
}

GzipBuffer::int_type GzipBuffer::overflow(int_type c) {
  if (!deflate_all(Z_NO_FLUSH)) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

void GzipBuffer::finish() { deflate_all(Z_FINISH); }

}  // namespace flopinj::reduce
