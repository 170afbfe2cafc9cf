#include "coordinator/policy_host/version_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace tierpilot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class VersionArchiveTest : public ::testing::Test {
 protected:
  VersionArchiveTest()
      : folder_(fs::temp_directory_path() / ("tierpilot_versions_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~VersionArchiveTest() override { fs::remove_all(folder_); }

  VersionArchive open(size_t keep = 3) {
    VersionArchive archive(folder_, keep);
    const auto opened = archive.open("dqn");
    EXPECT_TRUE(opened) << opened.error().message;
    return archive;
  }
  static WeightsVersion about(const std::string& why) {
    return {0, 1234, why, 77, 5, 9, {10, 0.5, 0.25, 0.75}, {}, "a seed"};
  }
  static std::vector<uint64_t> numbers(const VersionArchive& archive) {
    std::vector<uint64_t> numbers;
    for (const auto& version : archive.list("dqn")) numbers.push_back(version.number);
    return numbers;
  }
  fs::path file(const std::string& name) const { return folder_ / "dqn.versions" / name; }
  static std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  fs::path folder_;
};

TEST_F(VersionArchiveTest, WhatIsKeptIsThereAfterARestart) {
  {
    auto archive = open();
    ASSERT_TRUE(archive.add("dqn", about("first"), "one"));
    ASSERT_TRUE(archive.add("dqn", about("second"), "two"));
  }
  const auto archive = open();
  EXPECT_THAT(numbers(archive), ElementsAre(1, 2));
  const auto first = archive.list("dqn").front();
  EXPECT_EQ(first.why, "first");
  EXPECT_EQ(first.at_ms, 1234);
  EXPECT_EQ(first.experiences, 77u);
  EXPECT_EQ(first.weights_version, 9u);
  EXPECT_EQ(first.reward.count, 10u);
  EXPECT_EQ(first.reward.high, 0.75);
  EXPECT_EQ(first.origin, "a seed");
  EXPECT_EQ(*archive.weights("dqn", 2), "two");
}

TEST_F(VersionArchiveTest, TheOldestGoAndNumbersAreNotUsedAgain) {
  auto archive = open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(archive.add("dqn", about("w"), "w"));
  EXPECT_THAT(numbers(archive), ElementsAre(3, 4, 5));
  EXPECT_FALSE(fs::exists(file("1.weights")));
  const auto gone = archive.weights("dqn", 1);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(gone.error().message, HasSubstr("3, 4, 5"));
  EXPECT_FALSE(archive.weights("other", 1));
}

TEST_F(VersionArchiveTest, DamagedFilesAreLeftOutWhereverTheyAreCut) {
  {
    auto archive = open();
    ASSERT_TRUE(archive.add("dqn", about("good"), "weights"));
    ASSERT_TRUE(archive.add("dqn", about("bad"), "weights"));
  }
  const std::string whole = contents(file("2.about"));
  for (size_t size = 0; size < whole.size(); ++size) {
    put(file("2.about"), whole.substr(0, size));
    EXPECT_THAT(numbers(open()), ElementsAre(1)) << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    auto flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x40);
    put(file("2.about"), flipped);
    EXPECT_THAT(numbers(open()), ElementsAre(1)) << i;
  }
  auto archive = open();
  EXPECT_EQ(archive.add("dqn", about("next"), "weights")->number, 3u);
  const std::string weights = contents(file("3.weights"));
  for (size_t size = 0; size < weights.size(); ++size) {
    put(file("3.weights"), weights.substr(0, size));
    const auto read = archive.weights("dqn", 3);
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  }
}

TEST_F(VersionArchiveTest, StrangeFilesDoNotMatter) {
  open();
  for (const char* name :
       {"x.about", "-1.about", "99999999999999999999999.about", "1.about.new", "7.other", ".about"})
    put(file(name), "junk");
  fs::create_directory(file("5.about"));
  auto archive = open();
  EXPECT_TRUE(archive.list("dqn").empty());
  EXPECT_TRUE(archive.add("dqn", about("w"), "w"));
}

TEST_F(VersionArchiveTest, WithoutAFolderNothingIsKept) {
  VersionArchive archive({}, 3);
  EXPECT_TRUE(archive.open("dqn"));
  const auto kept = archive.add("dqn", about("w"), "w");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tierpilot
