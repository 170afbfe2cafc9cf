#include "coordinator/core/data/replicator.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr int64_t kLookNs = 1'000'000'000;
constexpr int64_t kAfterFailureNs = 30'000'000'000;

}  // namespace

uint32_t nodes_that_keep(const Catalog::Entry& entry) {
  return static_cast<uint32_t>(
      std::count_if(entry.replicas.begin(), entry.replicas.end(), [&](const auto& replica) {
        return replica.second.home && replica.second.version == entry.dataset.version;
      }));
}

bool is_home_in_memory_only(const ReplicaState& replica) {
  return replica.damaged && replica.home && replica.in_fast && !replica.in_slow;
}

DatasetNeed need_of(ClusterState& state, const Catalog::Entry& entry, const std::string& reader) {
  const auto& dataset = entry.dataset;
  DatasetNeed need{dataset.name, dataset.version, dataset.bytes, false, {}, dataset.digest};
  for (const bool fast : {true, false})
    for (const auto& [name, replica] : entry.replicas) {
      const auto* holder = state.registry.find(name);
      if (name != reader && replica.in_fast == fast && holder && holder->can_be_asked())
        need.sources.push_back(holder->facts.data_address);
    }
  return need;
}

void Replicator::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookNs;
  std::erase_if(not_before_ns_, [&](const auto& wait) { return wait.second <= now_ns; });
  std::erase_if(standings_,
                [&](const auto& standing) { return !state_.catalog.find(standing.first); });
  short_of_copies_ = 0;
  for (const auto& [name, entry] : state_.catalog.all()) look_at(entry, now_ns);
}

void Replicator::hurry(const std::string& dataset) {
  if (const auto standing = standings_.find(dataset); standing != standings_.end())
    standing->second.was_safe = false;
}

// A reboot would take the last of it, and the disk may have been full when it was first asked.
void Replicator::mend_homes(const Catalog::Entry& entry, int64_t now_ns) {
  for (const auto& [name, replica] : entry.replicas) {
    auto* node = state_.registry.find(name);
    if (!is_home_in_memory_only(replica) || !node || !node->can_be_asked()) continue;
    if (not_before_ns_.try_emplace({entry.dataset.name, name}, now_ns + kAfterFailureNs).second)
      node->link->set_home(entry.dataset.current(), true);
  }
}

void Replicator::look_at(const Catalog::Entry& entry, int64_t now_ns) {
  mend_homes(entry, now_ns);
  const uint32_t kept = nodes_that_keep(entry);
  short_of_copies_ += entry.dataset.version > 0 && kept < std::max(entry.dataset.replicas, 1U);
  if (!entry.dataset.digest.known()) return;
  // Who never asked for a second copy keeps what was made, wherever that is, unless it was lost
  // where it was made: then what others happen to have of it is to stay.
  if (entry.dataset.replicas < 2) {
    const auto* home = state_.registry.find(entry.dataset.home);
    const bool lost = kept == 0 && home && home->can_be_asked();
    if (lost && !is_under_way(entry.dataset.name)) order_copy(entry, now_ns);
    // The copy that was made then is the home once the old one's node is gone.
    if (kept > 0) move_home(entry);
    return;
  }
  move_home(entry);
  if (kept > entry.dataset.replicas) return let_go(entry);
  if (is_due(entry, kept, now_ns) && !is_under_way(entry.dataset.name)) order_copy(entry, now_ns);
}

// A node that is only restarted brings its copy back.
bool Replicator::is_due(const Catalog::Entry& entry, uint32_t kept, int64_t now_ns) {
  auto& standing = standings_[entry.dataset.name];
  if (standing.version != entry.dataset.version) standing = {entry.dataset.version, false, 0};
  if (kept == entry.dataset.replicas) {
    standing = {entry.dataset.version, true, 0};
    return false;
  }
  if (standing.short_since_ns == 0) standing.short_since_ns = now_ns;
  return !standing.was_safe ||
         now_ns - standing.short_since_ns >= state_.settings.replica_grace_ms * 1'000'000;
}

void Replicator::order_copy(const Catalog::Entry& entry, int64_t now_ns) {
  auto* node = choose_node(entry, now_ns);
  if (!node) return;
  auto need = need_of(state_, entry, node->facts.name);
  if (need.sources.empty() && !entry.replicas.contains(node->facts.name)) return;
  const Copy copy{entry.dataset.name, node->facts.name};
  under_way_.insert(copy);
  node->link->keep_dataset(need, [this, copy, version = need.version](Status kept) {
    under_way_.erase(copy);
    // What it has now it tells itself.
    if (kept) {
      spdlog::info("dataset '{}': version {} is kept on node '{}' too", copy.first, version,
                   copy.second);
      return;
    }
    spdlog::warn("dataset '{}': no copy of version {} on node '{}': {}", copy.first, version,
                 copy.second, kept.error().message);
    not_before_ns_[copy] = state_.clock.boot_ns() + kAfterFailureNs;
  });
}

NodeRecord* Replicator::choose_node(const Catalog::Entry& entry, int64_t now_ns) {
  NodeRecord* best = nullptr;
  bool best_has_it = false;
  for (auto& [name, node] : state_.registry.all()) {
    const auto held = entry.replicas.find(name);
    const bool has_it = held != entry.replicas.end();
    const auto wait = not_before_ns_.find({entry.dataset.name, name});
    const bool may = node.can_be_asked() && !node.is_closed() && !is_busy(name) &&
                     (!has_it || !held->second.home) &&
                     (wait == not_before_ns_.end() || wait->second <= now_ns) &&
                     (node.slow_free_bytes >= entry.dataset.bytes || has_it);
    if (!may || (best && best_has_it && !has_it)) continue;
    if (!best || has_it > best_has_it || node.slow_free_bytes > best->slow_free_bytes) {
      best = &node;
      best_has_it = has_it;
    }
  }
  return best;
}

void Replicator::move_home(const Catalog::Entry& entry) {
  const auto* home = state_.registry.find(entry.dataset.home);
  if (home && home->life != NodeLife::kLost) return;
  const auto keeper =
      std::find_if(entry.replicas.begin(), entry.replicas.end(), [&](const auto& replica) {
        return replica.second.home && replica.second.version == entry.dataset.version;
      });
  if (keeper == entry.replicas.end()) return;
  auto& dataset = state_.catalog.find(entry.dataset.name)->dataset;
  spdlog::info("dataset '{}': node '{}' is lost, its home is node '{}' now", dataset.name,
               dataset.home, keeper->first);
  dataset.home = keeper->first;
  state_.store.write([dataset](Db& db) { return records::put_dataset(db, dataset); }, nullptr);
}

// One node that is back may be one too many.
void Replicator::let_go(const Catalog::Entry& entry) {
  NodeRecord* least = nullptr;
  for (const auto& [name, replica] : entry.replicas) {
    auto* node = state_.registry.find(name);
    const bool may = replica.home && name != entry.dataset.home && node && node->can_be_asked();
    if (may && (!least || node->slow_free_bytes < least->slow_free_bytes)) least = node;
  }
  if (least) least->link->set_home(entry.dataset.current(), false);
}

bool Replicator::is_busy(const std::string& node) const {
  return std::any_of(under_way_.begin(), under_way_.end(),
                     [&](const Copy& copy) { return copy.second == node; });
}

bool Replicator::is_under_way(const std::string& dataset) const {
  const auto next = under_way_.lower_bound({dataset, ""});
  return next != under_way_.end() && next->first == dataset;
}

}  // namespace tierpilot
