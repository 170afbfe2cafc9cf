// Stores of every earlier format, as its programs wrote them (written/format_N.sql), are brought to
// today's when they are opened, step by step; those of later programs are left alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "coordinator/store/migrations/migration.h"
#include "coordinator/store/records.h"
#include "coordinator/store/store.h"
#include "coordinator/store/unit_records.h"
#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

int64_t newest_format() {
  return records::migrations().back().to;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class EarlierStores : public CoreTest, public ::testing::WithParamInterface<int64_t> {
 protected:
  static std::filesystem::path written(int64_t format) {
    return std::filesystem::path(TEST_STORES) / ("format_" + std::to_string(format) + ".sql");
  }
  // In place of the store that the fixture has made.
  void begin_with(const std::string& sql) {
    close();
    for (const char* file : {"tierpilot.db", "tierpilot.db-wal", "tierpilot.db-shm"})
      std::filesystem::remove(directory_ / file);
    auto db = Db::open((directory_ / "tierpilot.db").string());
    ASSERT_TRUE(db) << db.error().message;
    const auto made = db->execute(sql.c_str());
    ASSERT_TRUE(made) << made.error().message;
  }
  int64_t number(const char* sql) {
    auto query = store_->reader().query(sql);
    EXPECT_TRUE(query && *query->step());
    return query->integer(0);
  }
  std::string tables() {
    auto query = store_->reader().query(
        "SELECT GROUP_CONCAT(t.name || '(' || (SELECT GROUP_CONCAT(c.name || ' ' || c.type) "
        "FROM pragma_table_info(t.name) c) || ')') FROM (SELECT name FROM sqlite_schema "
        "WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name) t");
    EXPECT_TRUE(query && *query->step());
    return query->text(0);
  }
};

void expect_the_rows(Store& store) {
  auto& db = store.reader();
  const auto task = records::task(db, 7);
  ASSERT_TRUE(task && *task);
  EXPECT_EQ((*task)->spec.argv, (std::vector<std::string>{"echo", "a b"}));
  EXPECT_EQ((*task)->spec.env.front().second, "1");
  EXPECT_EQ((*task)->exit->written.front().version, 2u);
  EXPECT_EQ((*task)->served->evict_gb_per_s.value, 1.5);
  const auto active = records::active_tasks(db);
  ASSERT_TRUE(active);
  ASSERT_EQ(active->size(), 1u);
  EXPECT_EQ(active->front().id, 8u);
  const auto decisions = records::decisions(db, 7);
  ASSERT_TRUE(decisions) << decisions.error().message;
  ASSERT_EQ(decisions->size(), 1u);
  const auto& decision = decisions->front();
  EXPECT_EQ(decision.attempt, (AttemptId{7, 2}));
  EXPECT_EQ(decision.reward.reward, 0.75);
  EXPECT_EQ(decision.encoded, (std::vector<float>{0.5f, -1.0f}));
  ASSERT_EQ(decision.candidates.size(), 1u);
  EXPECT_EQ(decision.candidates.front().q, 0.5);
  EXPECT_TRUE(records::decisions(db, 6)->empty());
  EXPECT_TRUE(records::decisions(db, 8)->empty());
  const auto datasets = records::datasets(db);
  ASSERT_TRUE(datasets && datasets->size() == 1);
  EXPECT_EQ(datasets->front().home, "n1");
  EXPECT_FALSE(datasets->front().digest.known()) << "its home will tell it";
  EXPECT_EQ(datasets->front().replicas, 1u);
  EXPECT_EQ((*records::receipt(db, {(*task)->user, "r1"}))->first_task, 7u);
  EXPECT_EQ(records::nodes(db)->at("n1").instance, 99u);
  EXPECT_EQ(*records::setting(db, "lease_ms", 0), 12345);
}

TEST_P(EarlierStores, AreBroughtToTodays) {
  const std::string tables_of_today = tables();
  begin_with(contents(written(GetParam())));
  for (int run = 0; run < 2; ++run) {  // what was brought is not brought again
    auto opened = Store::open(directory_, [](auto) {});
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    expect_the_rows(*store_);
    EXPECT_EQ(*records::setting(store_->reader(), "format", 0), newest_format());
    EXPECT_EQ(tables(), tables_of_today);
    EXPECT_EQ(number("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'tasks_by_state'"), 0);
    store_.reset();
  }
}

TEST_P(EarlierStores, AStepThatFailsLeavesTheStoreAsItWas) {
  // The last step adds a column of this name.
  begin_with(contents(written(GetParam())) + "ALTER TABLE nodes ADD COLUMN away INTEGER;");
  const auto path = directory_ / "tierpilot.db";
  auto opened = Store::open(directory_, [](auto) {});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("while format"));
  auto db = Db::open(path.string());
  EXPECT_EQ(*records::setting(*db, "format", 0), GetParam());
  auto rewards = db->query("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'rewards'");
  ASSERT_TRUE(rewards && *rewards->step());
  EXPECT_EQ(rewards->integer(0), GetParam() >= 4) << "the steps before it are undone with it";
}

INSTANTIATE_TEST_SUITE_P(Formats, EarlierStores, ::testing::Range<int64_t>(1, 17));

TEST_F(EarlierStores, WhatJobsDidIsKept) {
  begin_with(contents(written(10)));
  auto opened = Store::open(directory_, [](auto) {});
  ASSERT_TRUE(opened) << opened.error().message;
  store_ = std::move(*opened);
  const auto points = records::job_progress(store_->reader(), 8);
  ASSERT_TRUE(points && points->size() == 1);
  EXPECT_EQ(points->front().iteration, 40u);
  const auto runs = records::past_runs(store_->reader());
  ASSERT_TRUE(runs && runs->size() == 1);
  EXPECT_EQ(runs->begin()->second.runs, 3u);
}

TEST_F(EarlierStores, FailuresOfUnitsThatNoDaemonHadANameForAreKept) {
  begin_with(contents(written(12)));
  auto opened = Store::open(directory_, [](auto) {});
  ASSERT_TRUE(opened) << opened.error().message;
  store_ = std::move(*opened);
  const auto known = records::read_units(store_->reader());
  ASSERT_TRUE(known) << known.error().message;
  UnitBook units;
  units.restore(*known);
  EXPECT_EQ(units.failures("n1/cpu/0"), 2u);
  EXPECT_EQ(units.find(""), nullptr);
}

TEST_F(EarlierStores, EveryFormatHasAStoreToTestWith) {
  int64_t format = 1;
  for (const auto& step : records::migrations()) {
    EXPECT_TRUE(std::filesystem::exists(written(format))) << written(format);
    EXPECT_EQ(step.to, ++format) << "no step may be left out";
  }
}

TEST_F(EarlierStores, ANewerStoreIsRefusedUnharmed) {
  close();
  const auto path = directory_ / "tierpilot.db";
  {
    auto db = Db::open(path.string());
    ASSERT_TRUE(
        db->execute("UPDATE settings SET value = 1000 WHERE key = 'format';"
                    "DROP TABLE owed_drops; PRAGMA wal_checkpoint(TRUNCATE);"));
  }
  const std::string before = contents(path);
  auto opened = Store::open(directory_, [](auto) {});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("format 1000"));
  EXPECT_THAT(opened.error().message, HasSubstr("newer"));
  EXPECT_EQ(contents(path), before);
}

}  // namespace
}  // namespace tierpilot::testing
