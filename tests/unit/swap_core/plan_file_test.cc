// What a plan file may replace, and what it leaves alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "swap/tierpilot_swap.h"
#include "tests/unit/swap_core/front_end.h"

namespace {

namespace fs = std::filesystem;
using tierpilot::swap::FrontEnd;

class PlanFile : public testing::Test {
 protected:
  PlanFile() {
    std::string name = (fs::temp_directory_path() / "tierpilot-plans-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~PlanFile() override { fs::remove_all(folder_); }

  // What a session that has learned a step of so many layers says when it keeps that; empty: it
  // did.
  static std::string keep(const fs::path& path, bool elsewhere = false, size_t layers = 4) {
    FrontEnd front("swap", int64_t{1} << 40, "memory=64MiB", path.c_str());
    if (elsewhere) fs::current_path("/");
    for (int step = 0; step < 3; ++step) front.step(layers);
    char error[512] = "";
    const int kept = tierpilot_swap_keep(front.swap(), error, sizeof error);
    EXPECT_EQ(kept == 0, *error == 0) << error;
    return error;
  }
  static int restored(const fs::path& path) {
    FrontEnd front("swap", int64_t{1} << 40, "memory=64MiB", path.c_str());
    return front.said("statistics").at("restored_steps");
  }
  size_t names() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(PlanFile, IsMadeAndReplaced) {
  const auto plans = folder_ / "plans";
  EXPECT_EQ(keep(plans), "");
  EXPECT_EQ(restored(plans), 1);
  std::ofstream(plans) << "tierpilot-swap-plans 2 damaged";
  EXPECT_EQ(keep(plans), "");
  EXPECT_EQ(restored(plans), 1);
  EXPECT_EQ(names(), 1U);
}

// As tasks have: a folder for each try.
TEST_F(PlanFile, OfOneDirectoryIsUsedWithAnother) {
  const auto plans = folder_ / "plans";
  const auto run = [&](const char* name) {
    const auto tiers = folder_ / name;
    fs::create_directory(tiers);
    FrontEnd front("swap", int64_t{1} << 40, ("dir:" + tiers.string() + "=64MiB").c_str(),
                   plans.c_str());
    for (int step = 0; step < 3; ++step) front.step(4);
    char error[512] = "";
    EXPECT_EQ(tierpilot_swap_keep(front.swap(), error, sizeof error), 0) << error;
    return front.said("statistics").at("restored_steps").get<int>();
  };
  EXPECT_EQ(run("1-1"), 0);
  EXPECT_EQ(run("1-2"), 1);
  EXPECT_EQ(restored(plans), 0) << "of a directory, not of memory";
}

TEST_F(PlanFile, WhatIsNoneIsLeftAlone) {
  const auto notes = folder_ / "notes", large = folder_ / "large", empty = folder_ / "empty";
  std::ofstream(notes) << "root:x:0:0:root:/root:/bin/bash\n";
  std::ofstream(large) << "notes";
  fs::resize_file(large, uintmax_t{65} << 20);
  EXPECT_NE(keep(notes).find("no plan file"), std::string::npos);
  EXPECT_NE(keep(large), "");
  EXPECT_EQ(fs::file_size(notes), 32U);
  EXPECT_EQ(fs::file_size(large), uintmax_t{65} << 20);
  std::ofstream(empty).flush();
  EXPECT_EQ(keep(empty), "");
  EXPECT_EQ(restored(empty), 1);
  EXPECT_EQ(names(), 3U);
}

TEST_F(PlanFile, ARelativeOneIsOfTheFolderAtTheOpening) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_EQ(keep("plans", true), "");
  fs::current_path(before);
  EXPECT_EQ(restored(folder_ / "plans"), 1);
}

TEST_F(PlanFile, ALinkStaysAndWhatItNamesIsReplaced) {
  fs::create_directory(folder_ / "far");
  const auto target = folder_ / "far" / "plans", link = folder_ / "link";
  fs::create_symlink("far/plans", link);
  for (int round = 0; round < 2; ++round) {  // at first it names nothing
    EXPECT_EQ(keep(link), "");
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(target)));
    EXPECT_EQ(restored(target), 1);
    EXPECT_EQ(restored(link), 1);
  }
  EXPECT_EQ(names(), 2U);
}

TEST_F(PlanFile, WhatIsNoPlainFileIsLeftAlone) {
  const auto fifo = folder_ / "fifo", directory = folder_ / "directory";
  const auto link = folder_ / "link", device = folder_ / "device";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  fs::create_directory(directory);
  fs::create_symlink("fifo", link);
  std::vector<fs::path> paths = {fifo, directory, link};
  struct stat null {};
  if (stat("/dev/null", &null) == 0 && mknod(device.c_str(), S_IFCHR | 0600, null.st_rdev) == 0)
    paths.push_back(device);  // as root
  for (const auto& path : paths) {
    struct stat before {
    }, after{};
    ASSERT_EQ(lstat(path.c_str(), &before), 0);
    const auto said = keep(path);
    EXPECT_NE(said.find("'" + path.string() + "'"), std::string::npos) << said;
    EXPECT_NE(said.find("no plain file"), std::string::npos) << said;
    ASSERT_EQ(lstat(path.c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino) << path;
    EXPECT_EQ(before.st_mode, after.st_mode) << path;
  }
  EXPECT_EQ(names(), paths.size()) << "nothing is left beside them";
}

TEST_F(PlanFile, AFolderThatIsNotThereIsNamed) {
  const auto said = keep(folder_ / "none" / "plans");
  EXPECT_NE(said.find("none/plans' cannot be written"), std::string::npos) << said;
  EXPECT_NE(said.find("No such file"), std::string::npos) << said;
}

// Both were opened before either kept anything.
TEST_F(PlanFile, TwoProgramsKeepWhatEachHasLearned) {
  const auto plans = folder_ / "plans";
  FrontEnd other("swap", int64_t{1} << 40, "memory=64MiB", plans.c_str());
  for (int step = 0; step < 3; ++step) other.step(6);
  EXPECT_EQ(keep(plans, false, 4), "");
  char error[512] = "";
  EXPECT_EQ(tierpilot_swap_keep(other.swap(), error, sizeof error), 0) << error;
  EXPECT_EQ(restored(plans), 2);
  EXPECT_EQ(keep(plans, false, 4), "");
  EXPECT_EQ(restored(plans), 2);
}

// As processes of one program do. Who opened after another has kept would begin with its steps.
TEST_F(PlanFile, SeveralKeepTheirsAtOnce) {
  constexpr size_t kPrograms = 4;
  std::barrier opened(kPrograms);
  const auto plans = folder_ / "plans";
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kPrograms; ++i)
    threads.emplace_back([&, i] {
      FrontEnd front("swap", int64_t{1} << 40, "memory=64MiB", plans.c_str());
      opened.arrive_and_wait();
      for (int step = 0; step < 3; ++step) front.step(4 + i);
      char error[512] = "";
      for (int round = 0; round < 50; ++round)
        EXPECT_EQ(tierpilot_swap_keep(front.swap(), error, sizeof error), 0) << error;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(restored(plans), static_cast<int>(kPrograms));
  EXPECT_EQ(names(), 1U);
}

TEST_F(PlanFile, WhoHoldsTheFolderForEverHoldsNobodyUp) {
  const tierpilot::UniqueFd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(folder.get(), LOCK_EX), 0);
  EXPECT_EQ(keep(folder_ / "plans"), "");
  EXPECT_EQ(restored(folder_ / "plans"), 1);
}

TEST_F(PlanFile, NamesOfAnyBytesAreToldOf) {
  const auto folder = folder_ / "\xff";
  fs::create_directory(folder);
  const auto tiers = "dir:" + folder.string() + "=1MiB";
  FrontEnd front("swap", int64_t{1} << 40, tiers.c_str(), (folder_ / "\xfe").c_str());
  const auto told = front.said("tiers");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].at("capacity_bytes"), 1 << 20);
  EXPECT_EQ(front.said("statistics").at("host_bytes_by_tier").size(), 1U);
}

}  // namespace
