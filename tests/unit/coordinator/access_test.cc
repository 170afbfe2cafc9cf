#include "coordinator/service/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

Peer certificate(const std::string& name) {
  Peer peer;
  peer.transport = "tls";
  peer.name = name;
  return peer;
}
Peer local(uid_t uid) {
  Peer peer;
  peer.transport = "unix";
  peer.uid = uid;
  peer.name = "uid " + std::to_string(uid);
  return peer;
}

TEST(AccessRules, WithoutRulesEverybodyOperates) {
  const AccessRules rules;
  EXPECT_EQ(rules.role_of(certificate("bob")), Role::kOperate);
  EXPECT_TRUE(rules.may_join(certificate("n1")));
}

TEST(AccessRules, ThoseThatAreNamedHaveTheirRoleAndOthersTheOthers) {
  const AccessRules rules{
      .users = {{"ann", Role::kOperate}, {"bob", Role::kSubmit}, {"uid 4000000", Role::kRead}},
      .others = Role::kNone,
      .nodes = {{"n1"}}};
  EXPECT_EQ(rules.role_of(certificate("ann")), Role::kOperate);
  EXPECT_EQ(rules.role_of(certificate("bob")), Role::kSubmit);
  EXPECT_EQ(rules.role_of(certificate("eve")), Role::kNone);
  EXPECT_EQ(rules.role_of(local(4'000'000)), Role::kRead);
  EXPECT_EQ(rules.role_of(local(4'000'001)), Role::kNone);
  EXPECT_TRUE(rules.may_join(certificate("n1")));
  EXPECT_FALSE(rules.may_join(certificate("ann")));
}

TEST(AccessRules, AUnixPeerIsAlsoItsAccount) {
  const AccessRules rules{.users = {{"nobody", Role::kSubmit}}, .others = Role::kRead, .nodes = {}};
  EXPECT_EQ(rules.role_of(local(65534)), Role::kSubmit);
  EXPECT_EQ(described(local(65534)), "user 'nobody'");
}

TEST(AccessRules, RootAndTheCoordinatorItselfCannotLockThemselvesOut) {
  const AccessRules rules{.users = {{"root", Role::kRead}}, .others = Role::kNone, .nodes = {{}}};
  EXPECT_EQ(rules.role_of(local(0)), Role::kOperate);
  EXPECT_EQ(rules.role_of(local(::geteuid())), Role::kOperate);
  EXPECT_TRUE(rules.may_join(local(0)));
  EXPECT_EQ(rules.role_of(certificate("root")), Role::kRead)
      << "another machine's root is not this one's";
}

// A node gets other people's tasks, environments and all.
TEST(AccessRules, WhereThereAreUsersNotEverybodyMayJoinAsANode) {
  const AccessRules rules{.users = {{"ann", Role::kOperate}, {"bob", Role::kSubmit}},
                          .others = Role::kRead,
                          .nodes = {}};
  EXPECT_TRUE(rules.may_join(certificate("n1")));
  EXPECT_TRUE(rules.may_join(certificate("ann"))) << "she may do everything anyway";
  EXPECT_FALSE(rules.may_join(certificate("bob")));
  EXPECT_FALSE(rules.may_join(local(4'000'000)));
  EXPECT_TRUE(rules.may_join(local(::geteuid())));
}

TEST(AccessRules, WhoHasNoRoleJoinsFromThisMachineOnlyIfItIsNamed) {
  AccessRules rules{.users = {}, .others = Role::kNone, .nodes = {}};
  EXPECT_FALSE(rules.may_join(local(4'000'000)));
  EXPECT_TRUE(rules.may_join(certificate("n1")));
  rules.nodes = {{"nobody"}};
  EXPECT_TRUE(rules.may_join(local(65534))) << "by its account";
  EXPECT_FALSE(rules.may_join(local(4'000'000)));
}

TEST(AccessRules, EnvironmentsAreShownToWhoeverWasMadeOperatorOnly) {
  const AccessRules nobody_named;
  EXPECT_FALSE(nobody_named.sees_environments(certificate("bob")));
  EXPECT_FALSE(nobody_named.sees_environments(local(4'000'000)));
  EXPECT_TRUE(nobody_named.sees_environments(local(0)));
  const AccessRules rules{.users = {{"ann", Role::kOperate}}, .others = Role::kRead, .nodes = {}};
  EXPECT_TRUE(rules.sees_environments(certificate("ann")));
  EXPECT_FALSE(rules.sees_environments(certificate("bob")));
}

TEST(AccessRules, ARefusalSaysWhoNeedsWhat) {
  const auto denied = check_role("user 'bob'", Role::kRead, Role::kSubmit, "submit tasks");
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, ErrorCode::kDenied);
  for (const auto* word : {"user 'bob'", "submit tasks", "'submit'", "'read'", "[users]"})
    EXPECT_THAT(denied.error().message, HasSubstr(word));
  EXPECT_TRUE(check_role("user 'bob'", Role::kOperate, Role::kSubmit, "submit tasks"));
}

}  // namespace
}  // namespace tierpilot
