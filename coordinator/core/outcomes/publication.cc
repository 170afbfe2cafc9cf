#include "coordinator/core/outcomes/publication.h"

#include <algorithm>

#include "coordinator/core/data/discard.h"

namespace tierpilot {

namespace {

// Whatever its node says.
bool may_write(const Task& task, const std::string& dataset) {
  return std::any_of(task.spec.datasets.begin(), task.spec.datasets.end(),
                     [&](const auto& use) { return use.write && use.dataset == dataset; });
}

}  // namespace

bool Publication::allowed(const Task& task, const std::string& node, const TaskExit& exit) const {
  return std::all_of(exit.written.begin(), exit.written.end(), [&](const auto& written) {
    const auto* entry = state_.catalog.find(written.dataset);
    if (!entry || !may_write(task, written.dataset)) return false;
    const auto going = entry->discarded.find(node);
    if (going != entry->discarded.end() &&
        going->second.contains({written.version, written.digest}))
      return false;
    return written.version == entry->dataset.version + 1 &&
           (entry->writer == 0 || entry->writer == task.id);
  });
}

bool Publication::used_is_stale(const Task& task) const {
  return std::any_of(task.data_versions.begin(), task.data_versions.end(), [&](const auto& used) {
    const auto* entry = state_.catalog.find(used.first);
    // Whose content nobody has told yet is served by daemons of before there were checksums only.
    return !entry || entry->dataset.version != used.second || !entry->dataset.digest.known();
  });
}

void Publication::superseded(const std::string& node, const std::vector<DatasetVersion>& versions) {
  auto* record = state_.registry.find(node);
  for (const auto& written : versions) {
    auto* entry = state_.catalog.find(written.dataset);
    if (!entry || !record) continue;
    const auto& current = entry->dataset;
    // What this attempt published, if it did and is repeating itself, or the same bytes.
    if (current.version == written.version && current.digest == written.digest) continue;
    // It has what another attempt has made too, and that is to become the current one.
    if (const auto& next = entry->next;
        next && next->what.version == written.version && next->what.digest == written.digest)
      continue;
    // An older one may be all there is until the current one is on disk.
    if (written.version < current.version && needs_older_version(written.dataset))
      outdated_[written.dataset].insert(node);
    else
      discard(*entry, *record, written);
  }
}

std::vector<Dataset> Publication::publish(const Task& task) {
  std::vector<Dataset> changed;
  for (const auto& use : task.spec.datasets) {
    if (auto* entry = state_.catalog.find(use.dataset)) ++entry->dataset.reads;
  }
  if (!task.exit) return changed;
  for (const auto& written : task.exit->written) {
    auto* entry = state_.catalog.find(written.dataset);
    if (!entry || written.version <= entry->dataset.version) continue;
    auto& outdated = outdated_[written.dataset];
    outdated.insert(task.node);
    for (const auto& [name, replica] : entry->replicas) {
      outdated.insert(name);
      entry->outdated.insert(name);
      auto* node = state_.registry.find(name);
      if (name == task.node || !node) continue;
      state_.data_gone(*entry, *node);
    }
    if (!entry->on_disk) entry->on_disk = {entry->dataset, entry->replicas};
    ++entry->dataset.writes;
    entry->dataset.version = written.version;
    entry->dataset.bytes = written.bytes;
    entry->dataset.digest = written.digest;
    if (entry->next && !entry->next->copies.empty())
      entry->replicas = std::move(entry->next->copies);
    else  // The writer's node holds the new version in both tiers until it reports otherwise.
      entry->replicas = {
          {task.node, {written.version, written.bytes, true, true, true, written.digest}}};
    entry->dataset.home =
        entry->replicas.contains(task.node) ? task.node : entry->replicas.begin()->first;
    if (auto* node = state_.registry.find(entry->dataset.home); node && node->link)
      node->link->set_home(written, true);
    changed.push_back(entry->dataset);
  }
  return changed;
}

void Publication::not_durable(const std::vector<Dataset>& written) {
  for (const auto& dataset : written)
    if (auto* entry = state_.catalog.find(dataset.name); entry && entry->on_disk)
      entry->unwritten = true;
}

void Publication::durable(const std::vector<Dataset>& written) {
  for (const auto& dataset : written) {
    auto* entry = state_.catalog.find(dataset.name);
    // A newer version is on its way to the disk: what comes before it goes with that.
    if (entry && entry->dataset.version != dataset.version) {
      if (entry->on_disk && entry->on_disk->dataset.version < dataset.version)
        entry->on_disk = {dataset, {}};  // until its nodes tell of it
      continue;
    }
    if (entry) {
      entry->on_disk.reset();
      entry->unwritten = false;
    }
    const auto outdated = outdated_.extract(dataset.name);
    if (outdated.empty()) continue;
    // A node that is away is told when it joins with an old version.
    for (const auto& name : outdated.mapped())
      if (auto* node = state_.registry.find(name); node && node->can_be_asked())
        node->link->drop_dataset(dataset.name, dataset.version);
  }
}

}  // namespace tierpilot
