// Replicas that go between the tiers without a task's wish.
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

class PoolPromote : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (!IsSkipped()) open();
  }
  DatasetId id_of(const std::string& name) { return {name, 1, digest(name)}; }
  Status promote(const std::string& name) {
    Waiting<void> waiting;
    pool->promote(id_of(name), waiting.callback());
    return waiting.get();
  }
  Status demote(const std::string& name) {
    Waiting<void> waiting;
    pool->demote(id_of(name), waiting.callback());
    return waiting.get();
  }
};

TEST_F(PoolPromote, IsAHitForTheTaskThatComesNext) {
  ASSERT_TRUE(create("a", RandomFill{kMiB, 1}));
  ASSERT_FALSE(in_fast("a"));
  ASSERT_TRUE(promote("a"));
  EXPECT_TRUE(in_fast("a"));
  EXPECT_TRUE(in_slow("a"));
  ASSERT_TRUE(promote("a")) << "it is there";
  const auto served = serve("task", {item("a", kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kHit);
  ASSERT_TRUE(finish("task"));
  expect_consistent();
}

TEST_F(PoolPromote, DrivesNobodyOut) {
  ASSERT_TRUE(create("used", ZeroFill{3 * kMiB}));
  ASSERT_TRUE(create("a", ZeroFill{2 * kMiB}));
  use(item("used", 3 * kMiB));
  const auto promoted = promote("a");
  ASSERT_FALSE(promoted);
  EXPECT_EQ(promoted.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(in_fast("used"));
  EXPECT_FALSE(in_fast("a"));
  expect_consistent();
}

TEST_F(PoolPromote, GivesWayToATaskLikeAnyOther) {
  ASSERT_TRUE(create("a", ZeroFill{2 * kMiB}));
  ASSERT_TRUE(create("b", ZeroFill{3 * kMiB}));
  ASSERT_TRUE(promote("a"));
  use(item("b", 3 * kMiB));
  EXPECT_FALSE(in_fast("a"));
  EXPECT_TRUE(in_slow("a"));
}

TEST_F(PoolPromote, DemotedItIsInTheSlowTierOnly) {
  ASSERT_TRUE(create("a", RandomFill{kMiB, 1}));
  ASSERT_TRUE(promote("a"));
  ASSERT_TRUE(demote("a"));
  EXPECT_FALSE(in_fast("a"));
  EXPECT_TRUE(in_slow("a"));
  ASSERT_TRUE(demote("a")) << "it is there";
  expect_consistent();
}

TEST_F(PoolPromote, WhatATaskUsesStays) {
  ASSERT_TRUE(create("a", RandomFill{kMiB, 1}));
  ASSERT_TRUE(serve("task", {item("a", kMiB)}));
  const auto demoted = demote("a");
  ASSERT_FALSE(demoted);
  EXPECT_EQ(demoted.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(in_fast("a"));
  ASSERT_TRUE(finish("task"));
}

TEST_F(PoolPromote, WhatIsNotHereCannotBe) {
  EXPECT_EQ(promote("a").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(demote("a")) << "it is nowhere, so not in the fast tier";
}

TEST_F(PoolPromote, ADamagedCopyIsFoundAndGivenUp) {
  ASSERT_TRUE(create("a", RandomFill{kMiB, 1}));
  const auto path = slow_dir + "/" + file_name(*replica("a"));
  const auto id = id_of("a");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  write_file(path, content(kMiB, 'x'));
  Waiting<void> waiting;
  pool->promote(id, waiting.callback());
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(in_fast("a"));
}

// A demotion waits for no other node: what gives room back has one thread.
TEST_F(PoolPromote, WhatIsOnItsWayHoldsNobodyUp) {
  remote->put("far", "a", 1, content(1000, 'a'));
  remote->put("far", "b", 1, content(1000, 'b'));
  ASSERT_TRUE(serve("other", {remote_item("b", 1000)}));
  std::promise<void> begun, go;
  std::once_flag once;
  remote->hook = [&](std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    std::call_once(once, [&] { begun.set_value(), go.get_future().wait(); });
    lock.lock();
  };
  auto served = start_serve("task", {remote_item("a", 1000)});
  begun.get_future().wait();
  EXPECT_TRUE(demote("a")) << "it is not there yet";
  EXPECT_TRUE(finish("other"));
  EXPECT_FALSE(served.ready());
  go.set_value();
  ASSERT_TRUE(served.get());
  ASSERT_TRUE(finish("task"));
}

}  // namespace
}  // namespace tierpilot
