#include "tools/tierload/dataset_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/dataset_env.h"
#include "base/unique_fd.h"

namespace tierpilot::tierload {
std::vector<std::string> dataset_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (text.starts_with(kDatasetEnvPrefix) && equals != text.npos)
      names.emplace_back(text.substr(0, equals));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<DatasetFile> DatasetFile::open(const std::string& variable, bool writable) {
  const char* path = std::getenv(variable.c_str());
  if (!path || !*path)
    return fail(ErrorCode::kNotFound,
                fmt::format("no dataset in {}: the variable is not set; run this as a task that "
                            "uses the dataset, or set it to a file's path",
                            variable));
  auto file = open_path(path, writable);
  if (!file) return fail(file.error().code, variable + ": " + file.error().message);
  return file;
}

Result<DatasetFile> DatasetFile::open_path(const std::string& path, bool writable) {
  UniqueFd fd(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (!fd)
    return fail_errno(errno, fmt::format("dataset file '{}' cannot be opened for {}", path,
                                         writable ? "writing" : "reading"));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno(errno, fmt::format("dataset file '{}'", path));
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kInvalid, fmt::format("dataset file '{}' is not a regular file", path));
  const size_t bytes = static_cast<size_t>(info.st_size);
  if (bytes == 0) return DatasetFile(nullptr, 0, writable);
  void* data =
      mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED)
    return fail_errno(errno, fmt::format("dataset file '{}' cannot be mapped", path));
  return DatasetFile(static_cast<std::byte*>(data), bytes, writable);
}

DatasetFile::DatasetFile(DatasetFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      writable_(other.writable_) {}

DatasetFile& DatasetFile::operator=(DatasetFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(writable_, other.writable_);
  return *this;
}

DatasetFile::~DatasetFile() {
  if (data_) munmap(data_, bytes_);
}

}  // namespace tierpilot::tierload
