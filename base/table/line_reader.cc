#include "base/table/line_reader.h"

#include <fmt/format.h>

#include <cerrno>

#include "base/files/open_to_read.h"

namespace tierpilot {
namespace {

constexpr size_t kReadBytes = 1 << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kGzipMagic = "\x1F\x8B";

}  // namespace

Result<LineReader> LineReader::open(const std::filesystem::path& path, std::string what) {
  auto fd = open_to_read(path.string(), what + " " + path.string());
  if (!fd) return tl::unexpected(fd.error());
  std::FILE* file = fdopen(fd->get(), "r");
  if (!file) return fail_errno(errno, what + " " + path.string());
  (void)fd->release();
  LineReader reader(path.string(), std::move(what), file);
  if (auto filled = reader.fill(); !filled) return tl::unexpected(filled.error());
  if (reader.buffer_.starts_with(kGzipMagic))
    return fail(ErrorCode::kInvalid,
                fmt::format("{} {}: it is compressed; unpack it with gunzip first", reader.what_,
                            path.string()));
  if (reader.buffer_.starts_with(kByteOrderMark)) reader.begin_ = kByteOrderMark.size();
  return reader;
}

Status LineReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t held = buffer_.size();
  buffer_.resize(held + kReadBytes);
  const size_t got = std::fread(buffer_.data() + held, 1, kReadBytes, file_.get());
  const int err = errno;
  buffer_.resize(held + got);
  if (std::ferror(file_.get())) return fail_errno(err, what_ + " " + path_);
  at_end_ = got < kReadBytes;
  return {};
}

Result<std::optional<std::string_view>> LineReader::next() {
  size_t end = buffer_.find('\n', begin_);
  while (end == std::string::npos && !at_end_) {
    const size_t searched = buffer_.size() - begin_;
    if (searched > kMaxLineBytes)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{} {}:{}: the line is longer than {} bytes; is it a text file?",
                              what_, path_, number_ + 1, kMaxLineBytes));
    if (auto filled = fill(); !filled) return tl::unexpected(filled.error());
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos && begin_ == buffer_.size()) return std::nullopt;
  const size_t stop = end == std::string::npos ? buffer_.size() : end;
  std::string_view line(buffer_.data() + begin_, stop - begin_);
  begin_ = end == std::string::npos ? stop : end + 1;
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string LineReader::place() const {
  return fmt::format("{}:{}", path_, number_);
}

}  // namespace tierpilot
