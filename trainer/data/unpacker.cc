#include "trainer/data/unpacker.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>

#include "trainer/data/file_kind.h"

namespace elastor {
namespace {

class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker() {
    constexpr int kGzipWindow = 15 + 16;  // zlib: largest window, gzip header and trailer
    ready_ = inflateInit2(&stream_, kGzipWindow) == Z_OK;
  }
  ~GzipUnpacker() override { inflateEnd(&stream_); }

  Step Unpack(std::string_view packed, std::span<char> text) override {
    if (!ready_) return {.no_memory = true};
    // Tapes and archives fill up with zeros behind a member; no member begins with one.
    if (!inside_ && packed.starts_with('\0')) {
      return {.used = std::min(packed.find_first_not_of('\0'), packed.size())};
    }
    stream_.next_out = reinterpret_cast<Bytef*>(text.data());
    stream_.avail_out = static_cast<uInt>(text.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    Step step = {.used = packed.size() - stream_.avail_in, .made = text.size() - stream_.avail_out};
    inside_ = code != Z_STREAM_END;
    if (code == Z_STREAM_END) inflateReset(&stream_);
    step.no_memory = code == Z_MEM_ERROR;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      step.damage = stream_.msg != nullptr ? stream_.msg : "no reason given";
    }
    return step;
  }
  bool inside() const override { return inside_; }
  const char* name() const override { return "gzip"; }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
  bool inside_ = false;
};

class ZstdUnpacker : public Unpacker {
 public:
  // Accepts the largest windows that zstd writes (zstd --long=31).
  ZstdUnpacker() : stream_(ZSTD_createDStream()) {
    const ZSTD_bounds windows = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
    if (stream_ != nullptr) {
      ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, windows.upperBound);
    }
  }
  ~ZstdUnpacker() override { ZSTD_freeDStream(stream_); }

  Step Unpack(std::string_view packed, std::span<char> text) override {
    if (stream_ == nullptr) return {.no_memory = true};
    ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
    ZSTD_outBuffer out = {text.data(), text.size(), 0};
    const size_t code = ZSTD_decompressStream(stream_, &out, &in);
    inside_ = code != 0;
    Step step = {.used = in.pos, .made = out.pos};
    if (ZSTD_isError(code) != 0) {
      step.damage = ZSTD_getErrorName(code);
      step.no_memory = ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation;
    }
    return step;
  }
  bool inside() const override { return inside_; }
  const char* name() const override { return "zstd"; }

 private:
  ZSTD_DStream* const stream_;
  bool inside_ = false;
};

}  // namespace

std::unique_ptr<Unpacker> Unpacker::For(std::string_view head) {
  if (IsGzip(head)) return std::make_unique<GzipUnpacker>();
  if (IsZstd(head)) return std::make_unique<ZstdUnpacker>();
  return nullptr;
}

}  // namespace elastor
