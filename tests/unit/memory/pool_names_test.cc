#include "daemon/memory/pool/names.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(PoolNames, AcceptsPlainNames) {
  for (const auto* name : {"a", "genes-2024.v1_x", "-", "A.B", "0"})
    EXPECT_TRUE(check_dataset_name(name)) << name;
  EXPECT_TRUE(check_dataset_name(std::string(128, 'n')));
}

TEST(PoolNames, RefusesWhatCouldLeaveTheFolder) {
  using namespace std::string_literals;
  for (const auto& name : {""s, "."s, ".."s, ".hidden"s, "a/b"s, "../x"s, "/etc/passwd"s, "a b"s,
                           "a\nb"s, "a@1"s, "a\0b"s, "\xc3\xa4"s, "a*"s, "~"s})
    EXPECT_FALSE(check_dataset_name(name)) << name;
  EXPECT_FALSE(check_dataset_name(std::string(129, 'n')));
  EXPECT_FALSE(check_owner("../../task"));
  EXPECT_FALSE(check_owner(std::string(101, 'n')));
}

TEST(PoolNames, MessageCarriesNoControlCharacters) {
  const auto status = check_dataset_name("\x1b[2Jboo\n" + std::string(5000, 'x'));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message.find('\x1b'), std::string::npos);
  EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
  EXPECT_LT(status.error().message.size(), 300u);
}

TEST(PoolNames, FileNameGoesThereAndBack) {
  const ReplicaFile file{{"genes.v1", 7}, 4096};
  EXPECT_EQ(replica_file_name(file), "genes.v1@7@4096");
  EXPECT_EQ(parse_replica_file_name("genes.v1@7@4096"), file);
  const ReplicaFile longest{{std::string(128, 'n'), UINT64_MAX - 1}, UINT64_MAX};
  EXPECT_LE(replica_file_name(longest).size(), 255u);
  EXPECT_EQ(parse_replica_file_name(replica_file_name(longest)), longest);
}

TEST(PoolNames, ForeignFileNamesAreNoReplicas) {
  for (const auto* name :
       {"", "genes", "genes@1", "genes@1@", "@1@1", "genes@0@1", "genes@01@1", "genes@1@007",
        "genes@-1@1", "genes@1@+1", "genes@1@1@1", "genes@1@99999999999999999999", ".tmp@1",
        ".hidden@1@1", "genes@18446744073709551615@1", "lost+found"})
    EXPECT_FALSE(parse_replica_file_name(name)) << name;
}

TEST(PoolNames, TransientNamesFitAndAreNoReplicas) {
  const auto draft = draft_file_name(UINT64_MAX);
  const auto copy = private_file_name(std::string(100, 'o'), std::string(128, 'n'));
  for (const auto& name : {draft, copy}) {
    EXPECT_LE(name.size(), 255u);
    EXPECT_TRUE(is_transient_file_name(name));
    EXPECT_FALSE(parse_replica_file_name(name));
  }
  EXPECT_FALSE(is_transient_file_name("genes@1@1"));
}

}  // namespace
}  // namespace tierpilot
