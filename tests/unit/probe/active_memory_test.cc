#include "daemon/probe/memory/memory.h"

#include <gtest/gtest.h>
#include <numa.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "daemon/probe/loops/stream.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot {
namespace {

TEST(NodeMemory, IsWritableAndAtLeastAsLargeAsAsked) {
  const auto memory = allocate_on_node(0, 3 * kMiB, PageSize::kBase);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_GE((*memory)->size(), 3 * kMiB);
  memset((*memory)->data(), 7, (*memory)->size());
}

TEST(NodeMemory, OfANodeThatDoesNotExistIsUnavailable) {
  if (numa_available() < 0) GTEST_SKIP() << "no NUMA policies on this kernel";
  for (const int node : {numa_max_node() + 1, 65535}) {
    const auto memory = allocate_on_node(node, kMiB, PageSize::kHuge);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(memory.error().message.find(std::to_string(node)), std::string::npos);
  }
}

TEST(DirectoryMemory, IsFileMemoryThatCanBeDropped) {
  const ScratchDirectory scratch;
  if (directory_access(scratch.path()) != DirectoryAccess::kPaged)
    GTEST_SKIP() << scratch.path() << " is not on storage behind a page cache";
  {
    const auto memory = allocate_in_directory(scratch.path(), 4 * kMiB);
    ASSERT_TRUE(memory) << memory.error().message;
    memset((*memory)->data(), 7, (*memory)->size());
    EXPECT_FALSE(check_not_resident((*memory)->data(), (*memory)->size())) << "just written";
    const auto dropped = drop_pages(**memory);
    ASSERT_TRUE(dropped) << dropped.error().message;
    EXPECT_EQ((*memory)->data()[3 * kMiB], std::byte{7}) << "the bytes come back";
  }
  EXPECT_TRUE(scratch.empty());
}

TEST(DirectoryMemory, OfAMissingDirectoryIsUnavailable) {
  const auto memory = allocate_in_directory("/nonexistent/tier", kMiB);
  ASSERT_FALSE(memory);
  EXPECT_NE(memory.error().message.find("/nonexistent/tier"), std::string::npos);
  EXPECT_FALSE(directory_access("/nonexistent/tier"));
}

TEST(DirectoryAccess, TmpfsIsMemory) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  EXPECT_EQ(directory_access("/dev/shm"), DirectoryAccess::kMemory);
}

TEST(Stream, WritesEveryByteAndReadsThemAll) {
  const auto memory = allocate_on_node(0, 8 * kMiB, PageSize::kHuge);
  ASSERT_TRUE(memory);
  for (const int threads : {1, 3}) {
    memset((*memory)->data(), 0, (*memory)->size());
    EXPECT_GT(write_bytes_per_s((*memory)->data(), (*memory)->size(), threads), 0);
    const auto* data = (*memory)->data();
    const auto written = std::count(data, data + (*memory)->size(), std::byte{0x5a});
    EXPECT_GT(static_cast<size_t>(written), (*memory)->size() - 1024);
    EXPECT_GT(read_bytes_per_s(data, (*memory)->size(), threads), 0);
  }
}

}  // namespace
}  // namespace tierpilot
