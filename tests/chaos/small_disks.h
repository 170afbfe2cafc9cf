// Work folders and slow tiers on disks of their own, small enough to be filled.
#pragma once

#include <filesystem>

#include "tests/system/cluster.h"

namespace tierpilot::chaos {

class SmallDisks {
 public:
  // After enter_own_mounts(). Throws std::system_error.
  explicit SmallDisks(int nodes);
  ~SmallDisks();

  void arrange(test::ClusterOptions& options);
  // Until no byte more can be written.
  void fill_work(int node) { fill(work_disk(node)); }
  void fill_slow_tier(int node) { fill(slow_disk(node)); }
  void empty(int node);

 private:
  std::filesystem::path work_disk(int node) const;
  std::filesystem::path slow_disk(int node) const;
  static void fill(const std::filesystem::path& disk);

  const int nodes_;
  test::TempFolder folder_;
};

}  // namespace tierpilot::chaos
