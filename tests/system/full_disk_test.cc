// A full disk under the coordinator's store.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/unique_fd.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

// Takes all the room that is left on a file system.
void fill_up(const std::filesystem::path& file) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string block(4096, 'x');
  while (write(fd.get(), block.data(), block.size()) > 0) {
  }
}

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    // Private: whatever happens, the mount ends with this process and its children.
    if (unshare(CLONE_NEWNS) != 0)
      GTEST_SKIP() << "a mount namespace of its own: " << std::strerror(errno);
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", disk_.path().c_str(), "tmpfs", 0, "size=8m") != 0)
      GTEST_SKIP() << "a small tmpfs: " << std::strerror(errno);
  }
  void TearDown() override { umount2(disk_.path().c_str(), MNT_DETACH); }

  TempFolder disk_{"/tmp"};
};

TEST_F(FullDisk, SubmitsGetAClearErrorAndNothingIsLost) {
  Cluster cluster({.nodes = 1, .state_dir = disk_.path() / "state"});
  auto& client = cluster.client();
  std::map<std::string, Submitted> acknowledged;
  const auto submit = [&](const std::string& id) {
    // Large, so that what room is left in the log is soon taken.
    auto answer = client.submit({shell_task("true #" + std::string(20'000, 'x'))}, id);
    if (answer) acknowledged[id] = *answer;
    return answer;
  };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(submit(fmt::format("before-{}", i)));
  fill_up(disk_.path() / "ballast");

  Result<Submitted> refused;
  int tries = 0;
  while (tries < 1000 && (refused = submit(fmt::format("full-{}", tries)))) ++tries;
  ASSERT_FALSE(refused) << "the store never filled";
  EXPECT_NE(refused.error().message.find(disk_.path().string()), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("full"), std::string::npos) << refused.error().message;
  const auto health = client.health();
  ASSERT_TRUE(health) << health.error().message;
  EXPECT_NE((*health)["degraded"], "");
  EXPECT_TRUE(cluster.coordinator().running());

  // A crash on a full disk loses nothing either: it starts, tells what there is, and says that it
  // cannot write.
  cluster.coordinator().kill_now();
  fill_up(disk_.path() / "ballast");
  cluster.start_coordinator();
  for (const auto& [id, submitted] : acknowledged) {
    const auto task = client.show(submitted.tasks.at(0));
    EXPECT_TRUE(task) << id << ": " << task.error().message;
  }
  EXPECT_TRUE(eventually([&] {
    const auto told = client.health();
    return told && (*told)["degraded"] != "";
  }));
  std::filesystem::remove(disk_.path() / "ballast");
  Result<Submitted> after;
  ASSERT_TRUE(eventually([&] {
    return (after = submit(fmt::format("full-{}", tries))).has_value();
  })) << after.error().message;
  for (const auto& [id, submitted] : acknowledged) {
    const auto ended = client.wait(submitted.tasks.at(0));
    ASSERT_TRUE(ended) << id << ": " << ended.error().message;
    EXPECT_EQ((*ended)["state"], "succeeded") << id;
  }
}

TEST_F(FullDisk, ItStartsThereAlsoWhereItHadEndedProperly) {
  Cluster cluster({.nodes = 1, .state_dir = disk_.path() / "state"});
  auto& client = cluster.client();
  const auto kept = client.submit({shell_task("true")});
  ASSERT_TRUE(kept) << kept.error().message;
  ASSERT_TRUE(client.wait(kept->tasks.at(0)));
  cluster.coordinator().end();
  fill_up(disk_.path() / "ballast");
  cluster.start_coordinator();
  const auto task = client.show(kept->tasks.at(0));
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "succeeded");
  std::filesystem::remove(disk_.path() / "ballast");
  Result<Submitted> after;
  ASSERT_TRUE(eventually([&] { return (after = client.submit({shell_task("true")})).has_value(); }))
      << after.error().message;
}

TEST_F(FullDisk, GoesOnByItselfOnceThereIsRoom) {
  Cluster cluster({.nodes = 1, .state_dir = disk_.path() / "state"});
  auto& client = cluster.client();
  const auto submit = [&] {
    return client.submit({shell_task("true #" + std::string(20'000, 'x'))});
  };
  fill_up(disk_.path() / "ballast");
  std::vector<uint64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto answer = submit();
    if (!answer) break;
    ids.push_back(answer->tasks.at(0));
  }
  ASSERT_FALSE(submit()) << "the store never filled";
  std::filesystem::remove(disk_.path() / "ballast");
  Result<Submitted> answer;
  ASSERT_TRUE(eventually([&] { return (answer = submit()).has_value(); }));
  ids.push_back(answer->tasks.at(0));
  for (const uint64_t id : ids) {
    const auto ended = client.wait(id);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ((*ended)["state"], "succeeded") << ended->dump(2);
  }
  ASSERT_TRUE(eventually([&] {
    const auto health = client.health();
    return health && (*health)["degraded"] == "";
  }));
}

}  // namespace
}  // namespace tierpilot::test
