// Stores of earlier programs are converted when they are opened.
#include <gtest/gtest.h>

#include "coordinator/model_json.h"
#include "coordinator/store/records.h"
#include "coordinator/store/store.h"
#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

class OlderStores : public CoreTest {
 protected:
  // Of task 7, after `older` has made the store that of an earlier program.
  std::vector<DecisionRecord> read_from(Store::Change older) {
    store_->write(std::move(older), nullptr);
    flush();
    restart();
    restart();  // what was converted is not converted again
    const auto read = records::decisions(store_->reader(), 7);
    EXPECT_TRUE(read) << read.error().message;
    return read.value_or(std::vector<DecisionRecord>{});
  }

  static DecisionRecord decision() {
    DecisionRecord decision;
    decision.attempt = {7, 2};
    decision.node = "n";
    return decision;
  }
};

TEST_F(OlderStores, DecisionsAreRead) {
  const std::string body = decision_text(decision());
  const auto read = read_from([&](Db& db) -> Status {
    if (auto made = db.execute(
            "DROP TABLE decisions_by_id; UPDATE settings SET value = 1 WHERE key = 'format';"
            "CREATE TABLE decisions(task INTEGER NOT NULL, attempt INTEGER NOT NULL, "
            "body TEXT NOT NULL, PRIMARY KEY(task, attempt)) WITHOUT ROWID");
        !made)
      return made;
    auto put = db.query("INSERT INTO decisions VALUES(7, 2, ?)");
    return put ? put->bind(body).run() : Status(tl::unexpected(put.error()));
  });
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.front().attempt, (AttemptId{7, 2}));
  EXPECT_EQ(read.front().node, "n");
  EXPECT_TRUE(records::decisions(store_->reader(), 6)->empty());
  EXPECT_TRUE(records::decisions(store_->reader(), 8)->empty());
}

TEST_F(OlderStores, RewardsAreRead) {
  RewardRecord reward;
  reward.reward = 0.5;
  const std::string body = decision_text(decision()), rewarded = reward_text(reward);
  const auto read = read_from([&](Db& db) -> Status {
    if (auto made = db.execute(
            "DROP TABLE decisions_by_id; DROP TABLE rewards; DROP INDEX tasks_active;"
            "DROP INDEX tasks_without_success; CREATE INDEX tasks_by_state ON tasks(state, id);"
            "UPDATE settings SET value = 3 WHERE key = 'format';"
            "CREATE TABLE decisions_by_id(id INTEGER PRIMARY KEY, body TEXT NOT NULL, "
            "encoded BLOB, reward TEXT)");
        !made)
      return made;
    auto put = db.query("INSERT INTO decisions_by_id VALUES((7 << 16) + 2, ?, NULL, ?)");
    if (!put) return tl::unexpected(put.error());
    return put->bind(body).bind(rewarded).run();
  });
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.front().reward.reward, 0.5);
}

}  // namespace
}  // namespace tierpilot::testing
