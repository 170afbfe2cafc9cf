// What must hold. Cheap enough for every step, or to be asked when all is quiet.
#include <fmt/format.h>
#include <algorithm>

#include "coordinator/store/records.h"
#include "tests/dst/world.h"

namespace tierpilot::dst {
namespace {

constexpr size_t kMostDiskBytes = 64 << 20;
// At any moment, of at most ten jobs of four tasks of four ranks.
constexpr size_t kMostEventsEver = 500, kMostAttemptsEver = 200, kMostTasksEver = 200;
constexpr uint64_t kBoundsEvery = 256;  // steps
constexpr uint64_t kSavedEvery = 16;    // steps
constexpr size_t kMostEvents = 8;       // a heartbeat may be under way
}  // namespace

void World::check_step() {
  losses_.check();
  client_.look_at_datasets();
  check_catalog();
  check_gangs();
  check_units();
  check_tries();
  check_shares();
  if (swaps_) room_checks_.check(disturbed_until_ns_);
  if (steps_ % kSavedEvery == 0) check_saved();
  if (steps_ % kBoundsEvery == 0) check_bounds();
  judge_.processes().look(loop_.now_ns());
}

// The ranks of a try are placed together.
void World::check_gangs() {
  if (!coordinator_->up()) return;
  const auto& tasks = coordinator_->core().state.tasks;
  for (const auto& [id, spec] : judge_.tasks()) {
    const auto* gang = spec.is_gang() ? tasks.find(id) : nullptr;
    const bool placed =
        gang && (gang->state == TaskState::kAssigned || gang->state == TaskState::kRunning);
    if (!placed) continue;
    for (const uint64_t rank : tasks.ranks_of(id))
      if (tasks.find(rank)->attempt != gang->attempt)
        judge_.violated("half-gang",
                        fmt::format("gang {} is placed as attempt {}, its rank {} as {}", id,
                                    gang->attempt, rank, tasks.find(rank)->attempt));
  }
}

// A fault that its daemon need not tell again is known for good, and each counts once.
void World::check_units() {
  if (!coordinator_->up()) return;
  for (const auto& [fault, acknowledged] : judge_.unit_faults()) {
    const auto& [unit, kind] = fault;
    const auto& all = coordinator_->core().state.units.all_failures();
    const auto counted = std::count_if(all.begin(), all.end(), [&](const auto& failure) {
      return failure.unit == unit && failure.kind == kind;
    });
    if (acknowledged && counted == 0)
      judge_.violated("lost-fault",
                      fmt::format("{} of unit {} was acknowledged, and is not known", kind, unit));
    if (counted > 1)
      judge_.violated("fault-twice",
                      fmt::format("{} of unit {} counts {} times", kind, unit, counted));
  }
}

// Who is taken for a holder of the current version holds just that, or nothing.
void World::check_catalog() {
  if (!coordinator_->up()) return;
  for (const auto& [name, entry] : coordinator_->core().state.catalog.all()) {
    if (client_.is_gone(name))
      judge_.violated("came-back", fmt::format("{} is there, and was told to be removed", name));
    if (const auto saved = parse_checkpoint_name(name);
        saved && judge_.saved_work().is_removed(*saved))
      judge_.violated("came-back", fmt::format("{} is there, and was told to be removed", name));
    const Digest content = judge_.published(name, entry.dataset.version);
    if (content == 0 || judge_.is_made_anew(name, entry.dataset.digest.low)) continue;
    if (entry.dataset.digest != checksum(content))
      judge_.violated("two-values",
                      fmt::format("the catalog has version {} of {} as of {}, which is that of {}",
                                  entry.dataset.version, name,
                                  judge_.contents().origin(entry.dataset.digest.low),
                                  judge_.contents().origin(content)));
    for (const auto& [node, replica] : entry.replicas)
      if (replica.version == entry.dataset.version && replica.digest != checksum(content))
        judge_.violated(
            "two-values",
            fmt::format("{} counts as a holder of version {} of {}, and has {} of that "
                        "number",
                        node, replica.version, name, judge_.contents().origin(replica.digest.low)));
  }
}

void World::check_quiet() {
  if (!coordinator_->up())
    return judge_.violated("stuck", "the coordinator does not come up any more");
  coordinator_->look_at_all();
  if (client_.unanswered() > 0)
    judge_.violated("stuck", fmt::format("{} requests get no answer", client_.unanswered()));
  auto& state = coordinator_->core().state;
  check_datasets();
  for (const auto& [id, task] : state.tasks.all())
    judge_.violated("stuck",
                    fmt::format("task {} does not end: {}, {} {}", id, task_state_name(task.state),
                                task.reason, state.catalog.blocked_by(task)));
  check_copies();
  if (const auto what = left_over(); !what.empty()) judge_.violated("left-over", what);
  check_memory();
  check_free_units();
  room_checks_.check_quiet();
}

// Of a dataset that was told to be removed nobody who is up has bytes.
std::string World::left_over() const {
  const auto& catalog = coordinator_->core().state.catalog;
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node]->up()) continue;
    for (const auto& [id, stored] : nodes_[node]->shelf())
      if ((client_.is_gone(id.name) || parse_checkpoint_name(id.name)) && !catalog.told(id.name) &&
          !nodes_[node]->came_back(id))
        return fmt::format("n{} has version {} of {}, which is not there any more", node + 1,
                           id.version, id.name);
  }
  return {};
}

// As many nodes keep a dataset as are to, and those have it.
bool World::copies_are_enough() const {
  if (!coordinator_->up()) return false;
  for (const auto& [name, entry] : coordinator_->core().state.catalog.all()) {
    uint32_t kept = 0;
    for (const auto& [node, replica] : entry.replicas) {
      const auto* stored = find(node, {name, entry.dataset.version, entry.dataset.digest});
      kept += stored && stored->home && stored->slow;
    }
    const auto saved = parse_checkpoint_name(name);
    if (saved && keepers_of(*saved) == 0) continue;
    if (kept < entry.dataset.replicas && !judge_.is_lost(name)) return false;
  }
  return true;
}

// Where nothing keeps nodes from it, what counts as written is on as many as it is to be on.
void World::check_published(const std::string& dataset, uint64_t version, Digest content) {
  if (!coordinator_->up()) return;
  const auto* entry = coordinator_->core().state.catalog.find(dataset);
  if (entry) losses_.published(dataset, entry->dataset.replicas, content);
  if (!nodes_are_well_) return;
  if (!entry || entry->dataset.version < version) return;
  const auto keepers = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    const auto& shelf = node->shelf();
    return std::any_of(shelf.begin(), shelf.end(), [&](const auto& item) {
      return item.first.name == dataset && item.second.slow &&
             judge_.contents().descends(item.second.content, content);
    });
  });
  if (keepers < entry->dataset.replicas)
    judge_.violated("lone-write", fmt::format("version {} of {} counts as written, and is on {} "
                                              "nodes where it is to be on {}",
                                              version, dataset, keepers, entry->dataset.replicas));
}

void World::check_copies() {
  if (!copies_are_enough())
    judge_.violated("few-copies", "a dataset is kept by fewer nodes than it is to be");
}

void World::check_datasets() {
  const auto& catalog = coordinator_->core().state.catalog;
  for (const auto& [name, value] : judge_.current())
    if (!catalog.find(name))
      judge_.violated("lost-version", fmt::format("{} was added, and is in no catalog", name));
  for (const auto& [name, entry] : catalog.all()) {
    if (parse_checkpoint_name(name)) continue;
    const uint64_t version = entry.dataset.version;
    const Stored* stored = nullptr;
    if (judge_.is_lost(name)) continue;
    for (const auto& [node, replica] : entry.replicas)
      if (replica.version == version && !stored)
        stored = find(node, {name, version, entry.dataset.digest});
    if (!stored) {
      judge_.violated("lost-version",
                      fmt::format("version {} of {} is the current one, and nobody who is up "
                                  "holds it (home: {})",
                                  version, name, entry.dataset.home));
      continue;
    }
    const Digest published = judge_.published(name, version);
    if (published != 0 && published != stored->content)
      judge_.violated("two-values", fmt::format("version {} of {} is now {}", version, name,
                                                judge_.contents().origin(stored->content)));
    judge_.check_writes(name, stored->content);
  }
}

void World::check_bounds() {
  const auto most = [&](const char* what, size_t now, size_t most) {
    if (now > most) judge_.violated("unbounded", fmt::format("there are {} {}", now, what));
  };
  most("bytes on the disk", disk_.bytes(), kMostDiskBytes);
  for (const auto& node : nodes_) {
    if (!node->up()) continue;
    most("events that a node keeps", node->daemon().events().size(), kMostEventsEver);
    most("attempts that a node remembers", node->daemon().tasks().attempts().remembered(),
         kMostAttemptsEver);
  }
  if (coordinator_->up())
    most("tasks in memory", coordinator_->core().state.tasks.all().size(), kMostTasksEver);
}

void World::check_memory() {
  const auto& state = coordinator_->core().state;
  size_t held = 0;
  for (const auto& [name, node] : state.registry.all()) held += node.held.size();
  for (const auto& [unit, since_ms] : state.units.all())
    if (const uint64_t gang = state.units.user_of(unit); gang != 0)
      judge_.violated("unbounded", fmt::format("unit {} still counts as gang {}'s", unit, gang));
  if (held > 0) judge_.violated("unbounded", fmt::format("nodes still hold {} attempts", held));
  for (const auto& node : nodes_) {
    if (!node->up()) {
      judge_.violated("stuck", "a daemon does not come up any more");
      continue;
    }
    const auto& daemon = node->daemon();
    if (daemon.events().size() > kMostEvents)
      judge_.violated("unbounded", fmt::format("a node keeps {} events", daemon.events().size()));
    if (!daemon.tasks().attempts().live().empty())
      judge_.violated("unbounded", fmt::format("a node keeps {} attempts that are over",
                                               daemon.tasks().attempts().live().size()));
    if (daemon.tasks().attempts().remembered() > 0)
      judge_.violated("unbounded", fmt::format("a node remembers {} attempts that are over",
                                               daemon.tasks().attempts().remembered()));
  }
  if (disk_.bytes() > kMostDiskBytes)
    judge_.violated("unbounded", fmt::format("the disk holds {} bytes", disk_.bytes()));
}

}  // namespace tierpilot::dst
