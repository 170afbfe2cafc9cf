#include "daemon/memory/pool/replicas/new_datasets.h"

#include <fmt/format.h>

#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

Result<ReplicaChange> NewDatasets::create(const std::string& name, const CreateSource& source,
                                          const CancelFlag& cancel) {
  const auto in_context = [&](const Error& error) {
    return fail(error.code, fmt::format("dataset '{}': {}", name, error.message));
  };
  const auto content = open_content(source);
  if (!content) return in_context(content.error());

  auto lock = holdings_.lock();
  if (holdings_.ledger.holds(name) || !making_.insert(name).second)
    return fail(ErrorCode::kConflict, fmt::format("dataset '{}' exists already", name));
  auto made = make(lock, name, *content, cancel);
  making_.erase(name);
  if (!made) return in_context(made.error());
  return made;
}

Result<ReplicaChange> NewDatasets::make(Holdings::Lock& lock, const std::string& name,
                                        const NewContent& content, const CancelFlag& cancel) {
  const uint64_t bytes = content.bytes;
  if (auto status = room_.make_slow(lock, bytes); !status) return tl::unexpected(status.error());
  DatasetId id{name, 1};
  auto status = without_lock(lock, [&]() -> Status {
    auto draft = holdings_.tiers.slow.draft(bytes);
    if (!draft) return tl::unexpected(draft.error());
    const auto written = content.write(draft->fd(), cancel);
    if (!written) return tl::unexpected(written.error());
    id.digest = *written;
    return holdings_.tiers.slow.publish(std::move(*draft), {id, bytes}, true);
  });
  if (!status) {
    holdings_.ledger.slow.give(bytes);
    return tl::unexpected(status.error());
  }
  Replica& replica = holdings_.ledger.entry(id, bytes);
  holdings_.ledger.order.set_slow(replica, true);
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  holdings_.changed(replica);
  return change_of(replica);
}

}  // namespace tierpilot
