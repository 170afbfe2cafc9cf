#include "coordinator/core/data/replicator.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr int64_t kLookNs = 1'000'000'000;
constexpr int64_t kAskStandingAgainNs = 30'000'000'000;

bool keeps(const Catalog::Entry& entry, const std::string& node) {
  const auto replica = entry.replicas.find(node);
  return replica != entry.replicas.end() && replica->second.home &&
         replica->second.version == entry.dataset.version;
}

// Any of them may have a copy that nobody knows of.
uint32_t unheard_nodes(const Registry& registry) {
  const auto& known = registry.slots().all();
  return static_cast<uint32_t>(std::count_if(known.begin(), known.end(), [&](const auto& slot) {
    const auto* node = registry.find(slot.first);
    return !node || node->life != NodeLife::kUp || !node->has_told_all;
  }));
}

}  // namespace

uint32_t nodes_that_keep(const Catalog::Entry& entry) {
  return nodes_that_keep(entry.replicas, entry.dataset.version);
}

bool is_home_in_memory_only(const ReplicaState& replica) {
  return replica.damaged && replica.home && replica.in_fast && !replica.in_slow;
}

void Replicator::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (now_ns < next_look_ns_) return;
  if (next_look_ns_ == 0) begin();
  next_look_ns_ = now_ns + kLookNs;
  orders_.tick();
  std::erase_if(standings_,
                [&](const auto& standing) { return !state_.catalog.find(standing.first); });
  unheard_nodes_ = unheard_nodes(state_.registry);
  short_of_copies_ = 0;
  for (const auto& [name, entry] : state_.catalog.all()) look_at(entry, now_ns);
}

// What is there already was there before the coordinator's start.
void Replicator::begin() {
  for (const auto& [name, entry] : state_.catalog.all())
    if (entry.dataset.replicas > 1)
      standings_.try_emplace(name, Standing{entry.dataset.version, Was::kUnknown});
}

Replicator::Standing& Replicator::standing_of(const Dataset& dataset) {
  auto& standing = standings_[dataset.name];
  if (standing.version != dataset.version) standing = {dataset.version};
  return standing;
}

void Replicator::hurry(const std::string& dataset) {
  if (const auto* entry = state_.catalog.find(dataset))
    standing_of(entry->dataset).was = Was::kShort;
}

// A reboot would take the last of it, and the disk may have been full when it was first asked.
void Replicator::mend_homes(const Catalog::Entry& entry) {
  for (const auto& [name, replica] : entry.replicas) {
    auto* node = state_.registry.find(name);
    if (!is_home_in_memory_only(replica) || !node || !node->can_be_asked()) continue;
    if (orders_.may_ask(entry.dataset.name, name))
      node->link->set_home(entry.dataset.current(), true);
  }
}

void Replicator::look_at(const Catalog::Entry& entry, int64_t now_ns) {
  mend_homes(entry);
  const uint32_t kept = nodes_that_keep(entry);
  short_of_copies_ += entry.dataset.version > 0 && kept < std::max(entry.dataset.replicas, 1U);
  if (!entry.dataset.digest.known()) return;
  // Who never asked for a second copy keeps what was made, wherever that is, unless it was lost
  // where it was made: then what others happen to have of it is to stay.
  if (entry.dataset.replicas < 2) {
    const auto* home = state_.registry.find(entry.dataset.home);
    const bool lost = kept == 0 && home && home->can_be_asked() && home->has_told_all;
    if (lost && !orders_.is_under_way(entry.dataset.name)) order_copy(entry);
    // The copy that was made then is the home once the old one's node is gone.
    if (kept > 0) move_home(entry);
    return;
  }
  auto& standing = standing_of(entry.dataset);
  move_home(entry, standing.lets_go);
  const bool due = is_due(entry, kept, standing, now_ns);
  if (kept > entry.dataset.replicas) return let_go(entry, standing, now_ns);
  if (due && !orders_.is_under_way(entry.dataset.name)) order_copy(entry);
}

// A node that is only restarted brings its copy back.
bool Replicator::is_due(const Catalog::Entry& entry, uint32_t kept, Standing& standing,
                        int64_t now_ns) {
  const uint32_t wanted = entry.dataset.replicas;
  if (kept >= wanted) {
    standing.was = Was::kSafe;
    standing.short_since_ns = 0;
    return false;
  }
  const bool is_unknown = standing.was == Was::kUnknown;
  // After a restart of the coordinator no node is lost before a lease's time has passed.
  const int64_t joined_by_ns = began_ns_ + state_.settings.lease_ms * 1'000'000;
  if (standing.short_since_ns == 0)
    standing.short_since_ns = is_unknown ? std::max(now_ns, joined_by_ns) : now_ns;
  const bool may_come_back =
      is_unknown ? kept + unheard_nodes_ >= wanted : standing.was == Was::kSafe;
  return !may_come_back ||
         now_ns - standing.short_since_ns >= state_.settings.replica_grace_ms * 1'000'000;
}

void Replicator::order_copy(const Catalog::Entry& entry) {
  // What the node has then it tells itself.
  orders_.order(entry.dataset.current(), entry.replicas, CopyOrders::Kind::kRepair,
                [](const std::string&, const Status&) {});
}

void Replicator::move_home(const Catalog::Entry& entry, const std::string& lets_go) {
  const auto* home = state_.registry.find(entry.dataset.home);
  if (home && home->life != NodeLife::kLost) return;
  // After a restart of the coordinator it has a lease's time to join.
  if (!home && state_.clock.boot_ns() - began_ns_ < state_.settings.lease_ms * 1'000'000) return;
  auto keeper = entry.replicas.end();
  for (auto next = entry.replicas.begin(); next != entry.replicas.end(); ++next)
    if (next->first != entry.dataset.home && keeps(entry, next->first) &&
        (keeper == entry.replicas.end() || keeper->first == lets_go))
      keeper = next;
  if (keeper == entry.replicas.end()) return;
  auto& dataset = state_.catalog.find(entry.dataset.name)->dataset;
  spdlog::info("dataset '{}': node '{}' is lost, its home is node '{}' now", dataset.name,
               dataset.home, keeper->first);
  dataset.home = keeper->first;
  state_.store.write([dataset](Db& db) { return records::put_dataset(db, dataset); }, nullptr);
}

// One node that is back may be one too many. Nobody else is asked while the one that was may still
// do it, or both would.
void Replicator::let_go(const Catalog::Entry& entry, Standing& standing, int64_t now_ns) {
  if (!keeps(entry, standing.lets_go) || standing.lets_go == entry.dataset.home) {
    standing.lets_go = with_least_room(entry);
    standing.ask_again_ns = now_ns;
  }
  const auto* node = state_.registry.find(standing.lets_go);
  if (!node || !node->can_be_asked() || now_ns < standing.ask_again_ns) return;
  standing.ask_again_ns = now_ns + kAskStandingAgainNs;
  node->link->set_home(entry.dataset.current(), false);
}

std::string Replicator::with_least_room(const Catalog::Entry& entry) const {
  const NodeRecord* least = nullptr;
  for (const auto& [name, replica] : entry.replicas) {
    const auto* node = state_.registry.find(name);
    const bool may =
        keeps(entry, name) && name != entry.dataset.home && node && node->can_be_asked();
    if (may && (!least || node->slow_free_bytes < least->slow_free_bytes)) least = node;
  }
  return least ? least->facts.name : std::string();
}

}  // namespace tierpilot
