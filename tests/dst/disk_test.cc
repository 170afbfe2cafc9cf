// The simulated disk, and what SQLite and the store keep on it.
#include "tests/dst/disk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <set>

#include "coordinator/store/store.h"

namespace tierpilot::dst {
namespace {

class DiskTest : public testing::Test {
 protected:
  DiskTest() { Disk::use(&disk_); }
  ~DiskTest() override { Disk::use(nullptr); }

  // How many of a hundred committed rows are there after the end.
  int64_t left_after(const char* synchronous, Disk::End end) {
    {
      auto db = Db::open("test.db");
      EXPECT_TRUE(db->execute("PRAGMA journal_mode=WAL"));
      EXPECT_TRUE(db->execute(synchronous));
      EXPECT_TRUE(db->execute("CREATE TABLE IF NOT EXISTS rows(id INTEGER PRIMARY KEY)"));
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(db->execute("INSERT INTO rows VALUES(NULL)"));
      disk_.stop();
    }
    disk_.revive(end);
    auto db = Db::open("test.db");
    auto count = db->query("SELECT COUNT(*) FROM rows");
    if (!count || !count->step().value_or(false)) return 0;
    return count->integer(0);
  }

  Disk disk_{7};
};

TEST_F(DiskTest, KeepsWhatWasSynced) {
  EXPECT_EQ(left_after("PRAGMA synchronous=FULL", Disk::End::kPowerCut), 100);
}

TEST_F(DiskTest, LosesWhatWasNotSyncedWithThePower) {
  EXPECT_LT(left_after("PRAGMA synchronous=OFF", Disk::End::kPowerCut), 100);
}

TEST_F(DiskTest, LosesNothingOfAKilledProcess) {
  EXPECT_EQ(left_after("PRAGMA synchronous=OFF", Disk::End::kKilled), 100);
}

TEST_F(DiskTest, IsFullUntilItIsNot) {
  auto db = Db::open("test.db");
  disk_.set_full(true);
  EXPECT_EQ(db->execute("CREATE TABLE rows(id)").error().code, ErrorCode::kExhausted);
  disk_.set_full(false);
  EXPECT_TRUE(db->execute("CREATE TABLE rows(id)"));
}

// Whatever failed in between: a sync that fails forgets what it was to keep.
TEST_F(DiskTest, KeepsWhatWasAcknowledgedWhereItFails) {
  size_t kept = 0, failed = 0;
  for (int power_cut = 0; power_cut < 20; ++power_cut) {
    std::vector<int> ids;
    {
      auto db = Db::open("test.db");
      ASSERT_TRUE(db->execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"));
      ASSERT_TRUE(db->execute("CREATE TABLE IF NOT EXISTS rows(id INTEGER PRIMARY KEY)"));
      disk_.set_failing(0.2);
      for (int id = 100 * power_cut; id < 100 * power_cut + 50; ++id) {
        const auto sql = fmt::format("INSERT INTO rows VALUES({})", id);
        db->execute(sql.c_str()) ? ids.push_back(id) : (void)++failed;
        if (id % 16 == 0) (void)db->checkpoint();
      }
      disk_.stop();
      disk_.set_failing(0);
    }
    disk_.revive(Disk::End::kPowerCut);
    auto db = Db::open("test.db");
    for (const int id : ids) {
      auto found = db->query("SELECT id FROM rows WHERE id = ?");
      ASSERT_TRUE(found);
      EXPECT_TRUE(found->bind(int64_t{id}).step().value_or(false)) << id;
    }
    kept += ids.size();
  }
  EXPECT_GT(kept, 100u);
  EXPECT_GT(failed, 100u);
}

class StoreOnADisk : public testing::Test {
 protected:
  StoreOnADisk() { Disk::use(&disk_); }
  ~StoreOnADisk() override {
    Disk::use(nullptr);
    std::filesystem::remove_all(directory_);
  }

  std::unique_ptr<Store> open() {
    auto store = Store::open(
        directory_, [](const std::function<void()>& work) { work(); }, Store::Commits::kByCaller);
    return store ? std::move(*store) : nullptr;
  }

  // Commits so many settings, each by itself; those whose commit is acknowledged are `kept_`.
  void write(Store& store, int count) {
    for (; count > 0; --count) {
      const auto name = std::to_string(++last_);
      store.write(
          [name](Db& db) {
            auto query = db.query("INSERT INTO settings(key, value) VALUES(?, 1)");
            return query ? query->bind(std::string_view(name)).run()
                         : Status(tl::unexpected(query.error()));
          },
          [this, name](const Status& done) { (done ? kept_ : failed_).insert(name); });
      store.commit_next();
    }
  }

  std::set<std::string> found(Store& store) {
    std::set<std::string> names;
    auto query = store.reader().query("SELECT key FROM settings");
    while (query && query->step().value_or(false)) names.insert(query->text(0));
    return names;
  }

  void end(std::unique_ptr<Store> store, Disk::End how) {
    disk_.stop();
    store.reset();
    disk_.revive(how);
  }

  void ends_amid_failures(double share) {
    auto store = open();
    ASSERT_NE(store, nullptr);
    disk_.set_failing(share);
    write(*store, 5);
    disk_.set_failing(0);
    end(std::move(store), Disk::End::kKilled);
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / fmt::format("tierpilot-dst-disk-{}", ::getpid());
  Disk disk_{11};
  int last_ = 0;
  std::set<std::string> kept_, failed_;
};

// What a sync forgot is in the page cache alone, where the next process finds it and writes behind
// it.
TEST_F(StoreOnADisk, KeepsWhatIsAcknowledgedAfterAnEndAmidFailures) {
  for (int round = 0; round < 40; ++round) {
    ASSERT_NO_FATAL_FAILURE(ends_amid_failures(0.4));
    auto store = open();
    ASSERT_NE(store, nullptr);
    write(*store, 3);
    end(std::move(store), Disk::End::kPowerCut);
    store = open();
    ASSERT_NE(store, nullptr);
    const auto there = found(*store);
    for (const auto& name : kept_) ASSERT_TRUE(there.contains(name)) << name << ", round " << round;
    end(std::move(store), Disk::End::kKilled);
  }
  EXPECT_GT(failed_.size(), 50u);
  EXPECT_GT(kept_.size(), 120u);
}

// Of a commit that failed in its last step the next process finds all: nobody is told that it
// failed before another one stands in its place.
TEST_F(StoreOnADisk, HasNothingThatWasToldToHaveFailed) {
  for (int round = 0; round < 60; ++round) {
    ASSERT_NO_FATAL_FAILURE(ends_amid_failures(0.3));
    auto store = open();
    ASSERT_NE(store, nullptr);
    const auto there = found(*store);
    for (const auto& name : kept_) ASSERT_TRUE(there.contains(name)) << name << ", round " << round;
    for (const auto& name : failed_)
      ASSERT_FALSE(there.contains(name)) << name << ", round " << round;
    end(std::move(store), Disk::End::kKilled);
  }
  EXPECT_GT(failed_.size(), 20u);
}

TEST_F(StoreOnADisk, TellsOfAFailureOnceItIsSureThoughNobodyWritesAnythingElse) {
  auto store = Store::open(directory_, [](const std::function<void()>& work) { work(); });
  ASSERT_TRUE(store);
  disk_.fail_syncs(true);
  std::promise<Status> told;
  (*store)->write(
      [](Db& db) { return db.execute("INSERT INTO settings(key, value) VALUES('a', 1)"); },
      [&](Status done) { told.set_value(std::move(done)); });
  auto answer = told.get_future();
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
  EXPECT_NE((*store)->trouble(), "");
  disk_.fail_syncs(false);
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(answer.get().error().code, ErrorCode::kIo);
  EXPECT_EQ((*store)->trouble(), "");
}

// Nothing is told of what was found before it is written anew; where that has no room, it can be
// read.
TEST_F(StoreOnADisk, OpensOnceWhatWasFoundIsWrittenAnew) {
  auto store = open();
  ASSERT_NE(store, nullptr);
  write(*store, 3);
  end(std::move(store), Disk::End::kKilled);
  disk_.set_failing(1);
  EXPECT_EQ(open(), nullptr);
  disk_.set_failing(0);
  disk_.set_full(true);
  store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(found(*store).contains("3"));
  write(*store, 1);
  disk_.set_full(false);
  write(*store, 1);
  EXPECT_TRUE(kept_.contains("5"));
  const auto there = found(*store);
  for (const auto& name : kept_) EXPECT_TRUE(there.contains(name)) << name;
}

}  // namespace
}  // namespace tierpilot::dst
