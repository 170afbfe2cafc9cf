// What must hold. Cheap enough for every step, or to be asked when all is quiet.
#include <fmt/format.h>

#include "coordinator/store/records.h"
#include "tests/dst/world.h"

namespace tierpilot::dst {
namespace {

constexpr size_t kMostDiskBytes = 64 << 20;
constexpr size_t kMostEvents = 8;  // a heartbeat may be under way

}  // namespace

void World::check_step() {
  check_versions();
  check_catalog();
}

// Of what was published something is left: it, or what was made from it and is not told yet.
void World::check_versions() {
  for (const auto& [name, value] : judge_.current()) {
    bool left = false;
    for (const auto& node : nodes_)
      for (auto at = node->shelf().lower_bound({name, 0});
           !left && at != node->shelf().end() && at->first.name == name; ++at)
        left = judge_.descends(at->second.content, value.content);
    if (!left)
      judge_.violated("lost-version", fmt::format("no node has version {} of {} any more, nor "
                                                  "anything made from it",
                                                  value.version, name));
  }
}

// Who is taken for a holder of the current version holds just that, or nothing.
void World::check_catalog() {
  if (!coordinator_->up()) return;
  for (const auto& [name, entry] : coordinator_->core().state.catalog.all()) {
    const Digest content = judge_.published(name, entry.dataset.version);
    if (content == 0) continue;
    if (entry.dataset.digest != checksum(content))
      judge_.violated("two-values",
                      fmt::format("the catalog has version {} of {} as of {}, which is that of {}",
                                  entry.dataset.version, name,
                                  judge_.origin(entry.dataset.digest.low), judge_.origin(content)));
    for (const auto& [node, replica] : entry.replicas)
      if (replica.version == entry.dataset.version && replica.digest != checksum(content))
        judge_.violated(
            "two-values",
            fmt::format("{} counts as a holder of version {} of {}, and has {} of that "
                        "number",
                        node, replica.version, name, judge_.origin(replica.digest.low)));
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
  check_memory();
}

void World::check_datasets() {
  const auto& catalog = coordinator_->core().state.catalog;
  for (const auto& [name, value] : judge_.current())
    if (!catalog.find(name))
      judge_.violated("lost-version", fmt::format("{} was added, and is in no catalog", name));
  for (const auto& [name, entry] : catalog.all()) {
    const uint64_t version = entry.dataset.version;
    const Stored* stored = nullptr;
    for (const auto& [node, replica] : entry.replicas)
      if (replica.version == version && !stored)
        stored = find(node, {name, version, entry.dataset.digest});
    if (!stored) {
      judge_.violated("lost-version",
                      fmt::format("version {} of {} is the current one, and nobody who is up "
                                  "holds it",
                                  version, name));
      continue;
    }
    const Digest published = judge_.published(name, version);
    if (published != 0 && published != stored->content)
      judge_.violated("two-values", fmt::format("version {} of {} is now {}", version, name,
                                                judge_.origin(stored->content)));
    judge_.check_writes(name, stored->content);
  }
}

void World::check_memory() {
  const auto& state = coordinator_->core().state;
  size_t held = 0;
  for (const auto& [name, node] : state.registry.all()) held += node.held.size();
  if (held > 0) judge_.violated("unbounded", fmt::format("nodes still hold {} attempts", held));
  for (const auto& node : nodes_) {
    if (!node->up()) {
      judge_.violated("stuck", "a daemon does not come up any more");
      continue;
    }
    const auto& daemon = node->daemon();
    if (daemon.events().size() > kMostEvents)
      judge_.violated("unbounded", fmt::format("a node keeps {} events", daemon.events().size()));
    if (!daemon.tasks().live().empty())
      judge_.violated("unbounded", fmt::format("a node keeps {} attempts that are over",
                                               daemon.tasks().live().size()));
  }
  if (disk_.bytes() > kMostDiskBytes)
    judge_.violated("unbounded", fmt::format("the disk holds {} bytes", disk_.bytes()));
}

}  // namespace tierpilot::dst
