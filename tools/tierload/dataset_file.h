// A task's datasets as it finds them: the path in TIERPILOT_DATASET_<NAME>, mapped into memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot::tierload {

// All variables of this process that name a dataset, sorted.
std::vector<std::string> dataset_variables();

// Owns one shared mapping of a whole file. Move-only.
class DatasetFile {
 public:
  // `variable` as given by dataset_env_name. kNotFound when it is not set.
  static Result<DatasetFile> open(const std::string& variable, bool writable);
  static Result<DatasetFile> open_path(const std::string& path, bool writable);

  DatasetFile(DatasetFile&& other) noexcept;
  DatasetFile& operator=(DatasetFile&& other) noexcept;
  ~DatasetFile();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool writable() const { return writable_; }

 private:
  DatasetFile(std::byte* data, size_t bytes, bool writable)
      : data_(data), bytes_(bytes), writable_(writable) {}
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  bool writable_ = false;
};

}  // namespace tierpilot::tierload
