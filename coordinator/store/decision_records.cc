#include "coordinator/store/records.h"

#include <cstring>
#include <span>

#include "coordinator/model_json.h"
#include "coordinator/store/rows.h"

namespace tierpilot::records {
namespace {

Result<DecisionRecord> read_decision(const Query& row) {
  auto decision = parse_decision(row.text(0));
  if (!decision) return decision;
  const auto encoded = row.bytes(1);
  if (encoded.size() % sizeof(float) != 0)
    return fail(ErrorCode::kInvalid, "store: decision: what the network saw is cut short");
  decision->encoded.resize(encoded.size() / sizeof(float));
  std::memcpy(decision->encoded.data(), encoded.data(), encoded.size());
  if (row.is_null(2)) return decision;
  auto reward = parse_reward(row.text(2));
  if (!reward) return tl::unexpected(reward.error());
  decision->reward = std::move(*reward);
  return decision;
}

}  // namespace

Status put_decision(Db& db, const DecisionRecord& decision) {
  auto query =
      db.query("INSERT OR REPLACE INTO decisions(task, attempt, body, encoded) VALUES(?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, decision.attempt.task);
  query->bind(int64_t{decision.attempt.attempt}).bind(decision_text(decision));
  return query->bind(std::as_bytes(std::span(decision.encoded))).run();
}

Status put_reward(Db& db, AttemptId attempt, const RewardRecord& reward) {
  auto query = db.query("UPDATE decisions SET reward = ? WHERE task = ? AND attempt = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(reward_text(reward));
  return bind_unsigned(*query, attempt.task).bind(int64_t{attempt.attempt}).run();
}

Result<std::vector<DecisionRecord>> decisions(Db& db, uint64_t task_id) {
  auto query =
      db.query("SELECT body, encoded, reward FROM decisions WHERE task = ? ORDER BY attempt");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, task_id);
  return read_all<DecisionRecord>(*query, read_decision);
}

}  // namespace tierpilot::records
