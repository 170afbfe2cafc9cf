// What a job names as a checkpoint becomes a dataset of the node's pool, or the job hears why not.
#include "daemon/agent/job_channel/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "daemon/agent/job_channel/fresh_checkpoints.h"
#include "daemon/exec/users/task_file.h"

namespace tierpilot::agent {
namespace {
namespace fs = std::filesystem;

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr AttemptId kRank0{8, 2};

class CheckpointsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/dev/shm/tierpilot-checkpoint-XXXXXX";  // the fast tier must be on a tmpfs
    if (!::mkdtemp(name)) GTEST_SKIP() << "no directory can be made in /dev/shm";
    root_ = name;
    PoolOptions options;
    options.fast_dir = root_ / "fast";
    options.fast_budget_bytes = 1 << 20;
    options.slow_dir = root_ / "slow";
    options.slow_budget_bytes = 2 << 20;
    auto opened = Pool::open(
        options, nullptr, [this](auto work) { loop_.post(std::move(work)); },
        [this](const ReplicaChange& change) {
          changes_.push_back(change);
          if (fresh_) fresh_->changed(change);
        });
    ASSERT_TRUE(opened) << opened.error().message;
    pool_ = std::move(*opened);
    checkpoints_ = std::make_unique<Checkpoints>(
        *pool_, channels_, clock_,
        [this](AttemptId, const std::string& path, const Checkpoints::Opened& opened) {
          opened(open_task_file(folder_, path));
        },
        [this](EventBody body) { events_.push_back(std::move(body)); });
    channels_.checkpoint = [this](AttemptId attempt, const JobCheckpoint& asked) {
      checkpoints_->save(attempt, asked);
    };
    clock_.advance_ns(1'000'000'000);
    folder_ = root_ / "8-2";
    begin(0);
    connect();
  }
  void TearDown() override {
    checkpoints_.reset();
    fresh_.reset();
    pool_.reset();
    if (!root_.empty()) fs::remove_all(root_);
  }

  void begin(uint32_t rank) {
    fs::create_directory(folder_);
    Assignment assignment;
    assignment.attempt = kRank0;
    assignment.rank = RankAssignment{};
    assignment.rank->gang = 7;
    assignment.rank->rank = rank;
    checkpoints_->begin(assignment);
  }
  void connect() {
    const auto path = channels_.open(kRank0, folder_);
    ASSERT_TRUE(path) << path.error().message;
    connect_again();
  }
  void connect_again() {
    job_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder_ / JobChannels::kSocketName).c_str());
    ASSERT_EQ(::connect(job_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
  }
  void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  void say(const json& message) {
    const auto line = message.dump() + "\n";
    ASSERT_EQ(::send(job_.get(), line.data(), line.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(line.size()));
  }
  void ask(const std::string& path, uint64_t iteration) {
    say({{"v", 1}, {"type", "checkpoint"}, {"path", path}, {"iteration", iteration}});
  }
  // The next line that the job is told.
  json hear() {
    for (int i = 0; i < 2000; ++i) {
      if (const auto end = unread_.find('\n'); end != std::string::npos) {
        auto line = parse_json<json>(unread_.substr(0, end));
        unread_.erase(0, end + 1);
        return line;
      }
      loop_.detach(loop_.after_ms(5).then([this] { loop_.stop(); }), "test");
      loop_.run();
      char buffer[4096];
      const auto got = ::recv(job_.get(), buffer, sizeof buffer, 0);
      if (got > 0) unread_.append(buffer, static_cast<size_t>(got));
    }
    return {};
  }
  json asked(const std::string& path, uint64_t iteration) {
    ask(path, iteration);
    auto told = hear();
    clock_.advance_ns(Checkpoints::kLeastGapMs * 1'000'000);
    return told;
  }
  void keep_fresh() { fresh_ = std::make_unique<FreshCheckpoints>(*pool_); }
  bool in_fast(const std::string& name) {
    for (const auto& replica : pool_->replicas())
      if (replica.name == name) return replica.in_fast;
    return false;
  }
  bool becomes(const std::function<bool()>& true_soon, int looks = 2000) {
    for (int i = 0; i < looks && !true_soon(); ++i) {
      loop_.detach(loop_.after_ms(5).then([this] { loop_.stop(); }), "test");
      loop_.run();
    }
    return true_soon();
  }
  void expect_refused(const std::string& path, const std::string& why) {
    const auto told = asked(path, 3);
    EXPECT_EQ(told["type"], "checkpoint_failed") << path << told;
    EXPECT_THAT(told.value("what", ""), HasSubstr(why)) << path;
    EXPECT_THAT(pool_->replicas(), IsEmpty()) << path;
  }

  fs::path root_, folder_;
  EventLoop loop_;
  ManualClock clock_;
  std::vector<ReplicaChange> changes_;
  std::vector<EventBody> events_;
  std::unique_ptr<Pool> pool_;
  JobChannels channels_{loop_, clock_};
  std::unique_ptr<FreshCheckpoints> fresh_;
  std::unique_ptr<Checkpoints> checkpoints_;
  UniqueFd job_;
  std::string unread_;
};

TEST_F(CheckpointsTest, AFileOfTheJobsFolderIsKeptUnderTheGangsName) {
  write(folder_ / "state.pt", "weights");
  const auto told = asked("state.pt", 3);
  EXPECT_EQ(told["type"], "checkpoint_saved") << told;
  EXPECT_EQ(told["iteration"], 3);
  EXPECT_EQ(told["bytes"], 7);
  const auto kept = pool_->replicas();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].name, "checkpoint.7.2.3");
  EXPECT_TRUE(kept[0].home);
  ASSERT_EQ(changes_.size(), 1u);
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(std::get<CheckpointedEvent>(events_[0]).checkpoint, "checkpoint.7.2.3");
}

TEST_F(CheckpointsTest, AnAbsolutePathIntoTheFolderWillDoAndTheJobsOwnTimeCounts) {
  write(folder_ / "state.pt", "weights");
  say({{"v", 1},
       {"type", "checkpoint"},
       {"path", (folder_ / "state.pt").string()},
       {"iteration", 3},
       {"saving_ms", 250}});
  EXPECT_EQ(hear()["type"], "checkpoint_saved");
  ASSERT_EQ(events_.size(), 1u);
  const auto& event = std::get<CheckpointedEvent>(events_[0]);
  EXPECT_EQ(event.stall_ns, event.copy_ns + 250'000'000);
}

TEST_F(CheckpointsTest, WhatIsNoFileOrLeavesTheFolderIsRefused) {
  write(root_ / "secret", "secret");
  fs::create_symlink(root_ / "secret", folder_ / "link");
  fs::create_directory_symlink(root_, folder_ / "up");
  fs::create_directory(folder_ / "folder");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_refused("missing", "No such file");
  expect_refused("folder", "not a regular file");
  expect_refused("pipe", "not a regular file");
  expect_refused("job.sock", "cannot be opened");
  expect_refused("/dev/null", "outside of the job's folder");
  expect_refused("../secret", "outside of the job's folder");
  expect_refused((root_ / "secret").string(), "outside of the job's folder");
  expect_refused("link", "outside of the job's folder");
  expect_refused("up/secret", "outside of the job's folder");
  expect_refused("", "empty");
  expect_refused(std::string("state\0pt", 8), "NUL");
}

TEST_F(CheckpointsTest, TheNewestOfAJobIsInTheFastTierAndOlderOnesAge) {
  keep_fresh();
  // Both would not fit into the fast tier at once.
  for (const char* file : {"a", "b"}) write(folder_ / file, std::string(600'000, *file));
  EXPECT_EQ(asked("a", 3)["type"], "checkpoint_saved");
  EXPECT_TRUE(becomes([this] { return in_fast("checkpoint.7.2.3"); }));
  EXPECT_EQ(asked("b", 4)["type"], "checkpoint_saved");
  EXPECT_TRUE(becomes([this] { return in_fast("checkpoint.7.2.4"); }));
  EXPECT_FALSE(in_fast("checkpoint.7.2.3"));
  for (const auto& replica : pool_->replicas()) EXPECT_TRUE(replica.in_slow) << replica.name;
}

TEST_F(CheckpointsTest, WhatHadToLeaveTheFastTierDoesNotPushItsWayBack) {
  keep_fresh();
  write(folder_ / "a", std::string(600'000, 'a'));
  EXPECT_EQ(asked("a", 3)["type"], "checkpoint_saved");
  EXPECT_TRUE(becomes([this] { return in_fast("checkpoint.7.2.3"); }));
  const auto id = pool_->replicas()[0].id();
  const size_t before = changes_.size();
  pool_->demote(id, [](const Status& demoted) { EXPECT_TRUE(demoted); });
  EXPECT_TRUE(becomes([&] { return changes_.size() > before; }));
  EXPECT_FALSE(becomes([this] { return in_fast("checkpoint.7.2.3"); }, 40));
}

TEST_F(CheckpointsTest, AnEarlierDaemonsNewestStaysWhereItIsAndIsFollowed) {
  write(folder_ / "a", std::string(600'000, 'a'));
  EXPECT_EQ(asked("a", 3)["type"], "checkpoint_saved");
  keep_fresh();
  EXPECT_EQ(asked("a", 4)["type"], "checkpoint_saved");
  EXPECT_TRUE(becomes([this] { return in_fast("checkpoint.7.2.4"); }));
  EXPECT_FALSE(in_fast("checkpoint.7.2.3"));
}

TEST_F(CheckpointsTest, WhatThereIsNoRoomForIsRefusedAndLeavesNothing) {
  write(folder_ / "large", std::string((1 << 20) + 1, 'x'));
  expect_refused("large", "fast tier");
  for (const char* file : {"a", "b"}) write(folder_ / file, std::string(900'000, *file));
  EXPECT_EQ(asked("a", 3)["type"], "checkpoint_saved");
  EXPECT_EQ(asked("b", 4)["type"], "checkpoint_saved");
  const auto told = asked("b", 5);
  EXPECT_EQ(told["type"], "checkpoint_failed") << told;
  EXPECT_THAT(told.value("what", ""), HasSubstr("slow")) << told;
  EXPECT_EQ(pool_->replicas().size(), 2u);
}

TEST_F(CheckpointsTest, OneThatIsAskedForIsStillWantedWhileNoneIsSaved) {
  write(folder_ / "state.pt", "weights");
  channels_.ask_checkpoint(kRank0, "drain");
  EXPECT_EQ(hear()["type"], "checkpoint_now");
  EXPECT_EQ(asked("absent", 3)["type"], "checkpoint_failed");
  connect_again();
  EXPECT_EQ(hear()["type"], "checkpoint_now");
  EXPECT_EQ(asked("state.pt", 3)["type"], "checkpoint_saved");
  connect_again();
  EXPECT_EQ(asked("state.pt", 4)["type"], "checkpoint_saved") << "and nothing before it";
}

TEST_F(CheckpointsTest, IterationsRise) {
  write(folder_ / "state.pt", "weights");
  EXPECT_EQ(asked("state.pt", 3)["type"], "checkpoint_saved");
  EXPECT_THAT(asked("state.pt", 3).value("what", ""), HasSubstr("not after"));
  EXPECT_EQ(asked("state.pt", 4)["type"], "checkpoint_saved");
}

TEST_F(CheckpointsTest, AFloodIsHeldOff) {
  write(folder_ / "state.pt", "weights");
  for (uint64_t i = 1; i <= 20; ++i) ask("state.pt", i);
  int saved = 0, refused = 0;
  for (int i = 0; i < 20; ++i) {
    const auto told = hear();
    saved += told["type"] == "checkpoint_saved";
    refused += told["type"] == "checkpoint_failed";
  }
  // The clock of this test stands still: only the first is in time.
  EXPECT_EQ(saved, 1);
  EXPECT_EQ(refused, 19);
  EXPECT_EQ(pool_->replicas().size(), 1u);
}

TEST_F(CheckpointsTest, SoIsOneOfThoseThatAreRefused) {
  for (uint64_t i = 1; i <= 20; ++i) {
    ask("missing", i);
    const auto told = hear();
    EXPECT_EQ(told["type"], "checkpoint_failed");
    EXPECT_THAT(told.value("what", ""), HasSubstr(i == 1 ? "No such file" : "less than 100 ms"));
  }
}

TEST_F(CheckpointsTest, OnlyRank0Saves) {
  begin(1);
  write(folder_ / "state.pt", "weights");
  expect_refused("state.pt", "rank 0");
}

TEST_F(CheckpointsTest, AJobThatEndsMeanwhileLeavesItsCheckpoint) {
  write(folder_ / "state.pt", "weights");
  checkpoints_->save(kRank0, {"state.pt", 3, 0});
  checkpoints_->end(kRank0);
  channels_.close(kRank0);
  fs::remove_all(folder_);
  for (int i = 0; i < 2000 && events_.empty(); ++i) {
    loop_.detach(loop_.after_ms(5).then([this] { loop_.stop(); }), "test");
    loop_.run();
  }
  EXPECT_EQ(pool_->replicas().size(), 1u);
  EXPECT_EQ(events_.size(), 1u);
}

}  // namespace
}  // namespace tierpilot::agent
