// What jobs said outlives the coordinator, and goes with its task.
#include "coordinator/core/outcomes/progress_keeper.h"

#include <gmock/gmock.h>

#include "coordinator/store/pruning.h"
#include "coordinator/store/records.h"
#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

JobPoint point(uint64_t iteration, double loss) {
  JobPoint point{.attempt = 1, .iteration = iteration, .loss = {loss, {}}, .measures = {}};
  point.measures.emplace_back("accuracy", Figure{0.5, {}});
  point.measures.emplace_back("\xff bytes", Figure{{}, "not a number"});
  return point;
}

class ProgressKeeperTest : public CoreTest {
 protected:
  void SetUp() override {
    keeper_ = std::make_unique<ProgressKeeper>(*state_);
    id_ = submit({spec()})->first_task;
    join("n1");
    attempt_ = assign(id_, "n1");
  }
  std::vector<uint64_t> restart_coordinator() {
    keeper_.reset();
    restart();
    keeper_ = std::make_unique<ProgressKeeper>(*state_);
    std::vector<uint64_t> known;
    keeper_->begin([&](const Task& task, const JobPoint& point) {
      EXPECT_EQ(task.id, id_);
      known.push_back(point.iteration);
    });
    return known;
  }
  void tick_and_write() {
    keeper_->tick();
    flush();
  }
  uint64_t rows() {
    auto query = store_->reader().query("SELECT COUNT(*) FROM job_progress");
    EXPECT_TRUE(query && *query->step());
    return static_cast<uint64_t>(query->integer(0));
  }

  std::unique_ptr<ProgressKeeper> keeper_;
  uint64_t id_ = 0;
  AttemptId attempt_;
};

TEST_F(ProgressKeeperTest, ARunningJobsSeriesIsThereAfterARestartAndGoesOn) {
  keeper_->add(id_, point(1, 2.5));
  keeper_->add(id_, point(2, 1.5));
  tick_and_write();
  EXPECT_EQ(rows(), 0u) << "not each report is a write";
  clock_.advance_ns(ProgressKeeper::kEvery_ns);
  tick_and_write();
  EXPECT_EQ(restart_coordinator(), (std::vector<uint64_t>{1, 2}));
  keeper_->add(id_, point(3, 1.0));
  const auto series = keeper_->of(id_);
  ASSERT_EQ(series.size(), 3u);
  EXPECT_EQ(series[0].loss.value, 2.5);
  EXPECT_EQ(series[1].measures[0].second.value, 0.5);
  EXPECT_EQ(series[1].measures[1].second.unavailable, "not a number");
  EXPECT_EQ(series[2].iteration, 3u);
}

TEST_F(ProgressKeeperTest, WhatAnEndedJobSaidIsReadFromTheStore) {
  keeper_->add(id_, point(9, 0.1));
  ASSERT_TRUE(exit("n1", attempt_, success()));
  keeper_->ended(id_);
  tick_and_write();
  EXPECT_TRUE(restart_coordinator().empty()) << "it runs no more";
  ASSERT_EQ(keeper_->of(id_).size(), 1u);
  EXPECT_EQ(keeper_->of(id_)[0].iteration, 9u);
  EXPECT_TRUE(keeper_->of(id_ + 1).empty());
}

TEST_F(ProgressKeeperTest, AGracefulEndLosesNothing) {
  keeper_->add(id_, point(4, 0.5));
  keeper_->flush();
  EXPECT_EQ(restart_coordinator(), (std::vector<uint64_t>{4}));
}

TEST_F(ProgressKeeperTest, GoesWithItsTaskAndDoesNotComeBack) {
  keeper_->add(id_, point(1, 1));
  keeper_->flush();
  ASSERT_TRUE(exit("n1", attempt_, success()));
  submit({spec()});  // the last submission is never forgotten
  flush();
  EXPECT_EQ(rows(), 1u);
  store_->write(
      [](Db& db) {
        records::PruneRound round;
        round.finished_before_ms = INT64_MAX;
        const auto more = records::prune(db, round, 100);
        return more ? Status() : Status(tl::unexpected(more.error()));
      },
      nullptr);
  flush();
  EXPECT_EQ(rows(), 0u);
  keeper_->add(id_, point(2, 1));  // a late report
  keeper_->flush();
  flush();
  EXPECT_EQ(rows(), 0u);
}

TEST_F(ProgressKeeperTest, ATickWritesABoundedNumberAndTheRestLater) {
  std::vector<TaskSpec> many(ProgressKeeper::kMostWrites + 3, spec());
  const auto first = submit(many)->first_task;
  for (uint64_t i = 0; i < many.size(); ++i) {
    keeper_->add(first + i, point(1, 1));
    keeper_->ended(first + i);
  }
  tick_and_write();
  EXPECT_EQ(rows(), ProgressKeeper::kMostWrites);
  tick_and_write();
  EXPECT_EQ(rows(), many.size());
}

TEST_F(ProgressKeeperTest, ASeriesThatTheBookHadNoRoomForIsGoneOnWith) {
  keeper_->add(id_, point(1, 2));
  keeper_->flush();
  flush();
  constexpr uint64_t kMostTasks = ProgressBook::kMostOfAll / ProgressBook::kFewestPoints;
  for (uint64_t other = 1; other <= kMostTasks; ++other) keeper_->add(id_ + other, point(1, 1));
  keeper_->add(id_, point(2, 1));
  keeper_->flush();
  EXPECT_EQ(restart_coordinator(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(ProgressKeeperTest, AWriteThatFailedIsDoneAgain) {
  const auto change_store = [&](const char* sql) {
    store_->write([sql](Db& db) { return db.execute(sql); }, nullptr);
    flush();
  };
  keeper_->add(id_, point(7, 1));
  ASSERT_TRUE(exit("n1", attempt_, success()));
  keeper_->ended(id_);
  change_store(
      "CREATE TRIGGER full BEFORE INSERT ON job_progress BEGIN SELECT RAISE(FAIL, 'full'); END");
  tick_and_write();
  change_store("DROP TRIGGER full");
  clock_.advance_ns(ProgressKeeper::kEvery_ns);
  tick_and_write();
  EXPECT_EQ(rows(), 1u);
}

TEST(JobPoints, ADamagedTextIsAnErrorAndNoCrash) {
  const auto good = job_points_text({point(1, 2), point(3, 4)});
  ASSERT_TRUE(parse_job_points(good));
  for (size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(parse_job_points(good.substr(0, cut))) << cut;
  for (const char* text : {"[[1,2]]", "[{}]", "[[1,2,3,4,5,6,7,8,9]]", "[[\"a\"]]", "3"})
    EXPECT_FALSE(parse_job_points(text)) << text;
}

}  // namespace
}  // namespace tierpilot::testing
