#include "coordinator/core/data/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tierpilot {
namespace {

// One version has one content.
bool has_other_bytes(const Catalog::Entry& entry, const ReplicaState& state) {
  return state.bytes != entry.dataset.bytes || state.digest != entry.dataset.digest;
}

void note_gone(Catalog::Entry& entry, const std::string& node, const ReplicaState& state) {
  const auto told = entry.discarded.find(node);
  if (told == entry.discarded.end()) return;
  told->second.erase({state.version, state.digest});
  if (told->second.empty()) entry.discarded.erase(told);
}

void note_older(Catalog::Entry& entry, const std::string& node, bool held) {
  if (held)
    entry.outdated.insert(node);
  else
    entry.outdated.erase(node);
}

// Whether it is about the next version, which is then known better.
bool apply_to_next(Catalog::Entry& entry, const std::string& node, const ReplicaState& state) {
  if (!entry.next || state.version != entry.next->what.version ||
      state.digest != entry.next->what.digest)
    return false;
  const auto told = entry.discarded.find(node);
  const bool is_going =
      told != entry.discarded.end() && told->second.contains({state.version, state.digest});
  if (is_going) return true;
  if (state.in_fast || state.in_slow)
    entry.next->copies[node] = state;
  else
    entry.next->copies.erase(node);
  return true;
}

// Those of the version that is told while the current one is not on disk.
void apply_to_stored(Catalog::Entry& entry, const std::string& node, const ReplicaState& state) {
  if (!entry.on_disk || state.version != entry.on_disk->dataset.version ||
      state.digest != entry.on_disk->dataset.digest)
    return;
  if (state.in_fast || state.in_slow)
    entry.on_disk->replicas[node] = state;
  else
    entry.on_disk->replicas.erase(node);
}

bool is_held(const Catalog::Entry& entry, const ReplicaState& replica) {
  return replica.version == entry.dataset.version && (replica.in_fast || replica.in_slow);
}

}  // namespace

bool is_dataset_name(const std::string& name) {
  return !name.empty() && name.size() <= 128 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

Dataset Catalog::Entry::told() const {
  Dataset told = dataset;
  if (!on_disk) return told;
  told.version = on_disk->dataset.version;
  told.bytes = on_disk->dataset.bytes;
  told.digest = on_disk->dataset.digest;
  told.home = on_disk->dataset.home;
  return told;
}

Catalog::Entry* Catalog::find(const std::string& name) {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

const Catalog::Entry* Catalog::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

const Catalog::Entry* Catalog::told(const std::string& name) const {
  const auto leaving = leaving_.find(name);
  return leaving == leaving_.end() ? find(name) : &leaving->second;
}

const Catalog::Entry* Catalog::next_told(const std::string& after) const {
  const auto here = entries_.upper_bound(after), leaving = leaving_.upper_bound(after);
  if (leaving == leaving_.end()) return here == entries_.end() ? nullptr : &here->second;
  const bool is_here_first = here != entries_.end() && here->first < leaving->first;
  return is_here_first ? &here->second : &leaving->second;
}

Catalog::Entry& Catalog::put(Dataset dataset) {
  const auto told = strays_.extract(dataset.name);
  auto& entry = entries_[dataset.name];
  entry.dataset = std::move(dataset);
  // Its home has told of it already; so may have a node that was asked before, and was too late.
  if (told)
    for (const auto& [node, state] : told.mapped()) {
      --strays_of_[node].names;
      if (state.version == entry.dataset.version && !has_other_bytes(entry, state))
        entry.replicas[node] = state;
    }
  return entry;
}

void Catalog::begin_removal(const std::string& name) {
  if (auto entry = entries_.extract(name)) leaving_.insert(std::move(entry));
}

void Catalog::end_removal(const std::string& name, bool removed) {
  auto entry = leaving_.extract(name);
  if (entry && !removed) entries_.insert(std::move(entry));
}

bool Catalog::apply(const std::string& node, const std::string& name, const ReplicaState& state) {
  auto* entry = find(name);
  if (const auto leaving = leaving_.find(name); leaving != leaving_.end()) entry = &leaving->second;
  const bool held = state.in_fast || state.in_slow;
  if (!entry) {
    held ? put_stray(node, name, state) : remove_stray(node, name);
    return held;
  }
  if (!held) note_gone(*entry, node, state);
  if (state.version < entry->dataset.version) note_older(*entry, node, held);
  apply_to_stored(*entry, node, state);
  if (apply_to_next(*entry, node, state)) return false;
  if (state.version != entry->dataset.version || has_other_bytes(*entry, state)) return held;
  if (!held) {
    entry->replicas.erase(node);
    return false;
  }
  auto& known = entry->replicas[node];
  const bool still_damaged = known.damaged && !state.in_slow;
  known = state;
  known.damaged |= still_damaged;
  return false;
}

// A node may tell of what it likes, and the memory is not its own.
void Catalog::put_stray(const std::string& node, const std::string& name,
                        const ReplicaState& state) {
  if (!is_dataset_name(name)) return;
  auto& of_node = strays_of_[node];
  const auto known = strays_.find(name);
  if (known == strays_.end() || !known->second.contains(node)) {
    if (of_node.names >= kMostStrays) {
      if (!std::exchange(of_node.were_too_many, true))
        spdlog::warn(
            "node '{}' holds more than {} datasets that are in no catalog: no more of "
            "them are known",
            node, kMostStrays);
      return;
    }
    ++of_node.names;
  }
  strays_[name][node] = state;
}

void Catalog::remove_stray(const std::string& node, const std::string& name) {
  const auto known = strays_.find(name);
  if (known == strays_.end() || !known->second.erase(node)) return;
  if (known->second.empty()) strays_.erase(known);
  --strays_of_[node].names;
}

bool Catalog::learns_digest(const std::string& node, const std::string& name,
                            const ReplicaState& state) {
  auto* entry = find(name);
  if (!entry || entry->dataset.digest.known() || !state.digest.known()) return false;
  const auto& dataset = entry->dataset;
  const bool counts = (state.in_fast || state.in_slow) && state.version == dataset.version &&
                      state.bytes == dataset.bytes && (!state.home || node == dataset.home);
  if (counts) entry->dataset.digest = state.digest;
  return counts;
}

std::set<std::string> Catalog::strays(const std::string& name) const {
  std::set<std::string> nodes;
  for (const auto& [node, state] : stray_states(name)) nodes.insert(node);
  return nodes;
}

std::map<std::string, ReplicaState> Catalog::stray_states(const std::string& name) const {
  const auto known = strays_.find(name);
  return known == strays_.end() ? std::map<std::string, ReplicaState>() : known->second;
}

void Catalog::forget_node(const std::string& node) {
  strays_of_.erase(node);
  for (auto& [name, nodes] : strays_) nodes.erase(node);
  std::erase_if(strays_, [](const auto& stray) { return stray.second.empty(); });
  for (auto* entries : {&entries_, &leaving_})
    for (auto& [name, entry] : *entries) {
      entry.replicas.erase(node);
      entry.outdated.erase(node);
      entry.discarded.erase(node);
      if (entry.next) entry.next->copies.erase(node);
      if (entry.on_disk) entry.on_disk->replicas.erase(node);
    }
}

Catalog::Held Catalog::held(const TaskSpec& spec, const std::string& node) const {
  Held held;
  for (const auto& use : spec.datasets) {
    const auto* entry = find(use.dataset);
    if (!entry) continue;
    const auto replica = entry->replicas.find(node);
    if (replica == entry->replicas.end() || !is_held(*entry, replica->second)) continue;
    (replica->second.in_fast ? held.fast_bytes : held.slow_bytes) += entry->dataset.bytes;
  }
  return held;
}

uint64_t Catalog::data_bytes(const TaskSpec& spec) const {
  uint64_t bytes = 0;
  for (const auto& use : spec.datasets)
    if (const auto* entry = find(use.dataset)) bytes += entry->dataset.bytes;
  return bytes;
}

std::unordered_map<std::string, uint32_t> Catalog::counts() const {
  std::unordered_map<std::string, uint32_t> counts;
  for (const auto& [_, entry] : entries_)
    for (const auto& [node, replica] : entry.replicas) ++counts[node];
  return counts;
}

std::string Catalog::blocked_by(const Task& task) const {
  for (const auto& use : task.spec.datasets) {
    const auto* entry = find(use.dataset);
    if (!entry) return fmt::format("dataset '{}' does not exist any more", use.dataset);
    if (std::none_of(entry->replicas.begin(), entry->replicas.end(),
                     [&](const auto& replica) { return is_held(*entry, replica.second); }))
      return fmt::format("waiting for dataset '{}': no node that is up holds version {} (home: {})",
                         use.dataset, entry->dataset.version, entry->dataset.home);
    if (entry->unwritten)
      return fmt::format("waiting until version {} of dataset '{}' is written down",
                         entry->dataset.version, use.dataset);
    if (use.write && entry->writer != 0 && entry->writer != task.id)
      return fmt::format("waiting for task {} to end: it writes dataset '{}'", entry->writer,
                         use.dataset);
  }
  return {};
}

void Catalog::lock_writes(const Task& task) {
  for (const auto& use : task.spec.datasets)
    if (auto* entry = find(use.dataset); entry && use.write) entry->writer = task.id;
}

void Catalog::unlock_writes(const Task& task) {
  for (const auto& use : task.spec.datasets)
    if (auto* entry = find(use.dataset); entry && entry->writer == task.id) entry->writer = 0;
}

void Catalog::add_user(const Task& task) {
  for (const auto& use : task.spec.datasets)
    if (auto* entry = find(use.dataset)) entry->users.insert(task.id);
}

void Catalog::remove_user(const Task& task) {
  for (const auto& use : task.spec.datasets)
    if (auto* entry = find(use.dataset)) entry->users.erase(task.id);
}

}  // namespace tierpilot
