#include <decompress.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace flopinj {
namespace {

constexpr size_t kBuffer = 256U << 10;
constexpr std::array<uint8_t, 2> kGzip = {0x1f, 0x8b};
constexpr std::array<uint8_t, 4> kZstd = {0x28, 0xb5, 0x2f, 0xfd};
static_assert(kZstd.size() <= kCompressionMagic && kGzip.size() <= kCompressionMagic);

template <size_t kSize>
bool begins_with(const uint8_t* bytes, size_t size, const std::array<uint8_t, kSize>& magic) {
  return size >= kSize && std::equal(magic.begin(), magic.end(), bytes);
}

}  // namespace

bool is_compressed(const uint8_t* first, size_t size) {
  return begins_with(first, size, kGzip) || begins_with(first, size, kZstd);
}

// One way to compress.
class DecompressedStream::Format {
 public:
  virtual ~Format() = default;
  struct Step {
    size_t taken = 0, made = 0;
    bool damaged = false;
  };
  // Without bytes (`size` 0) too: some may be held back.
  virtual Step step(const uint8_t* from, size_t size, char* to, size_t room) = 0;
  // Whether the stream may end here.
  virtual bool complete() const { return true; }
};

namespace {

using Format = DecompressedStream::Format;

class Plain final : public Format {
 public:
  Step step(const uint8_t* from, size_t size, char* to, size_t room) override {
    const size_t count = std::min(size, room);
    std::memcpy(to, from, count);
    return {count, count, false};
  }
};

// Several members may follow each other; bytes after them that are none are left out, as gzip does.
class Gzip final : public Format {
 public:
  Gzip() {
    constexpr int kGzipOnly = 15 + 16;
    if (::inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { ::inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  Step step(const uint8_t* from, size_t size, char* to, size_t room) override {
    if (between_members_) {
      if (size == 0) return {};
      if (*from != kGzip[0]) return {size, 0, false};
      ::inflateReset(&stream_);
      between_members_ = false;
    }
    stream_.next_in = const_cast<uint8_t*>(from);
    stream_.avail_in = static_cast<uInt>(size);
    stream_.next_out = reinterpret_cast<uint8_t*>(to);
    room = std::min<size_t>(room, kBuffer);
    stream_.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    between_members_ = result == Z_STREAM_END;
    const bool fine = result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
    return {size - stream_.avail_in, room - stream_.avail_out, !fine};
  }
  bool complete() const override { return between_members_; }

 private:
  z_stream stream_{};
  bool between_members_ = false;
};

class Zstd final : public Format {
 public:
  Zstd() {
    if (!stream_) throw std::bad_alloc();
  }
  Step step(const uint8_t* from, size_t size, char* to, size_t room) override {
    if (size == 0 && complete_) return {};
    ZSTD_inBuffer in{from, size, 0};
    ZSTD_outBuffer out{to, room, 0};
    const size_t result = ::ZSTD_decompressStream(stream_.get(), &out, &in);
    complete_ = result == 0;
    return {in.pos, out.pos, ::ZSTD_isError(result) != 0};
  }
  bool complete() const override { return complete_; }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> stream_{::ZSTD_createDStream(),
                                                                       ::ZSTD_freeDStream};
  bool complete_ = false;
};

}  // namespace

DecompressedStream::DecompressedStream(int fd)
    : fd_(fd), compressed_(std::make_unique_for_overwrite<uint8_t[]>(kBuffer)) {}
DecompressedStream::~DecompressedStream() = default;

// More compressed bytes, as many as say what they are at first. False where they cannot be read.
bool DecompressedStream::fill() {
  at_ = filled_ = 0;
  const size_t enough = format_ ? 1 : kCompressionMagic;
  while (!ended_ && filled_ < enough) {
    const ssize_t n = ::read(fd_, compressed_.get() + filled_, kBuffer - filled_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) ended_ = true;
    filled_ += static_cast<size_t>(n);
  }
  if (format_) return true;
  if (begins_with(compressed_.get(), filled_, kGzip))
    format_ = std::make_unique<Gzip>();
  else if (begins_with(compressed_.get(), filled_, kZstd))
    format_ = std::make_unique<Zstd>();
  else
    format_ = std::make_unique<Plain>();
  return true;
}

ssize_t DecompressedStream::read(char* to, size_t size) {
  while (!damaged_) {
    if (at_ == filled_ && !ended_ && !fill()) return -1;
    const Format::Step step = format_->step(compressed_.get() + at_, filled_ - at_, to, size);
    at_ += step.taken;
    damaged_ = step.damaged;
    if (step.made > 0) return static_cast<ssize_t>(step.made);
    if (at_ < filled_ || !ended_ || damaged_) continue;
    damaged_ = !format_->complete();
    return 0;
  }
  return 0;
}

}  // namespace flopinj
