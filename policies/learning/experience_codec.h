// Experiences as bytes. Neighbouring ones share sights: each sight is written once and referred to
// by index.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "policies/learning/byte_codec.h"
#include "policies/learning/pending.h"

namespace tierpilot {

template <class Sight>
struct Experiences {
  std::vector<Experience<Sight>> replay;
  std::vector<PendingExperience<Sight>> pending;
};

template <class Sight>
class SightTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit SightTable(const Experiences<Sight>& experiences) {
    for (const auto& entry : experiences.replay) add(entry);
    for (const auto& entry : experiences.pending) add(entry);
  }
  uint32_t index_of(const std::shared_ptr<const Sight>& sight) const {
    return sight ? indices_.at(sight.get()) : kNone;
  }
  const std::vector<const Sight*>& list() const { return list_; }

 private:
  void add(const auto& entry) {
    for (const auto& sight : {entry.seen, entry.next})
      if (sight && indices_.try_emplace(sight.get(), list_.size()).second)
        list_.push_back(sight.get());
  }
  std::unordered_map<const Sight*, uint32_t> indices_;
  std::vector<const Sight*> list_;
};

// `put_sight(out, sight)`.
template <class Sight>
void put_experiences(ByteWriter& out, const Experiences<Sight>& experiences, auto put_sight) {
  const SightTable<Sight> table(experiences);
  out.put<uint64_t>(table.list().size());
  for (const Sight* sight : table.list()) put_sight(out, *sight);
  out.put<uint64_t>(experiences.replay.size());
  for (const auto& entry : experiences.replay) {
    out.put(table.index_of(entry.seen));
    out.put(table.index_of(entry.next));
    out.put(entry.action);
    out.put(entry.reward);
  }
  out.put<uint64_t>(experiences.pending.size());
  for (const auto& entry : experiences.pending) {
    out.put(entry.id);
    out.put(table.index_of(entry.seen));
    out.put(table.index_of(entry.next));
    out.put(entry.action);
    out.put<uint8_t>(entry.reward.has_value());
    out.put(entry.reward.value_or(0));
  }
}

// What differs between the learners.
template <class Sight>
struct SightRules {
  size_t least_bytes = 1;  // of one sight: bounds what a damaged count can allocate
  // Null when it cannot be.
  std::shared_ptr<const Sight> (*get)(ByteReader& in) = nullptr;
  bool (*has_action)(const Sight& sight, uint32_t action) = nullptr;
  bool needs_next = false;  // in the replay
};

// kInvalid says what cannot be. Every experience has its sight, an action that is in it and a
// finite reward.
template <class Sight>
Result<Experiences<Sight>> get_experiences(ByteReader& in, const SightRules<Sight>& rules) {
  const auto bad = [](std::string_view what) {
    return fail(ErrorCode::kInvalid, fmt::format("{} cannot be", what));
  };
  std::vector<std::shared_ptr<const Sight>> sights(in.get_count(rules.least_bytes));
  for (auto& sight : sights) {
    sight = rules.get(in);
    if (!in.ok() || !sight) return bad("what was seen");
  }
  const auto get_sight = [&]() -> std::shared_ptr<const Sight> {
    const auto index = in.get<uint32_t>();
    return index < sights.size() ? sights[index] : nullptr;
  };
  const auto plausible = [&](const auto& entry, double reward) {
    return entry.seen && rules.has_action(*entry.seen, entry.action) && std::isfinite(reward);
  };
  Experiences<Sight> experiences;
  const size_t replay_count = in.get_count(4 + 4 + 4 + 8);
  for (size_t i = 0; i < replay_count; ++i) {
    Experience<Sight> entry;
    entry.seen = get_sight();
    entry.next = get_sight();
    entry.action = in.get<uint32_t>();
    entry.reward = in.get<double>();
    if (!plausible(entry, entry.reward) || (rules.needs_next && !entry.next))
      return bad("an experience");
    experiences.replay.push_back(std::move(entry));
  }
  const size_t pending_count = in.get_count(8 + 4 + 4 + 4 + 1 + 8);
  for (size_t i = 0; i < pending_count; ++i) {
    PendingExperience<Sight> entry;
    entry.id = in.get<uint64_t>();
    entry.seen = get_sight();
    entry.next = get_sight();
    entry.action = in.get<uint32_t>();
    const bool rewarded = in.get<uint8_t>() != 0;
    const auto reward = in.get<double>();
    if (!plausible(entry, reward)) return bad("a pending experience");
    if (rewarded) entry.reward = reward;
    experiences.pending.push_back(std::move(entry));
  }
  return experiences;
}

}  // namespace tierpilot
