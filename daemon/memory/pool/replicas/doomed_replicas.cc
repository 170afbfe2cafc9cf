#include "daemon/memory/pool/replicas/doomed_replicas.h"

#include "base/log.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

void DoomedReplicas::doom(const std::string& name, uint64_t below) {
  auto lock = holdings_.lock();
  holdings_.ledger.doom(name, below);
}

void DoomedReplicas::doom_one(const DatasetId& id) {
  auto lock = holdings_.lock();
  if (Replica* replica = holdings_.ledger.find(id)) replica->doomed = true;
}

void DoomedReplicas::sweep() {
  auto lock = holdings_.lock();
  while (const auto id = holdings_.ledger.removable()) {
    Holdings::Busy busy(holdings_, *id);
    Replica& replica = *holdings_.ledger.find(*id);
    Status status;
    if (replica.fast()) status = holdings_.remove_fast(lock, replica);
    if (status && replica.slow()) status = holdings_.remove_slow(lock, replica);
    if (!status) {
      spdlog::error("{}", status.error().message);
      replica.doomed = false;  // or this would never end
    }
    holdings_.changed(replica);
  }
}

}  // namespace tierpilot
