#include "daemon/topology/tiers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/unit/topology/sysroots.h"

namespace tierpilot {
namespace {

std::vector<std::string> names(const std::string& machine) {
  const auto topology = discover_fake(machine);
  if (!topology) throw std::runtime_error(topology.error().message);
  const auto tiers = candidate_tiers(*topology, {});
  std::vector<std::string> names;
  for (const auto& tier : *tiers) names.push_back(tier.name);
  return names;
}

TEST(CandidateTiers, NodesWithCpusComeFirst) {
  Topology topology;
  topology.nodes = {{.id = 0, .memory_total_bytes = 1 << 30},
                    {.id = 1, .cpus = {0, 1}, .memory_total_bytes = 1 << 30},
                    {.id = 2, .memory_total_bytes = 1 << 30}};
  const auto tiers = candidate_tiers(topology, {});
  ASSERT_TRUE(tiers);
  ASSERT_EQ(tiers->size(), 3u);
  EXPECT_EQ((*tiers)[0].numa_node, 1);
  EXPECT_EQ((*tiers)[1].numa_node, 0);
}

class TierDirectory : public ::testing::Test {
 protected:
  TierDirectory() { std::filesystem::create_directories(path_); }
  ~TierDirectory() override { std::filesystem::remove_all(path_); }
  Result<std::vector<TierSpec>> candidates(const std::string& directory) {
    return candidate_tiers(*discover_fake("one_node"), {directory});
  }
  std::string path_ = testing::TempDir() + "/tierpilot_tiers_" + std::to_string(getpid());
};

TEST(CandidateTiers, NodesWithMemoryByKind) {
  EXPECT_EQ(names("one_node"), (std::vector<std::string>{"dram0"}));
  EXPECT_EQ(names("two_nodes_hmat"), (std::vector<std::string>{"dram0", "dram1"}));
  EXPECT_EQ(names("gap_cxl"), (std::vector<std::string>{"dram0", "cxl3"}));
  EXPECT_EQ(names("dax_kmem"), (std::vector<std::string>{"dram0", "pmem2", "memory3", "cxl4"}));
}

TEST(CandidateTiers, ANodeOfUnknownSizeIsNoTier) {
  EXPECT_TRUE(names("malformed").empty());
}

TEST_F(TierDirectory, IsATierWithTheRoomItHas) {
  const auto tiers = candidates(path_);
  ASSERT_TRUE(tiers) << tiers.error().message;
  ASSERT_EQ(tiers->size(), 2U);
  const auto& tier = tiers->back();
  EXPECT_EQ(tier.name, "directory0");
  EXPECT_EQ(tier.kind, "directory");
  EXPECT_EQ(tier.directory, path_);
  EXPECT_TRUE(tier.is_directory());
  EXPECT_GT(tier.capacity_bytes, 0U);
}

TEST_F(TierDirectory, ThatIsMissingIsNotFound) {
  const auto tiers = candidates(path_ + "/none");
  ASSERT_FALSE(tiers);
  EXPECT_EQ(tiers.error().code, ErrorCode::kNotFound);
  EXPECT_NE(tiers.error().message.find(path_ + "/none"), std::string::npos);
}

TEST_F(TierDirectory, ThatIsAFileIsInvalid) {
  std::ofstream(path_ + "/file") << "x";
  EXPECT_EQ(candidates(path_ + "/file").error().code, ErrorCode::kInvalid);
}

TEST_F(TierDirectory, ThatIsNotWritableIsDenied) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  chmod(path_.c_str(), 0500);
  EXPECT_EQ(candidates(path_).error().code, ErrorCode::kDenied);
}

TEST_F(TierDirectory, IsOneTierHoweverItIsNamed) {
  const auto tiers = candidate_tiers(*discover_fake("one_node"), {path_, path_ + "/."});
  ASSERT_FALSE(tiers);
  EXPECT_EQ(tiers.error().code, ErrorCode::kInvalid);
  EXPECT_NE(tiers.error().message.find("which is one already"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot
