// A text file line by line, whatever is in it: no line and no file can take all the memory.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

inline constexpr size_t kMaxLineBytes = 1 << 20;

class LineReader {
 public:
  // Refuses folders, gzip files and pipes that nobody writes to, saying what to do. "/dev/stdin"
  // and other pipes are files, too. `what` it is, as "log", begins the messages.
  static Result<LineReader> open(const std::filesystem::path& path, std::string what);

  // The next line without its end (LF or CR LF) and, on line 1, without a byte order mark; valid
  // until the next call. Nothing at the end of the file; an error for a line that is too long.
  Result<std::optional<std::string_view>> next();
  // Of the line that `next` gave last, from 1.
  size_t number() const { return number_; }
  const std::string& path() const { return path_; }
  const std::string& what() const { return what_; }
  // "FILE:LINE" of that line.
  std::string place() const;

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  LineReader(std::string path, std::string what, std::FILE* file)
      : path_(std::move(path)), what_(std::move(what)), file_(file) {}
  Status fill();

  std::string path_, what_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::string buffer_;
  size_t begin_ = 0;  // of the unread part of the buffer
  bool at_end_ = false;
  size_t number_ = 0;
};

}  // namespace tierpilot
