// Slower memory that takes bytes away from a device and gives them back. What is in it ends with
// the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot::swap {

// A thread's aligned buffer, for tiers that cannot take bytes from where they lie.
class Staging {
 public:
  static constexpr int64_t kBytes = 4 << 20;
  // Private pages count in the program's budget. Shared ones stay what they are after a fork, as
  // those that a GPU was given must.
  enum class Pages : uint8_t { kPrivate, kShared };
  explicit Staging(Pages pages = Pages::kPrivate);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

class Tier {
 public:
  virtual ~Tier() = default;
  virtual const std::string& name() const = 0;
  virtual std::string_view kind() const = 0;  // "memory" or "directory"
  virtual int64_t capacity_bytes() const = 0;
  // A directory that takes the machine's memory, as a tmpfs does.
  virtual bool is_memory_in_disguise() const { return false; }
  // All of it, where it can be reached so; else empty.
  virtual std::span<std::byte> memory() { return {}; }
  // From several threads at once; ranges of one call do not meet those of another.
  virtual Status write(int64_t offset, const std::byte* data, int64_t bytes, Staging& staging) = 0;
  virtual Status read(int64_t offset, std::byte* data, int64_t bytes, Staging& staging) = 0;
};

// Shared ones are no part of the process's private resident set; those to be pinned are huge where
// the kernel has such, which halves what pinning costs.
enum class MemoryPages { kShared, kToPin };

// Memory of a NUMA node (-1: of any). kUnavailable: no such node.
Result<std::unique_ptr<Tier>> open_memory_tier(std::string name, int node, int64_t bytes,
                                               MemoryPages pages = MemoryPages::kShared);

// A file without a name in a directory, past the page cache where the file system allows it.
Result<std::unique_ptr<Tier>> open_directory_tier(const std::string& directory, int64_t bytes);

}  // namespace tierpilot::swap
