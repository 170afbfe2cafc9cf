// DAMON by way of its keeper, tierpilot-damon(8), for who is not root.
#pragma once

#include <string>

#include "base/sysroot.h"
#include "daemon/memory/damon/access.h"
#include "daemon/memory/damon/wire.h"

namespace tierpilot {

struct KeeperClientOptions {
  std::string socket = kKeeperSocket;  // below the sysroot
  // A reply waits for an aggregation, and for those of the keeper's other clients.
  int timeout_ms = 15'000;
};

// Its monitors have a connection each. One whose keeper was stopped or killed says so once, with
// kUnreachable, and then watches on through the next keeper.
class KeeperClient final : public DamonAccess {
 public:
  explicit KeeperClient(const Sysroot& sysroot, KeeperClientOptions options = {});
  std::string_view way() const override { return "through tierpilot-damon"; }
  Status check() const override;
  Status open() override { return check(); }
  Result<std::unique_ptr<DamonMonitor>> watch(pid_t pid, const DamonAttrs& attrs) override;

 private:
  const std::string path_;
  const KeeperClientOptions options_;
};

}  // namespace tierpilot
