// Finds the cgroup v2 directory that the daemon may manage.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot {

struct CgroupHome {
  std::filesystem::path directory;  // resolved through the sysroot
  bool own = false;                 // the calling process lives in it
};

// `configured` as in CgroupTree::open. kUnavailable tells what is missing.
Result<CgroupHome> find_cgroup_home(const Sysroot& sysroot, const std::string& configured);

}  // namespace tierpilot
