// Which kdamonds are ours: makes them, hands them out, removes them. Internal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sysroot.h"
#include "base/unique_fd.h"
#include "daemon/memory/damon/files.h"

namespace tierpilot {

// Of a file of DAMON's. One that is missing is no process that has ended.
tl::unexpected<Error> damon_failed(int err, std::string_view what);

class DamonClaim {
 public:
  // As DamonAccess::check.
  static Status check(const Sysroot& sysroot, const DamonFilesOptions& options);
  static Result<std::shared_ptr<DamonClaim>> take(const Sysroot& sysroot,
                                                  const DamonFilesOptions& options);
  // A killed predecessor's kdamonds, which would watch on until the watched process ends.
  static void clear_leftover(const Sysroot& sysroot, const DamonFilesOptions& options);
  ~DamonClaim();

  // A kdamond that nobody uses.
  std::optional<int> acquire();
  void release(int kdamond);
  // It is off then, or was already: its process has ended, or somebody else removed it.
  Status turn_off(int kdamond) const;

  // `file` is relative to the kdamond's folder.
  Status write(int kdamond, const std::string& file, std::string_view value) const;
  std::string path(int kdamond, const std::string& file) const;
  const Sysroot& sysroot() const { return sysroot_; }

 private:
  explicit DamonClaim(const Sysroot& sysroot) : sysroot_(sysroot) {}
  Status lock(const DamonFilesOptions& options);
  Status make_kdamonds(int count);
  Status remove_kdamonds();

  const Sysroot& sysroot_;
  std::string claim_path_;
  UniqueFd lock_;
  bool ours_ = false;  // the kernel's kdamonds are: those made, or those a predecessor left
  std::vector<bool> used_;
};

}  // namespace tierpilot
