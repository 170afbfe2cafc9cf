#include "daemon/memory/pool/replicas/admission.h"

#include <fmt/format.h>

namespace tierpilot {
namespace {

Status check_item(PoolLedger& ledger, const ServeItem& item) {
  const Replica* replica = ledger.find(item.id());
  if (replica && replica->bytes != item.bytes)
    return fail(ErrorCode::kInvalid, fmt::format("{}: {} bytes were asked for, but it has {}",
                                                 describe(item.id()), item.bytes, replica->bytes));
  return {};
}

}  // namespace

Status ServeAdmission::check_fits(const std::vector<ServeItem>& items) const {
  const uint64_t budget = holdings_.ledger.fast.budget();
  uint64_t need = 0;
  for (const auto& item : items)
    need = item.bytes > UINT64_MAX - need ? UINT64_MAX : need + item.bytes;
  if (need <= budget) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: {} bytes of datasets can never fit into its budget of {} bytes",
                          holdings_.tiers.fast.name(), need, budget));
}

Result<bool> ServeAdmission::admit(const std::vector<ServeItem>& items) {
  auto lock = holdings_.lock();
  uint64_t need = 0;
  for (const auto& item : items) {
    if (auto status = check_item(holdings_.ledger, item); !status)
      return tl::unexpected(status.error());
    const Replica* replica = holdings_.ledger.find(item.id());
    if (item.write || !replica || replica->pins == 0) need += item.bytes;
  }
  if (!holdings_.ledger.can_pin(need)) return false;
  for (const auto& item : items) {
    if (item.write)
      holdings_.ledger.pin_private(item.bytes);
    else
      holdings_.ledger.pin(item.id(), item.bytes);
  }
  return true;
}

void ServeAdmission::unpin(const ServeItem& item) {
  auto lock = holdings_.lock();
  if (item.write)
    holdings_.ledger.unpin_private(item.bytes);
  else
    holdings_.ledger.unpin(item.id());
}

}  // namespace tierpilot
