// A folder in which every look at a name hangs, as where the server of a network mount is gone.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace tierpilot {

class HangingMount {
 public:
  explicit HangingMount(std::string folder)
      : folder_(std::move(folder)), server_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    const auto options = fmt::format("fd={},rootmode=40000,user_id={},group_id={}", server_.get(),
                                     ::geteuid(), ::getegid());
    mounted_ =
        ::mount("hangs", folder_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  }
  // What hangs fails then.
  ~HangingMount() {
    server_.reset();
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  HangingMount(const HangingMount&) = delete;
  HangingMount& operator=(const HangingMount&) = delete;

  // False: this process may not mount.
  explicit operator bool() const { return mounted_; }

 private:
  const std::string folder_;
  UniqueFd server_;  // never answers
  bool mounted_ = false;
};

}  // namespace tierpilot
