#include "tests/dst/losses.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot::dst {
namespace {

// By then a node that has lost its disk has joined, or its lease has ended.
constexpr int64_t kNoticedNs = 12 * kSecond;

}  // namespace

bool Losses::is_left(const std::string& dataset, Digest content) const {
  for (const auto& node : nodes_)
    for (auto at = node->shelf().lower_bound({dataset, 0});
         at != node->shelf().end() && at->first.name == dataset; ++at)
      if (judge_.contents().descends(at->second.content, content)) return true;
  return false;
}

bool Losses::is_held(const std::string& dataset, Digest content) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return std::any_of(node->shelf().begin(), node->shelf().end(), [&](const auto& held) {
      return held.first.name == dataset && held.second.content == content;
    });
  });
}

bool Losses::is_on_disk(const std::string& dataset, Digest content) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return std::any_of(node->shelf().begin(), node->shelf().end(), [&](const auto& held) {
      const Stored& stored = held.second;
      return held.first.name == dataset && stored.content == content && stored.slow &&
             !stored.rotten;
    });
  });
}

// Of what was published something is left: it, or what was made from it and is not told yet. What
// is damaged counts until somebody notices.
void Losses::check() {
  std::erase_if(in_memory_, [&](const auto& left) { return is_on_disk(left.first, left.second); });
  for (const auto& [name, value] : judge_.current()) {
    if (is_left(name, value.content)) continue;
    // Of those that were there some were damaged, and the others were let go of, or were in the
    // memory of a machine that was rebooted before it had written them to its disk again.
    const std::pair content(name, value.content);
    if (damaged_.contains(content) || in_memory_.contains(content))
      judge_.lost_by_damage(name);
    else
      judge_.violated("lost-version", fmt::format("no node has version {} of {} any more, nor "
                                                  "anything made from it",
                                                  value.version, name));
  }
}

void Losses::damage_noticed(const DatasetId& id) {
  judge_.saved_work().spoil(id.name);
  // One that was added again after its removal, by a call that came late, nobody was told of yet.
  const auto value = judge_.newest(id.name);
  const Digest content = value ? value->content : id.digest.low;
  if (judge_.is_lost(id.name)) return;
  if (!is_left(id.name, content))
    judge_.lost_by_damage(id.name);
  else if (value && (id.version > value->version || !is_held(id.name, content)))
    damaged_.emplace(id.name, content);
  else if (value && !is_on_disk(id.name, content))
    in_memory_.emplace(id.name, content);
}

// What was made from a damaged one is kept for people only, unless its writer's end is still told.
void Losses::give_up_damaged() {
  for (const auto* excused : {&damaged_, &in_memory_})
    for (const auto& [name, content] : *excused)
      if (const auto value = judge_.newest(name);
          value && value->content == content && !judge_.is_lost(name) && !is_held(name, content))
        judge_.lost_by_damage(name);
}

// Nothing is lost that is on several nodes, as the coordinator says.
void Losses::lose_disk(Node& node, int64_t down_ns) {
  std::set<std::string> safe;
  const auto keeps = [&](const auto& replica) {
    const auto lost = disk_lost_ns_.find(replica.first);
    const bool is_known = lost == disk_lost_ns_.end() || loop_.now_ns() - lost->second > kNoticedNs;
    return replica.second.home && is_known;
  };
  if (coordinator_.up())
    for (const auto& [name, entry] : coordinator_.core().state.catalog.all())
      if (std::count_if(entry.replicas.begin(), entry.replicas.end(), keeps) > 1) safe.insert(name);
  disk_lost_ns_[node.name()] = loop_.now_ns();
  const auto lost = node.shelf();
  if (coordinator_.up()) coordinator_.look_at_all();
  node.lose_disk(down_ns);
  for (const auto& [id, stored] : lost) {
    judge_.saved_work().spoil(id.name);
    if (!is_left(id.name, stored.content)) gone_.insert(stored.content);
    const auto value = judge_.newest(id.name);
    // Of one that was added, or written while the coordinator is away, nobody may have been told.
    const Digest content = value && coordinator_.up() ? value->content : stored.content;
    if (safe.contains(id.name) || judge_.is_lost(id.name)) continue;
    if (is_left(id.name, content))
      damaged_.emplace(id.name, content);  // what is left may be kept by nobody
    else
      judge_.lost_by_damage(id.name);
  }
}

void Losses::published(const std::string& dataset, uint32_t replicas, Digest content) {
  if (replicas < 2 && gone_.contains(content) && !is_left(dataset, content))
    judge_.lost_by_damage(dataset);
}

}  // namespace tierpilot::dst
