// Which daemons have had this work folder, in <work_dir>/instances. The coordinator lets a new
// daemon join at once, without waiting for the lease of the one before, when that one is among
// them: whoever holds the lock on the folder knows that nothing of it runs any more. That holds for
// one boot of one machine only, so that a copy of the folder on another one proves nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot::agent {

class Instances {
 public:
  // Adds `instance` to those in the file. To be called under the lock, before it registers.
  static Instances take_over(const std::filesystem::path& work_dir, uint64_t instance,
                             const std::string& boot_id);
  const std::vector<uint64_t>& predecessors() const { return predecessors_; }
  // The coordinator knows the new one: those before do not matter any more.
  Status registered();

 private:
  Status write(const std::vector<uint64_t>& ids) const;

  std::filesystem::path file_;
  std::string boot_id_;
  uint64_t instance_ = 0;
  std::vector<uint64_t> predecessors_;
  bool told_ = false;
};

}  // namespace tierpilot::agent
