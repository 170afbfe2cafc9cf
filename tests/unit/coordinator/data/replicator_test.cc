// Second copies: ordered where they are missing, given up where they are too many, and made anew
// where they are damaged.
#include <gmock/gmock.h>

#include "coordinator/core/data/dataset_check.h"
#include "coordinator/core/data/replicator.h"
#include "model/registration.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ContentDigest kContent{0, 5};

class ReplicatorTest : public CoreTest {
 protected:
  void join_both() {
    n = join("n");
    n->made = kContent;
    m = join("m");
    for (const auto* name : {"n", "m"}) state_->registry.find(name)->slow_free_bytes = 1 << 20;
  }
  // On `n`, and `m` happens to have it.
  void add_for_one() {
    join_both();
    ASSERT_NO_FATAL_FAILURE(add_dataset("d", 4096, "n"));
    membership_->replica_changed("m", "d", {1, 4096, true, false, false, kContent});
  }
  // On `n`, to be kept by two nodes.
  void add_for_two() {
    join_both();
    std::optional<Result<Dataset>> made;
    datasets_->add(
        "", "d", ZeroSource{4096}, "n", [&](auto told) { made = std::move(told); }, 2);
    ASSERT_TRUE(posts_.run_until([&] { return made.has_value(); }));
    ASSERT_TRUE(*made);
  }
  void look() {
    clock_.advance_ns(1'000'000'001);
    replicator().tick();
  }
  Replicator& replicator() {
    if (!replicator_) replicator_ = std::make_unique<Replicator>(*state_, orders_.emplace(*state_));
    return *replicator_;
  }
  void tells(const std::string& node, bool kept) {
    membership_->replica_changed(node, "d", {1, 4096, false, kept, kept, kContent});
  }
  static std::pair<std::string, ReplicaState> kept_copy(const std::string& dataset = "d") {
    return {dataset, {1, 4096, false, true, true, kContent}};
  }
  std::shared_ptr<FakeNode> come_back(const std::string& name,
                                      std::vector<std::pair<std::string, ReplicaState>> replicas) {
    auto link = std::make_shared<FakeNode>();
    EXPECT_TRUE(membership_->join(facts(name), link, replicas, {}));
    state_->registry.find(name)->slow_free_bytes = 1 << 20;
    return link;
  }
  void restart_with_grace() {
    flush();
    orders_.reset();
    replicator_.reset();
    settings_.replica_grace_ms = kGraceMs;
    restart();
  }
  void pass_ms(int64_t ms) { clock_.advance_ns(ms * 1'000'000); }
  std::optional<DatasetCheck> check(bool repair) {
    DatasetChecker checker(*state_);
    std::optional<DatasetCheck> result;
    checker.check("d", repair, [&](Result<DatasetCheck> told) {
      if (told) result = std::move(*told);
    });
    for (auto* node : {n.get(), m.get()})
      for (auto& [what, done] : std::exchange(node->verifies, {})) done(CopyCheck{"absent", state});
    for (auto* node : {n.get(), m.get()})
      for (auto& [need, done] : std::exchange(node->keeps, {})) done({});
    return result;
  }

  static constexpr int64_t kGraceMs = 60'000;

  std::shared_ptr<FakeNode> n, m;
  std::string state = "good";
  std::optional<CopyOrders> orders_;
  std::unique_ptr<Replicator> replicator_;
};

TEST_F(ReplicatorTest, ACopyIsOrderedOnceAndItsContentIsNamed) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  look();
  ASSERT_EQ(m->keeps.size(), 1u);
  EXPECT_THAT(n->keeps, IsEmpty());
  const auto& need = m->keeps.front().first;
  EXPECT_EQ(need.dataset, "d");
  EXPECT_EQ(need.digest, kContent);
  EXPECT_EQ(need.sources.size(), 1u);
  look();
  EXPECT_EQ(m->keeps.size(), 1u) << "it is on its way";
  m->keeps.front().second({});
  tells("m", true);
  look();
  EXPECT_EQ(m->keeps.size(), 1u);
  EXPECT_EQ(nodes_that_keep(*state_->catalog.find("d")), 2u);
}

TEST_F(ReplicatorTest, WhatIsOnTooFewNodesIsCounted) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  look();
  EXPECT_EQ(replicator().short_of_copies(), 1u);
  tells("m", true);
  look();
  EXPECT_EQ(replicator().short_of_copies(), 0u);
  tells("m", false);
  look();
  EXPECT_EQ(replicator().short_of_copies(), 1u);
}

TEST_F(ReplicatorTest, WhoAsksForALookThatIsUnderWayGetsItsAnswer) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  DatasetChecker checker(*state_);
  int answers = 0;
  for (int i = 0; i < 100; ++i)
    checker.check("d", false, [&](Result<DatasetCheck> told) { answers += told.has_value(); });
  ASSERT_EQ(n->verifies.size(), 1u) << "the bytes are read once";
  auto verify = std::exchange(n->verifies, {}).front().second;
  verify(CopyCheck{"absent", "good"});
  EXPECT_EQ(answers, 100);
  checker.check("d", false, [](auto) {});
  EXPECT_EQ(n->verifies.size(), 1u) << "a new look";
}

TEST_F(ReplicatorTest, SoManyLooksAtOnceAndNoMore) {
  n = join("n");
  n->made = kContent;
  for (size_t i = 0; i <= DatasetChecker::kMost; ++i) {
    std::optional<Result<Dataset>> made;
    datasets_->add("", "d" + std::to_string(i), ZeroSource{4096}, "n",
                   [&](auto told) { made = std::move(told); });
    ASSERT_TRUE(posts_.run_until([&] { return made.has_value(); }));
  }
  DatasetChecker checker(*state_);
  std::optional<ErrorCode> refused;
  for (size_t i = 0; i <= DatasetChecker::kMost; ++i)
    checker.check("d" + std::to_string(i), false, [&](Result<DatasetCheck> told) {
      if (!told) refused = told.error().code;
    });
  EXPECT_EQ(n->verifies.size(), DatasetChecker::kMost);
  EXPECT_EQ(refused, ErrorCode::kExhausted);
}

TEST_F(ReplicatorTest, AHomeThatIsDamagedOnDiskIsWrittenAnewFromMemoryUntilItIsThere) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  membership_->replica_changed("n", "d", {1, 4096, true, false, true, kContent, true});
  look();
  look();
  EXPECT_THAT(n->homes, ElementsAre("d")) << "asked once";
  membership_->replica_changed("n", "d", {1, 4096, true, false, true, kContent});
  clock_.advance_ns(30'000'000'000);
  look();
  EXPECT_THAT(n->homes, ElementsAre("d", "d")) << "its disk was full, say";
  membership_->replica_changed("n", "d", {1, 4096, true, true, true, kContent});
  clock_.advance_ns(30'000'000'000);
  look();
  EXPECT_THAT(n->homes, ElementsAre("d", "d"));
}

TEST_F(ReplicatorTest, ACopyThatFailedIsTriedAgainLater) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  look();
  ASSERT_EQ(m->keeps.size(), 1u);
  m->keeps.front().second(fail(ErrorCode::kExhausted, "no room"));
  look();
  EXPECT_EQ(m->keeps.size(), 1u);
  clock_.advance_ns(30'000'000'000);
  look();
  EXPECT_EQ(m->keeps.size(), 2u);
}

TEST_F(ReplicatorTest, ANodeThatOnlyRestartsIsWaitedFor) {
  settings_.replica_grace_ms = 60'000;
  state_->settings.replica_grace_ms = 60'000;
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  tells("m", true);
  look();
  tells("m", false);
  look();
  EXPECT_THAT(m->keeps, IsEmpty());
  clock_.advance_ns(60'000'000'000);
  look();
  EXPECT_EQ(m->keeps.size(), 1u);
}

TEST_F(ReplicatorTest, WhoAsksForARepairDoesNotWaitForANodeToComeBack) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  tells("m", true);
  look();
  tells("m", false);
  look();
  EXPECT_THAT(m->keeps, IsEmpty());
  replicator().hurry("d");
  look();
  EXPECT_EQ(m->keeps.size(), 1u);
}

TEST_F(ReplicatorTest, AfterARestartAHomeThatHasNotJoinedYetIsNotLost) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  restart_with_grace();
  m = come_back("m", {kept_copy()});
  look();
  EXPECT_EQ(state_->catalog.find("d")->dataset.home, "n");
  clock_.advance_ns(settings_.lease_ms * 1'000'000);
  m = come_back("m", {kept_copy()});
  membership_->expire();
  look();
  EXPECT_EQ(state_->catalog.find("d")->dataset.home, "m");
}

TEST_F(ReplicatorTest, ALostHomeIsHomeNoMoreWhereAnotherNodeKeepsTheVersion) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  for (const bool kept : {false, true}) {
    clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
    membership_->expire();
    auto back = std::make_shared<FakeNode>();
    ASSERT_TRUE(
        membership_->join(facts("m"), back, {{"d", {1, 4096, false, true, kept, kContent}}}, {}));
    look();
    EXPECT_EQ(state_->catalog.find("d")->dataset.home, kept ? "m" : "n");
  }
  flush();
  replicator_.reset();
  restart();
  EXPECT_EQ(state_->catalog.find("d")->dataset.home, "m");
}

TEST_F(ReplicatorTest, OfCopiesThatAreTooManyTheHomeStays) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  auto o = join("o");
  state_->registry.find("o")->slow_free_bytes = 1 << 10;
  for (const auto* node : {"n", "m", "o"}) tells(node, true);
  look();
  EXPECT_THAT(o->let_go, ElementsAre("d"));
  EXPECT_THAT(n->let_go, IsEmpty());
  EXPECT_THAT(m->let_go, IsEmpty());
}

// It takes a node longer to let go than a heartbeat takes to say that another one has less room.
TEST_F(ReplicatorTest, OfOneCopyTooManyOneNodeIsAskedToLetGoUntilItHas) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  auto o = join("o");
  state_->registry.find("o")->slow_free_bytes = 1 << 10;
  for (const auto* node : {"n", "m", "o"}) tells(node, true);
  look();
  EXPECT_THAT(o->let_go, ElementsAre("d"));
  state_->registry.find("m")->slow_free_bytes = 1;
  look();
  EXPECT_THAT(m->let_go, IsEmpty());
  EXPECT_THAT(o->let_go, ElementsAre("d")) << "it is about to";
  pass_ms(30'000);
  look();
  EXPECT_THAT(o->let_go, ElementsAre("d", "d")) << "its disk failed, say";
  o = come_back("o", {kept_copy()});
  pass_ms(30'000);
  look();
  EXPECT_THAT(o->let_go, ElementsAre("d")) << "what it was asked may have been lost on the way";
  membership_->replica_changed("o", "d", {1, 4096, false, true, false, kContent});
  pass_ms(30'000);
  look();
  EXPECT_THAT(o->let_go, ElementsAre("d"));
  EXPECT_THAT(m->let_go, IsEmpty());
  EXPECT_EQ(nodes_that_keep(*state_->catalog.find("d")), 2u);
}

TEST_F(ReplicatorTest, WhoWasAskedToLetGoAndIsGoneMayBeFollowedByAnother) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  auto o = join("o"), p = join("p");
  state_->registry.find("o")->slow_free_bytes = 1 << 10;
  for (const auto* node : {"n", "m", "o", "p"}) tells(node, true);
  state_->registry.find("p")->slow_free_bytes = 1 << 20;
  look();
  EXPECT_THAT(o->let_go, ElementsAre("d"));
  state_->catalog.forget_node("o");
  state_->registry.find("m")->slow_free_bytes = 1;
  look();
  EXPECT_THAT(m->let_go, ElementsAre("d"));
  EXPECT_THAT(p->let_go, IsEmpty());
}

TEST_F(ReplicatorTest, AfterARestartANodeThatHasNotJoinedYetMayBringItsCopyBack) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  join("o");
  tells("m", true);
  look();
  restart_with_grace();
  n = come_back("n", {kept_copy()});
  auto o = come_back("o", {});
  look();
  EXPECT_THAT(o->keeps, IsEmpty()) << "m has not had a second to join";
  pass_ms(settings_.lease_ms);
  look();
  EXPECT_THAT(o->keeps, IsEmpty()) << "m is lost now, and has the grace";
  pass_ms(kGraceMs - 3'000);
  look();
  EXPECT_THAT(o->keeps, IsEmpty());
  pass_ms(3'000);
  look();
  EXPECT_EQ(o->keeps.size(), 1u);
}

TEST_F(ReplicatorTest, AfterARestartWhatIsOnTooFewNodesIsCopiedOnceAllHaveTold) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  look();
  restart_with_grace();
  n = come_back("n", {kept_copy()});
  look();
  m = come_back("m", {});
  EXPECT_THAT(m->keeps, IsEmpty());
  look();
  EXPECT_EQ(m->keeps.size(), 1u);
}

TEST_F(ReplicatorTest, AfterARestartARepairDoesNotWait) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  join("o");
  tells("m", true);
  look();
  restart_with_grace();
  come_back("n", {kept_copy()});
  auto o = come_back("o", {});
  replicator().hurry("d");
  look();
  EXPECT_EQ(o->keeps.size(), 1u);
}

// Two of three are lost at once.
TEST_F(ReplicatorTest, WhatWasOnMoreNodesThanItIsToBeOnWasSafe) {
  state_->settings.replica_grace_ms = kGraceMs;
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  auto o = join("o");
  for (const auto* node : {"n", "m", "o"}) tells(node, true);
  look();
  for (const auto* node : {"m", "o"}) state_->catalog.forget_node(node);
  look();
  EXPECT_THAT(m->keeps, IsEmpty());
  EXPECT_THAT(o->keeps, IsEmpty());
}

TEST_F(ReplicatorTest, DamagedCopiesAreToldOfAndMadeAnew) {
  ASSERT_NO_FATAL_FAILURE(add_for_two());
  tells("m", true);
  auto told = check(false);
  ASSERT_TRUE(told);
  ASSERT_EQ(told->nodes.size(), 2u);
  EXPECT_TRUE(told->nodes[0].is_good());
  state = "damaged";
  told = check(true);
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->nodes[0].is_damaged());
  EXPECT_TRUE(told->nodes[0].restored);
}

TEST_F(ReplicatorTest, WhatOthersHaveIsKeptOnceTheOnlyHomeIsDamaged) {
  ASSERT_NO_FATAL_FAILURE(add_for_one());
  look();
  EXPECT_THAT(m->keeps, IsEmpty());
  membership_->replica_changed("n", "d", {1, 4096, false, false, false, kContent, true});
  look();
  EXPECT_EQ(n->keeps.size() + m->keeps.size(), 1u);
  look();
  EXPECT_EQ(n->keeps.size() + m->keeps.size(), 1u) << "it is under way";
}

// It has not been told of those that did not fit its registration.
TEST_F(ReplicatorTest, AHomeWithMoreDatasetsThanItTellsAtOnceIsNotTakenForDamaged) {
  ASSERT_NO_FATAL_FAILURE(add_for_one());
  std::vector<std::pair<std::string, ReplicaState>> told;
  for (size_t i = 0; i < kReplicasInRegistration; ++i)
    told.push_back(kept_copy("other-" + std::to_string(i)));
  n = come_back("n", told);
  auto& home = *state_->registry.find("n");
  look();
  EXPECT_THAT(m->keeps, IsEmpty());
  Membership::told(home, kEventsInUpdate);
  look();
  EXPECT_THAT(m->keeps, IsEmpty());
  tells("n", true);
  Membership::told(home, 1);
  look();
  EXPECT_THAT(m->keeps, IsEmpty());
  tells("n", false);
  look();
  EXPECT_EQ(n->keeps.size() + m->keeps.size(), 1u);
}

}  // namespace
}  // namespace tierpilot::testing
