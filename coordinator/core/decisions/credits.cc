#include "coordinator/core/decisions/credits.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {

void Credits::served(AttemptId attempt, const ServedData& data) {
  // None: an earlier coordinator decided. Its learners go on here, its oversight began anew.
  const auto placed = in_flight_.find(attempt);
  const uint32_t total = state_.registry.summary().total_units;
  ServiceMeasure measure;
  measure.utilisation =
      total ? static_cast<double>(state_.registry.summary().busy_units) / total : 0;
  measure.service_ns = static_cast<double>(std::max<uint64_t>(data.latency_ns, 1));
  measure.reference_ns = static_cast<double>(data.reference_ns);  // 0: not measured there
  // A clean copy that is dropped moves no byte: only what was written is paid for.
  measure.evicted_bytes = data.evicted_written_bytes;
  measure.evict_bytes_per_s = data.evict_gb_per_s.value.value_or(0) * 1e9;
  RewardRecord reward;
  reward.utilisation = measure.utilisation;
  reward.latency_ns = data.latency_ns;
  reward.reference_ns = data.reference_ns;
  reward.evicted_bytes = data.evicted_written_bytes;
  reward.evict_gb_per_s = data.evict_gb_per_s;
  if (const auto parts = compute_reward(measure, state_.settings.reward)) {
    reward.reward = parts->reward;
    reward.latency_term = parts->latency_term;
    reward.penalty_term = parts->penalty_term;
    if (placed != in_flight_.end()) credit(placed->second, parts->reward);
    host_.told(attempt_key(attempt), DataServed{*parts});
  } else {
    spdlog::debug("task {}: no reward: {}", attempt.task, parts.error().message);
  }
  state_.store.write([attempt, reward](Db& db) { return records::put_reward(db, attempt, reward); },
                     nullptr);
}

void Credits::credit(const Placed& placed, double reward) {
  if (!placed.fell_back) state_.scores.rewarded(placed.turn.policy, reward);
  oversight_.rewarded(placed.turn, reward);
}

void Credits::ended(AttemptId attempt, bool succeeded) {
  const auto placed = in_flight_.extract(attempt);
  if (!succeeded) return host_.told(attempt_key(attempt), Abandoned{});
  if (placed.empty()) return ended_from_before(attempt);
  const auto seconds_since = [now_ns = state_.clock.boot_ns()](int64_t then_ns) {
    return static_cast<double>(now_ns - then_ns) / 1e9;
  };
  host_.told(attempt_key(attempt), Finished{seconds_since(placed.mapped().decided_ns)});
  oversight_.finished(placed.mapped().turn, seconds_since(placed.mapped().asked_ns));
}

void Credits::ended_from_before(AttemptId attempt) {
  const auto decisions = records::decisions(state_.store.reader(), attempt.task);
  if (!decisions) return host_.told(attempt_key(attempt), Abandoned{});
  for (const auto& decision : *decisions)
    if (const int64_t took_ms = state_.clock.wall_ms() - decision.at_ms;
        decision.attempt == attempt && took_ms > 0)
      return host_.told(attempt_key(attempt), Finished{static_cast<double>(took_ms) / 1e3});
  host_.told(attempt_key(attempt), Abandoned{});
}

}  // namespace tierpilot
