// Work folders on disks of their own, small enough to be filled.
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
  void fill(int node);
  void empty(int node);

 private:
  std::filesystem::path disk(int node) const;

  const int nodes_;
  test::TempFolder folder_;
};

}  // namespace tierpilot::chaos
