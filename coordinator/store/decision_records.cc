#include "coordinator/store/records.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "coordinator/model_json.h"
#include "coordinator/store/rows.h"

namespace tierpilot::records {
namespace {

int64_t decision_key(AttemptId attempt) {
  return static_cast<int64_t>(attempt_key(attempt));
}

Result<DecisionRecord> read_decision(const Query& row) {
  auto decision = parse_decision(row.text(0));
  if (!decision) return decision;
  const auto encoded = row.bytes(1);
  if (encoded.size() % sizeof(float) != 0)
    return fail(ErrorCode::kInvalid, "store: decision: what the network saw is cut short");
  // A heuristic's is empty, and the first stores have it in the text.
  if (!encoded.empty()) {
    decision->encoded.resize(encoded.size() / sizeof(float));
    std::memcpy(decision->encoded.data(), encoded.data(), encoded.size());
  }
  if (row.is_null(2)) return decision;
  auto reward = parse_reward(row.text(2));
  if (!reward) return tl::unexpected(reward.error());
  decision->reward = std::move(*reward);
  return decision;
}

}  // namespace

Status put_decision(Db& db, const DecisionRecord& decision) {
  const std::string body = decision_text(decision);
  auto query = db.query("INSERT OR REPLACE INTO decisions_by_id(id, body, encoded) VALUES(?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(decision_key(decision.attempt));
  query->bind_borrowed(body);
  return query->bind(std::as_bytes(std::span(decision.encoded))).run();
}

Status put_reward(Db& db, AttemptId attempt, const RewardRecord& reward) {
  auto query = db.query("INSERT OR REPLACE INTO rewards(id, body) VALUES(?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(decision_key(attempt));
  return query->bind(reward_text(reward)).run();
}

Result<std::vector<DecisionRecord>> decisions(Db& db, uint64_t task_id) {
  auto query = db.query(
      "SELECT d.body, d.encoded, r.body FROM decisions_by_id d LEFT JOIN rewards r ON r.id = d.id "
      "WHERE d.id BETWEEN ? AND ? ORDER BY d.id DESC LIMIT ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(decision_key({task_id, 0})).bind(decision_key({task_id, UINT32_MAX}));
  query->bind(static_cast<int64_t>(kMostDecisions));
  auto found = read_all<DecisionRecord>(*query, read_decision);
  if (found) std::reverse(found->begin(), found->end());
  return found;
}

}  // namespace tierpilot::records
