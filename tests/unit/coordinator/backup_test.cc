// A backup while the store is written, and what a restored coordinator may give and begin.
#include "coordinator/store/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>

#include "coordinator/core/outcomes/task_end.h"
#include "coordinator/store/records.h"
#include "gangs/gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Backup : public CoreTest {
 protected:
  std::filesystem::path file() const { return directory_ / "backup"; }
  // The coordinator that is restored from file(); what the lost one had lies beside.
  void lose_and_restore() {
    close();
    const auto lost = directory_;
    directory_ += "-restored" + std::to_string(++restores_);
    std::filesystem::remove_all(directory_);
    const auto done = restore_backup(lost / "backup", directory_, clock_.wall_ms());
    ASSERT_TRUE(done) << done.error().message;
    std::filesystem::rename(lost / "backup", directory_ / "backup");
    std::filesystem::remove_all(lost);
    open();
  }
  int restores_ = 0;
};

TEST_F(Backup, HasWhatWasWrittenAndThePolicyFiles) {
  ASSERT_TRUE(submit({spec("a"), spec("b", {"a"})}, "once"));
  std::filesystem::create_directories(directory_ / "policy" / "versions");
  std::ofstream(directory_ / "policy" / "versions" / "1") << std::string("we\0ghts", 7);
  std::ofstream(directory_ / "policy" / "half.new") << "not whole";
  ASSERT_TRUE(write_backup(directory_, file()));
  ASSERT_TRUE(submit({spec()}, "later"));
  lose_and_restore();
  EXPECT_EQ(state_->tasks.find(1)->state, TaskState::kQueued);
  EXPECT_EQ(state_->tasks.find(2)->state, TaskState::kWaiting);
  EXPECT_EQ(state_->tasks.find(3), nullptr);
  EXPECT_EQ(submit({spec("a"), spec("b", {"a"})}, "once")->first_task, 1u);
  std::ifstream in(directory_ / "policy" / "versions" / "1");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), std::string("we\0ghts", 7));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "policy" / "half.new"));
}

TEST_F(Backup, LeavesNothingBesideIt) {
  const auto files = [](const std::filesystem::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.insert(entry.path().filename());
    return names;
  };
  ASSERT_TRUE(submit({spec()}));
  auto before = files(directory_);
  ASSERT_TRUE(write_backup(directory_, file()));
  before.insert("backup");
  EXPECT_EQ(files(directory_), before);
  ASSERT_TRUE(restore_backup(file(), directory_ / "made", clock_.wall_ms()));
  EXPECT_EQ(files(directory_ / "made"), std::set<std::string>{"tierpilot.db"});
  EXPECT_EQ(files(directory_), (before.insert("made"), before));
}

TEST_F(Backup, IsRestoredForTheOwnerOfTheFolderAloneToRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root restores for others";
  ASSERT_TRUE(submit({spec()}));
  std::filesystem::create_directories(directory_ / "policy");
  std::ofstream(directory_ / "policy" / "1") << "weights";
  ASSERT_TRUE(write_backup(directory_, file()));
  const auto given = directory_ / "given";
  std::filesystem::create_directory(given);
  ASSERT_EQ(::chown(given.c_str(), 64'002, 64'003), 0);
  ASSERT_TRUE(restore_backup(file(), given, clock_.wall_ms()));
  ASSERT_TRUE(restore_backup(file(), directory_ / "made", clock_.wall_ms()));
  for (const auto& path : {given / "tierpilot.db", given / "policy", given / "policy" / "1"}) {
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_uid, 64'002u) << path;
    EXPECT_EQ(info.st_gid, 64'003u) << path;
    EXPECT_EQ(info.st_mode & 077u, 0u) << path;
  }
  struct stat made {};
  ASSERT_EQ(::stat((directory_ / "made").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 077u, 0u);
}

TEST_F(Backup, WithoutWhatCannotBeReadIsNone) {
  ASSERT_TRUE(submit({spec()}));
  EXPECT_TRUE(write_backup(directory_, file())) << "nothing was learned yet";
  std::ofstream(directory_ / "policy") << "no folder";
  const auto written = write_backup(directory_, file());
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("policy"));
}

TEST_F(Backup, IdsAreNotGivenTwiceByTwoRestoresOfOneBackup) {
  ASSERT_TRUE(submit({spec()}));
  ASSERT_TRUE(write_backup(directory_, file()));
  uint64_t last = 1;
  for (int restore = 0; restore < 2; ++restore) {
    clock_.advance_ns(1'000'000'000);
    lose_and_restore();
    const auto given = submit(std::vector<TaskSpec>(1'000, spec()));
    ASSERT_TRUE(given);
    EXPECT_GT(given->first_task, last);
    EXPECT_GT(given->submission, last);
    last = given->first_task + 999;
    restart();  // the last ones may be forgotten
    EXPECT_GT(submit({spec()})->first_task, last);
    last += 1;
  }
  EXPECT_LT(last, uint64_t{1} << 47) << "decisions are found by 47 bits of it";
}

TEST_F(Backup, AttemptsAreNotGivenTwiceByTwoRestoresOfOneBackup) {
  ASSERT_TRUE(submit({spec()}));
  ASSERT_TRUE(write_backup(directory_, file()));
  uint32_t last = 0;
  for (int restore = 0; restore < 2; ++restore) {
    clock_.advance_ns(1'000'000'000);
    lose_and_restore();
    EXPECT_GT(state_->next_attempt(*state_->tasks.find(1)), last);
    last = state_->next_attempt(*state_->tasks.find(1));
  }
}

TEST_F(Backup, WhatRunsIsAdoptedAndNothingElseBegins) {
  ASSERT_TRUE(submit({spec("queued"), spec("elsewhere"), spec("waits", {"queued"})}));
  join("n1");
  (void)assign(2, "n1");
  flush();
  ASSERT_TRUE(write_backup(directory_, file()));
  clock_.advance_ns(100'000'000'000);
  lose_and_restore();
  EXPECT_TRUE(state_->adopting());
  // Meanwhile the first ran, the second was moved, and another was submitted.
  const auto n2 = join("n2", 8, {{1, 1}, {2, 2}, {99, 1}});
  ASSERT_EQ(n2->cancelled.size(), 1u);
  EXPECT_EQ(n2->cancelled.front().first, (AttemptId{99, 1}));
  EXPECT_EQ(state_->tasks.find(1)->node, "n2");
  EXPECT_EQ(state_->tasks.find(2)->attempt, 2u);
  const auto n1 = join("n1");
  EXPECT_EQ(state_->tasks.find(2)->node, "n2");
  flush();
  EXPECT_EQ(stored(1)->attempt, 1u);
  EXPECT_TRUE(exit("n2", {1, 1}, success()));
  EXPECT_EQ(state_->tasks.find(3)->state, TaskState::kQueued);
  EXPECT_GT(state_->next_attempt(*state_->tasks.find(3)), 1'000u) << "not one of before";
  EXPECT_GT(state_->max_attempts({.id = 3, .attempt = state_->attempts_above + 1}),
            state_->attempts_above + 1);
  clock_.advance_ns(settings_.lease_ms * 1'000'000);
  EXPECT_FALSE(state_->adopting());
}

// Its node does not tell which part of which unit it has, and that would be given to others too.
TEST_F(Backup, ATaskWithAShareIsNotAdoptedAndRunsAgainOnceItHasEnded) {
  auto shared = spec("shared");
  shared.share.wanted = true;
  ASSERT_TRUE(submit({shared}));
  flush();
  ASSERT_TRUE(write_backup(directory_, file()));
  lose_and_restore();
  const auto node = join("n1", 8, {{1, 1}});
  ASSERT_EQ(node->cancelled.size(), 1u);
  EXPECT_EQ(node->cancelled.front().first, (AttemptId{1, 1}));
  const auto& task = *state_->tasks.find(1);
  EXPECT_EQ(task.state, TaskState::kQueued);
  EXPECT_NE(state_->blocked_by(task).find("an earlier attempt"), std::string::npos);
}

TEST_F(Backup, AStateThatIsThereIsKept) {
  ASSERT_TRUE(write_backup(directory_, file()));
  const auto refused = restore_backup(file(), directory_, clock_.wall_ms());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(submit({spec()}));
}

// SQLite would take it for the restored one's.
TEST_F(Backup, TheLogOfAnotherStoreIsNotTakenForItsOwn) {
  ASSERT_TRUE(write_backup(directory_, file()));
  const auto target = directory_ / "target";
  std::filesystem::create_directory(target);
  std::ofstream(target / "tierpilot.db-wal") << "of another store";
  const auto refused = restore_backup(file(), target, clock_.wall_ms());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("tierpilot.db-wal"), std::string::npos)
      << refused.error().message;
}

TEST_F(Backup, NoEmptyStoreIsBegunWhereARestoreWasCutOff) {
  ASSERT_TRUE(write_backup(directory_, file()));
  const auto target = directory_ / "target";
  std::filesystem::create_directories(target);
  std::ofstream(target / kUnfinishedStore) << "half of it";
  const auto refused = Store::open(target, [](auto) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("restore it again"));
  ASSERT_TRUE(restore_backup(file(), target, clock_.wall_ms()));
  EXPECT_TRUE(Store::open(target, [](auto) {}));
}

TEST_F(Backup, OtherFilesAreRefused) {
  const auto target = directory_ / "target";
  const auto expect_refused = [&](const std::filesystem::path& from, const std::string& why) {
    const auto refused = restore_backup(from, target, clock_.wall_ms());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(target / "tierpilot.db"));
  };
  expect_refused(directory_ / "none", "no such file");
  expect_refused(directory_, "no plain file");
  std::ofstream(directory_ / "text")
      << "This is a text, and no database at all. " << std::string(9000, 'x');
  expect_refused(directory_ / "text", "text");
  flush();
  expect_refused(directory_ / "tierpilot.db", "no backup");
  ASSERT_TRUE(write_backup(directory_, file()));
  ASSERT_TRUE(
      Db::open(file().string())->execute("INSERT INTO backup_files VALUES('policy/../../x', 'y')"));
  expect_refused(file(), "a file named");
}

class GangsAfterARestore : public Gangs {
 protected:
  void restore_backup_taken() {
    dispatcher_.reset();
    close();
    const auto lost = directory_;
    directory_ += "-restored";
    std::filesystem::remove_all(directory_);
    ASSERT_TRUE(restore_backup(lost / "backup", directory_, clock_.wall_ms()));
    std::filesystem::remove_all(lost);
    again();
  }
  // Its first rank's warden is killed.
  void lose_try(uint64_t gang) {
    place();
    ASSERT_EQ(task(gang).state, TaskState::kAssigned) << task(gang).reason;
    start_all(gang);
    TaskExit lost;
    lost.how = TaskEnd::kLost;
    lost.reason = "its warden was killed";
    end(gang, 0, lost);
    end_cancelled(gang);
  }
};

TEST_F(GangsAfterARestore, HaveAsManyTriesAsOthers) {
  settings_.max_attempts = 2;
  again();
  const uint64_t gang = submit_gang(2);
  ASSERT_TRUE(write_backup(directory_, directory_ / "backup"));
  restore_backup_taken();
  pass(settings_.lease_ms + 1);
  join("n");
  while (may_forgive(task(gang))) state_->tasks.find(gang)->forgiven++;
  state_->tasks.find(gang)->attempt = state_->attempts_above + task(gang).forgiven;
  lose_try(gang);
  EXPECT_EQ(task(gang).state, TaskState::kQueued) << task(gang).reason;
  lose_try(gang);
  flush();
  EXPECT_EQ(stored(gang)->state, TaskState::kFailed);
  EXPECT_THAT(stored(gang)->reason, HasSubstr("(try 2 of 2)"));
}

// Its ranks go on where the backup does not know of them, for as long as it takes to end them.
TEST_F(GangsAfterARestore, AreBegunOnceNothingIsLeftOfWhatTheBackupDoesNotKnow) {
  auto n = join("n"), m = join("m");
  const uint64_t gang = submit_gang(4);
  ASSERT_TRUE(write_backup(directory_, directory_ / "backup"));
  place();
  ASSERT_EQ(n->started.size() + m->started.size(), 4u);
  start_all(gang);
  const std::set<AttemptId> on_n(n->started.begin(), n->started.end());
  const std::set<AttemptId> on_m(m->started.begin(), m->started.end());

  restore_backup_taken();
  n = join("n", 7, on_n);
  m = join("m", 7, on_m);
  EXPECT_EQ(n->cancelled.size() + m->cancelled.size(), 4u);
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  ASSERT_FALSE(state_->adopting());
  place();
  EXPECT_THAT(n->started, IsEmpty());
  EXPECT_THAT(task(gang).reason, HasSubstr("earlier attempt"));
  TaskExit cancelled;
  cancelled.how = TaskEnd::kCancelled;
  for (const auto attempt : on_n) EXPECT_TRUE(exit("n", attempt, cancelled));
  place();
  EXPECT_THAT(n->started, IsEmpty()) << "the others' node has not said so yet";
  for (const auto attempt : on_m) EXPECT_TRUE(exit("m", attempt, cancelled));
  place();
  EXPECT_EQ(n->started.size() + m->started.size(), 4u);
}

TEST_F(GangsAfterARestore, AreNotBegunEarlierWhereTheCoordinatorIsRestarted) {
  const uint64_t gang = submit_gang(1);
  const AttemptId before{gang + 1, 1};
  ASSERT_TRUE(write_backup(directory_, directory_ / "backup"));
  restore_backup_taken();
  join("n", 8, {before});
  for (int64_t ms = 0; ms <= settings_.lease_ms; ms += 1000) {
    pass(1000);
    EXPECT_TRUE(membership_->renew(tickets_["n"]));
    lifecycle_->end_adopting();
  }
  flush();
  again();
  const auto m = join("m");
  place();
  EXPECT_THAT(m->started, IsEmpty())
      << "its node has not come back, and not said that it has ended";
  join("n", 8, {before});
  TaskExit cancelled;
  cancelled.how = TaskEnd::kCancelled;
  EXPECT_TRUE(exit("n", before, cancelled));
  pass(settings_.lease_ms + 1);
  lifecycle_->end_adopting();
  flush();
  again();
  EXPECT_FALSE(state_->adopting());
}

TEST_F(GangsAfterARestore, WhatIsAdoptedWhileTheDiskIsFullStaysAdopted) {
  const auto id = submit({spec()})->first_task;
  ASSERT_TRUE(write_backup(directory_, directory_ / "backup"));
  restore_backup_taken();
  set_disk_full(true);
  join("n", 8, {{id, 5}});
  flush();
  pass(settings_.lease_ms + 1);
  lifecycle_->end_adopting();
  set_disk_full(false);
  again();
  EXPECT_TRUE(state_->adopting()) << "it is not on disk yet";
  set_disk_full(true);
  join("n", 8, {{id, 5}});
  flush();
  set_disk_full(false);
  retry();
  pass(settings_.lease_ms + 1);
  lifecycle_->end_adopting();
  flush();
  again();
  EXPECT_FALSE(state_->adopting());
  EXPECT_EQ(task(id).attempt, 5u);
  EXPECT_EQ(task(id).node, "n");
}

}  // namespace
}  // namespace tierpilot::testing
