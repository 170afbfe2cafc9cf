// A stretch of memory that really lies on one tier.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "daemon/topology/tiers.h"

namespace tierpilot {

inline constexpr size_t kHugePage = 2 << 20;  // bytes

enum class PageSize {
  kBase,
  kHuge,  // transparent huge pages, which keep page-table walks out of latencies; advice only
  kPool,  // of 2 MiB, from the node's hugetlb pool
};

// Writable, page aligned, freed on destruction. Its bytes are undefined.
class TierMemory {
 public:
  virtual ~TierMemory() = default;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 protected:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Anonymous memory bound to a node by libnuma and touched; kUnavailable when the node's memory, or
// with kPool its hugetlb pages, cannot be had.
Result<std::unique_ptr<TierMemory>> allocate_on_node(int node, size_t bytes, PageSize page_size);

// The share of the memory that lies in transparent huge pages, as /proc/self/smaps tells of its
// mapping. kUnavailable when that does not show it.
Result<double> transparent_huge_share(const TierMemory& memory);

struct HugeMemory {
  std::unique_ptr<TierMemory> memory;
  bool pooled = false;  // of the hugetlb pool, else transparent
  std::string how;      // for people: which, why not the pool, how much of it really is huge

  // How much of it is in huge pages now: the kernel may refuse transparent ones, or split them.
  Result<double> huge_share() const { return pooled ? 1 : transparent_huge_share(*memory); }
};

// Huge pages by any means: from the pool, or transparent ones as far as the kernel gives them.
Result<HugeMemory> allocate_huge_on_node(int node, size_t bytes);

// File-backed memory of a directory, by memkind. Not touched: the file is sparse at first.
Result<std::unique_ptr<TierMemory>> allocate_in_directory(const std::string& directory,
                                                          size_t bytes);

// How the pages of a directory reach the CPU.
enum class DirectoryAccess {
  kPaged,   // through the page cache: a first access reads the storage
  kDirect,  // DAX: loads and stores go to the medium
  kMemory,  // tmpfs and its like: there is no storage behind it
};
Result<DirectoryAccess> directory_access(const std::string& directory);

// Writes the range back and drops it from page tables and page cache. kUnavailable when more than
// one page in sixteen stays resident.
Status drop_pages(const TierMemory& memory);
Status check_not_resident(void* data, size_t bytes);

}  // namespace tierpilot
