// Serving: where datasets come from, who has to leave, who waits.
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

class PoolServe : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    open();
  }
  // The first read of another node sets `reading` and waits for `go_on`.
  void block_first_read() {
    remote->hook = [this, once = false](auto& lock) mutable {
      if (std::exchange(once, true)) return;
      lock.unlock();
      reading.set_value();
      go_on.get_future().wait();
      lock.lock();
    };
  }
  void make(const std::string& name, uint64_t bytes = kMiB) {
    const auto made = create(name, RandomFill{bytes, 7});
    ASSERT_TRUE(made) << made.error().message;
  }
  std::promise<void> reading, go_on;
};

TEST_F(PoolServe, PromotionThenHit) {
  make("a");
  const auto first = serve("t1", {item("a", kMiB)});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->items.size(), 1u);
  EXPECT_EQ(first->items[0].how, ServeHow::kPromotion);
  EXPECT_EQ(first->promoted_bytes, kMiB);
  EXPECT_EQ(first->local_bytes, 0u);
  EXPECT_GE(first->service_ns, first->items[0].service_ns);
  EXPECT_EQ(read_file(first->items[0].path), read_file(slow_dir + "/" + file_name(*replica("a"))));

  const auto second = serve("t2", {item("a", kMiB)});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->items[0].how, ServeHow::kHit);
  EXPECT_EQ(second->local_bytes, kMiB);
  EXPECT_GT(first->promote_ns, 0);
  EXPECT_LE(first->promote_ns, first->service_ns - first->queued_ns);
  EXPECT_EQ(second->promote_ns, 0);
  EXPECT_EQ(second->items[0].path, first->items[0].path);

  const auto totals = pool->totals();
  EXPECT_EQ(totals.promotions, 1u);
  EXPECT_EQ(totals.hits, 1u);
  EXPECT_EQ(totals.promoted_bytes, kMiB);
  EXPECT_EQ(totals.hit_bytes, kMiB);
  EXPECT_EQ(totals.service_ns.count(), 2u);
  EXPECT_GT(totals.promote.last_gb_per_s.value_or(0), 0);
  EXPECT_FALSE(totals.evict.last_gb_per_s) << "nothing was evicted: no rate is known";
  EXPECT_TRUE(finish("t1"));
  EXPECT_TRUE(finish("t2"));
  expect_consistent();
}

TEST_F(PoolServe, FetchLivesInFastOnly) {
  const auto data = content(kMiB, 'f');
  remote->put("far", "f", 1, data);
  const auto served = serve("t", {remote_item("f", kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kFetch);
  EXPECT_EQ(served->fetched_bytes, kMiB);
  EXPECT_EQ(read_file(served->items[0].path), data);
  EXPECT_EQ(placed(replica("f")), (ReplicaChange{"f", 1, kMiB, true, false, false}));
  EXPECT_TRUE(finish("t"));
  expect_consistent();
}

TEST_F(PoolServe, ServedFileIsReadOnly) {
  make("a");
  const auto served = serve("t", {item("a", kMiB)});
  ASSERT_TRUE(served);
  struct stat info {};
  ASSERT_EQ(::stat(served->items[0].path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0444u);
}

TEST_F(PoolServe, LeastRecentlyUsedLeaves) {
  for (const auto* name : {"a", "b", "c", "d", "e"}) make(name);
  for (const auto* name : {"a", "b", "c", "d"}) use(item(name, kMiB));
  use(item("a", kMiB));  // now b is the oldest
  use(item("e", kMiB));
  EXPECT_TRUE(in_fast("a"));
  EXPECT_FALSE(in_fast("b"));
  EXPECT_TRUE(in_fast("c"));
  EXPECT_TRUE(in_fast("e"));
  expect_consistent();
}

TEST_F(PoolServe, CleanCopyIsDroppedWithoutWriting) {
  for (const auto* name : {"a", "b"}) make(name, 3 * kMiB);
  use(item("a", 3 * kMiB));
  const auto served = serve("t", {item("b", 3 * kMiB)});
  ASSERT_TRUE(served);
  EXPECT_EQ(served->evicted_bytes, 3 * kMiB);
  EXPECT_EQ(served->evicted_written_bytes, 0u);
  EXPECT_TRUE(in_slow("a"));
  EXPECT_FALSE(pool->totals().evict.last_gb_per_s);
}

TEST_F(PoolServe, FetchedCopyIsWrittenBeforeItLeaves) {
  const auto data = content(3 * kMiB, 'f');
  remote->put("far", "f", 1, data);
  use(remote_item("f", 3 * kMiB));
  make("b", 3 * kMiB);
  const auto served = serve("t", {item("b", 3 * kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->evicted_bytes, 3 * kMiB);
  EXPECT_EQ(served->evicted_written_bytes, 3 * kMiB);
  EXPECT_GT(served->evict_ns, 0);
  EXPECT_EQ(placed(replica("f")), (ReplicaChange{"f", 1, 3 * kMiB, false, true, false}));
  EXPECT_EQ(read_file(slow_dir + "/" + file_name(*replica("f"))), data);
  const auto totals = pool->totals();
  EXPECT_EQ(totals.evictions, 1u);
  EXPECT_EQ(totals.evicted_written_bytes, 3 * kMiB);
  EXPECT_GT(totals.evict.last_gb_per_s.value_or(0), 0);
  EXPECT_GT(totals.evict.mean_gb_per_s.value_or(0), 0);

  ASSERT_TRUE(finish("t"));
  const auto again = serve("t", {item("f", 3 * kMiB)});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->items[0].how, ServeHow::kPromotion);
  EXPECT_EQ(read_file(again->items[0].path), data);
}

TEST_F(PoolServe, PinnedStayAndTheNextWaits) {
  for (const auto* name : {"a", "b"}) make(name, 3 * kMiB);
  ASSERT_TRUE(serve("t1", {item("a", 3 * kMiB)}));
  auto waiting = start_serve("t2", {item("b", 3 * kMiB)});
  EXPECT_FALSE(waiting.ready(50));
  EXPECT_EQ(pool->usage().waiting_requests, 1u);
  EXPECT_TRUE(in_fast("a"));
  ASSERT_TRUE(finish("t1"));
  const auto served = waiting.get();
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_GE(served->queued_ns, 40'000'000);
  EXPECT_GE(served->service_ns, served->queued_ns);
  EXPECT_FALSE(in_fast("a"));
}

TEST_F(PoolServe, WaitingIsFirstComeFirstServed) {
  for (const auto* name : {"a", "b", "c"}) make(name, 2 * kMiB);
  make("small", kKiB);
  ASSERT_TRUE(serve("t1", {item("a", 2 * kMiB), item("b", 2 * kMiB)}));
  auto big = start_serve("t2", {item("c", 2 * kMiB)});
  auto small = start_serve("t3", {item("small", kKiB)});
  auto hit = start_serve("t4", {item("a", 2 * kMiB)});
  EXPECT_FALSE(small.ready(50)) << "nobody overtakes";
  EXPECT_FALSE(hit.ready());
  pool->cancel("t2");
  EXPECT_FALSE(big.get());
  // There is no room for `small` either, but when t1 ends all of them fit.
  ASSERT_TRUE(finish("t1"));
  EXPECT_TRUE(small.get());
  EXPECT_TRUE(hit.get());
}

TEST_F(PoolServe, WhatCanNeverFitIsRefusedWithBothNumbers) {
  const auto served = serve("t", {item("a", 3 * kMiB), item("b", 3 * kMiB)});
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kInvalid);
  EXPECT_NE(served.error().message.find("6291456"), std::string::npos) << served.error().message;
  EXPECT_NE(served.error().message.find("4194304"), std::string::npos);
  EXPECT_NE(served.error().message.find(fast_dir), std::string::npos);
  EXPECT_FALSE(serve("t", {item("a", UINT64_MAX), item("b", UINT64_MAX)}));
  EXPECT_TRUE(serve("t", {})) << "nothing is served at once";
}

TEST_F(PoolServe, HostileRequestsAreRefused) {
  make("a");
  for (const auto& bad : {item("../a", 1), item("", 1), item("a", kMiB, 0),
                          item("a", kMiB, UINT64_MAX), item("a", kMiB + 1)}) {
    const auto served = serve("t", {bad});
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code, ErrorCode::kInvalid) << served.error().message;
  }
  EXPECT_FALSE(serve("t", {item("a", kMiB), item("a", kMiB)}));
  EXPECT_FALSE(serve("../t", {item("a", kMiB)}));
  EXPECT_EQ(pool->totals().failed_requests, 7u);
  expect_consistent();
}

TEST_F(PoolServe, OneOwnerOneRequest) {
  make("a");
  ASSERT_TRUE(serve("t", {item("a", kMiB)}));
  const auto second = serve("t", {item("a", kMiB)});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(finish("t"));
  const auto unknown = finish("t");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
}

TEST_F(PoolServe, MissingDatasetFailsAndLeavesNothingPinned) {
  make("a");
  const auto served = serve("t", {item("a", kMiB), item("missing", kMiB)});
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kNotFound);
  EXPECT_NE(served.error().message.find("missing"), std::string::npos);
  expect_consistent();
}

TEST_F(PoolServe, SlowFileThatVanishedIsAnErrorThatNamesIt) {
  make("a");
  std::filesystem::remove(slow_dir + "/" + file_name(*replica("a")));
  const auto served = serve("t", {item("a", kMiB)});
  ASSERT_FALSE(served);
  EXPECT_NE(served.error().message.find(slow_dir), std::string::npos) << served.error().message;
  EXPECT_EQ(pool->usage().fast_used_bytes, 0u);
}

TEST_F(PoolServe, TruncatedSlowFileIsNeverServed) {
  make("a");
  const auto file = slow_dir + "/" + file_name(*replica("a"));
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(file, 1000);
  EXPECT_FALSE(serve("t", {item("a", kMiB)}));
  EXPECT_EQ(pool->usage().fast_used_bytes, 0u);
  EXPECT_TRUE(files_in(fast_dir).empty());
}

TEST_F(PoolServe, CancelledWhileFetchingLeavesNothing) {
  remote->put("far", "f", 1, content(3 * kMiB, 'f'));
  block_first_read();
  auto waiting = start_serve("t", {remote_item("f", 3 * kMiB)});
  reading.get_future().wait();
  const auto early = finish("t");
  ASSERT_FALSE(early) << "a request under way cannot be finished";
  EXPECT_EQ(early.error().code, ErrorCode::kConflict);
  pool->cancel("t");
  go_on.set_value();
  const auto served = waiting.get();
  ASSERT_FALSE(served);
  EXPECT_NE(served.error().message.find("cancelled"), std::string::npos);
  expect_consistent();
  EXPECT_TRUE(files_in(fast_dir).empty());
  pool->cancel("t");  // unknown: nothing happens
}

TEST_F(PoolServe, TwoRequestsForOneDatasetLoadItOnce) {
  remote->put("far", "f", 1, content(3 * kMiB, 'f'));
  block_first_read();
  auto first = start_serve("t1", {remote_item("f", 3 * kMiB)});
  reading.get_future().wait();
  auto second = start_serve("t2", {remote_item("f", 3 * kMiB)});
  EXPECT_FALSE(second.ready(30));
  go_on.set_value();
  const auto fetched = first.get();
  ASSERT_TRUE(fetched);
  const auto served = second.get();
  ASSERT_TRUE(served);
  EXPECT_EQ(served->items[0].how, ServeHow::kFetch) << "it waited for the fetch";
  EXPECT_GE(fetched->fetch_ns, 30'000'000) << "the source kept it waiting";
  EXPECT_EQ(served->fetch_ns, fetched->fetch_ns);
  EXPECT_EQ(remote->bytes_read["far"], 3 * kMiB);
}

TEST_F(PoolServe, JoinedLoadThatFailsIsTriedAgainFromOwnSources) {
  remote->put("good", "f", 1, content(kMiB, 'f'));
  remote->put("bad", "f", 1, content(kKiB, 'x'));
  block_first_read();
  auto wanted = remote_item("f", kMiB, {"bad"});
  wanted.digest = digest_of(content(kMiB, 'f'));
  auto first = start_serve("t1", {wanted});
  reading.get_future().wait();
  wanted.sources = {"good"};
  auto second = start_serve("t2", {wanted});
  go_on.set_value();
  EXPECT_FALSE(first.get());
  EXPECT_TRUE(second.get());
  EXPECT_TRUE(finish("t2"));
  expect_consistent();
}

TEST_F(PoolServe, FinishDoesNotWaitForNodesThatDoNotAnswer) {
  options.workers = 1;
  open();
  make("a");
  ASSERT_TRUE(serve("t1", {write_item("a", kMiB)}));
  remote->put("far", "f", 1, content(kMiB, 'f'));
  block_first_read();
  auto stuck = start_serve("t2", {remote_item("f", kMiB)});
  reading.get_future().wait();
  EXPECT_TRUE(finish("t1"));
  EXPECT_TRUE(drop("a"));
  EXPECT_FALSE(stuck.ready());
  go_on.set_value();
  EXPECT_TRUE(stuck.get());
}

TEST_F(PoolServe, ClosingEndsWaitingAndRunningRequests) {
  make("a", 3 * kMiB);
  make("b", 3 * kMiB);
  ASSERT_TRUE(serve("t1", {item("a", 3 * kMiB)}));
  auto waiting = start_serve("t2", {item("b", 3 * kMiB)});
  pool.reset();
  const auto served = waiting.get();
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kUnavailable);
}

TEST_F(PoolServe, ChangesTellWhereReplicasAre) {
  remote->put("far", "f", 1, content(3 * kMiB, 'f'));
  use(remote_item("f", 3 * kMiB));
  make("b", 3 * kMiB);
  use(item("b", 3 * kMiB));
  ASSERT_TRUE(drop("f"));
  const std::vector<ReplicaChange> expected = {
      {"f", 1, 3 * kMiB, true, false, false},   // fetched
      {"b", 1, 3 * kMiB, false, true, true},    // created
      {"f", 1, 3 * kMiB, false, true, false},   // evicted
      {"b", 1, 3 * kMiB, true, true, true},     // promoted
      {"f", 1, 3 * kMiB, false, false, false},  // dropped
  };
  std::lock_guard lock(changes_mutex);
  EXPECT_EQ(placed(changes), expected);
}

}  // namespace
}  // namespace tierpilot
