#include "coordinator/store/records.h"

#include <fmt/format.h>

#include "coordinator/store/rows.h"

namespace tierpilot::records {
Status put_policy_standing(Db& db, const PolicyStanding& standing) {
  auto query = db.query(
      "INSERT OR REPLACE INTO policy_standings(policy, mode, standing, step, setbacks, why) "
      "VALUES(?,?,?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  const auto& memory = standing.memory;
  query->bind(standing.policy).bind(static_cast<int64_t>(memory.mode));
  query->bind(static_cast<int64_t>(memory.standing)).bind(int64_t{memory.step});
  return query->bind(int64_t{memory.setbacks}).bind(memory.why).run();
}

Result<std::vector<PolicyStanding>> policy_standings(Db& db) {
  auto query = db.query("SELECT policy, mode, standing, step, setbacks, why FROM policy_standings");
  if (!query) return tl::unexpected(query.error());
  return read_all<PolicyStanding>(*query, [](const Query& row) -> Result<PolicyStanding> {
    const int64_t mode = row.integer(1), standing = row.integer(2);
    if (mode < 0 || mode >= kPolicyModes || standing < 0 || standing >= kStandings)
      return fail(ErrorCode::kInvalid,
                  fmt::format("store: policy '{}': mode {} or standing {} is unknown here",
                              row.text(0), mode, standing));
    return PolicyStanding{row.text(0),
                          {static_cast<PolicyMode>(mode), static_cast<Standing>(standing),
                           static_cast<uint32_t>(row.integer(3)),
                           static_cast<uint32_t>(row.integer(4)), row.text(5)}};
  });
}

Status put_policy_event(Db& db, const PolicyEvent& event) {
  auto query = db.query("INSERT INTO policy_events(at_ms, policy, what, why) VALUES(?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(event.at_ms).bind(event.policy).bind(event.what);
  if (auto put = query->bind(event.why).run(); !put) return put;
  auto old =
      db.query("DELETE FROM policy_events WHERE id <= (SELECT MAX(id) FROM policy_events) - 1000");
  return old ? old->run() : Status(tl::unexpected(old.error()));
}

Result<std::vector<PolicyEvent>> policy_events(Db& db, const std::string& policy, uint32_t limit) {
  auto query = db.query(
      "SELECT at_ms, policy, what, why FROM policy_events WHERE ?1 = '' OR policy = ?1 "
      "ORDER BY id DESC LIMIT ?2");
  if (!query) return tl::unexpected(query.error());
  query->bind(policy).bind(int64_t{limit});
  return read_all<PolicyEvent>(*query, [](const Query& row) -> Result<PolicyEvent> {
    return PolicyEvent{row.integer(0), row.text(1), row.text(2), row.text(3)};
  });
}

}  // namespace tierpilot::records
