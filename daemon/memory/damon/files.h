// DAMON through its files, /sys/kernel/mm/damon/admin (usage.rst of the kernel's documentation),
// which are root's.
//
// kdamonds belong to whoever made them: where there are some already, nothing is written. Ours are
// removed at the end; those that a killed predecessor left are known by a claim file that nobody
// locks, and removed by the next DamonFiles that is made.
#pragma once

#include <string>

#include "base/sysroot.h"
#include "daemon/memory/damon/access.h"

namespace tierpilot {

struct DamonFilesOptions {
  int max_processes = 8;  // the number of kdamonds is set once, and all must be off then
  std::string claim_path = "/run/tierpilot-damon/claim";  // below the sysroot
};

class DamonClaim;

class DamonFiles final : public DamonAccess {
 public:
  explicit DamonFiles(const Sysroot& sysroot, DamonFilesOptions options = {});
  ~DamonFiles() override;
  std::string_view way() const override { return "through its files"; }
  Status check() const override;
  Status open() override;
  Result<std::unique_ptr<DamonMonitor>> watch(pid_t pid, const DamonAttrs& attrs) override;
  // Gives DAMON back, as soon as no monitor is left.
  void close() { claim_.reset(); }

 private:
  const Sysroot& sysroot_;
  const DamonFilesOptions options_;
  std::shared_ptr<DamonClaim> claim_;
};

}  // namespace tierpilot
