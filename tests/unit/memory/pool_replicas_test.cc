// Creating, dropping, homes, reading for other nodes, and a full slow tier.
#include <fcntl.h>

#include "base/unique_fd.h"
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

class PoolReplicas : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    options.slow_budget_bytes = 4 * kMiB;
    open();
  }
  void expect_refused(const std::string& name, CreateSource source, ErrorCode code,
                      const std::string& hint) {
    const auto made = create(name, std::move(source));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, code) << made.error().message;
    EXPECT_NE(made.error().message.find(hint), std::string::npos) << made.error().message;
    expect_consistent();
  }
  void fetch(const std::string& name, uint64_t bytes) {
    remote->put("far", name, 1, content(bytes, name[0]));
    use(remote_item(name, bytes));
  }
  // Out of the fast tier, by using something that needs all of it.
  void flush_fast() {
    remote->put("far", "flush", 1, content(4 * kMiB, 'z'));
    use(remote_item("flush", 4 * kMiB));
    ASSERT_TRUE(drop("flush"));
  }
};

TEST_F(PoolReplicas, CreatedDatasetsAreHomeAndDurable) {
  write_file(fast_dir + ".source", content(kMiB + 3, 'i'));
  const auto imported = create("imported", ImportFile{fast_dir + ".source"});
  std::filesystem::remove(fast_dir + ".source");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(placed(*imported), (ReplicaChange{"imported", 1, kMiB + 3, false, true, true}));
  EXPECT_EQ(read_file(slow_dir + "/" + file_name(*replica("imported"))), content(kMiB + 3, 'i'));
  ASSERT_TRUE(create("zero", ZeroFill{100}));
  EXPECT_EQ(read_file(slow_dir + "/" + file_name(*replica("zero"))), std::string(100, '\0'));
  ASSERT_TRUE(create("empty", ZeroFill{0}));
  use(item("empty", 0));
  expect_consistent();
}

TEST_F(PoolReplicas, RandomContentIsRepeatable) {
  ASSERT_TRUE(create("a", RandomFill{kMiB + 5, 42}));
  ASSERT_TRUE(create("b", RandomFill{kMiB + 5, 42}));
  ASSERT_TRUE(create("c", RandomFill{kMiB + 5, 43}));
  const auto a = read_file(slow_dir + "/" + file_name(*replica("a")));
  EXPECT_EQ(a, read_file(slow_dir + "/" + file_name(*replica("b"))));
  EXPECT_NE(a, read_file(slow_dir + "/" + file_name(*replica("c"))));
  EXPECT_NE(a.substr(0, 8), a.substr(8, 8));
}

TEST_F(PoolReplicas, BadSourcesAreRefusedClearly) {
  const auto missing = slow_dir + "/../nope";
  expect_refused("a", ImportFile{missing}, ErrorCode::kNotFound, missing);
  expect_refused("a", ImportFile{slow_dir}, ErrorCode::kInvalid, "is a directory");
  expect_refused("a", ImportFile{"/dev/zero"}, ErrorCode::kInvalid, "not a regular file");
  expect_refused("a", ImportFile{""}, ErrorCode::kNotFound, "dataset 'a'");
  expect_refused("a", ZeroFill{5 * kMiB}, ErrorCode::kExhausted, "5242880");
  expect_refused("a", ZeroFill{UINT64_MAX}, ErrorCode::kExhausted, "4194304");
  expect_refused("../a", ZeroFill{1}, ErrorCode::kInvalid, "not allowed");
  // It says 0 bytes, as all of the kernel's do.
  expect_refused("a", ImportFile{"/proc/self/status"}, ErrorCode::kInvalid,
                 "more than the 0 bytes");
  const auto fifo = fast_dir + ".fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_refused("a", ImportFile{fifo}, ErrorCode::kInvalid, "not a regular file");
  std::filesystem::remove(fifo);
  ASSERT_TRUE(create("a", ZeroFill{1}));
  expect_refused("a", ZeroFill{1}, ErrorCode::kConflict, "exists already");
}

// Of a client who may have no other right to it than that the daemon reads it.
TEST_F(PoolReplicas, OfEveryoneIsOnlyWhatEverybodyMayRead) {
  const std::filesystem::path folder = fast_dir + ".sources";
  std::filesystem::create_directory(folder);
  const auto path = (folder / "file").string();
  write_file(path, "x");
  const auto mode = [](const std::string& of, mode_t bits) {
    ASSERT_EQ(::chmod(of.c_str(), bits), 0);
  };
  mode(folder, 0755);
  mode(path, 0640);
  expect_refused("a", ImportFile{path, true}, ErrorCode::kDenied, "its mode keeps");
  mode(path, 0644);
  mode(folder, 0700);
  expect_refused("a", ImportFile{path, true}, ErrorCode::kDenied, folder.native());
  EXPECT_TRUE(create("own", ImportFile{path}))
      << "where tasks are the daemon's user they may anyway";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(create("a", ImportFile{"/etc/passwd", true}));
}

TEST_F(PoolReplicas, UnreadableSourceIsDenied) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const auto path = fast_dir + ".source";
  write_file(path, "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  expect_refused("a", ImportFile{path}, ErrorCode::kDenied, path);
  std::filesystem::remove(path);
}

TEST_F(PoolReplicas, FullSlowTierDropsOldestNonHomeOnly) {
  ASSERT_TRUE(create("home", RandomFill{kMiB, 1}));
  for (const auto* name : {"x", "y", "z"}) fetch(name, kMiB);
  flush_fast();  // x, y and z are written back: the slow tier is full
  ASSERT_EQ(pool->usage().slow_used_bytes, 4 * kMiB);
  ASSERT_TRUE(create("new", RandomFill{kMiB, 1}));
  EXPECT_FALSE(replica("x")) << "the oldest";
  EXPECT_TRUE(in_slow("y"));
  EXPECT_TRUE(in_slow("z"));
  EXPECT_TRUE(in_slow("home"));
  EXPECT_EQ(pool->totals().slow_drops, 1u);
  expect_consistent();
}

TEST_F(PoolReplicas, NothingIsDroppedForWhatStillWouldNotFit) {
  ASSERT_TRUE(create("home", RandomFill{2 * kMiB, 1}));
  fetch("x", kMiB);
  flush_fast();
  ASSERT_TRUE(in_slow("x"));
  expect_refused("big", ZeroFill{3 * kMiB}, ErrorCode::kExhausted, slow_dir);
  EXPECT_TRUE(in_slow("x"));
}

TEST_F(PoolReplicas, NonHomeReplicaWithoutRoomBelowIsDroppedUnwritten) {
  ASSERT_TRUE(create("home", RandomFill{4 * kMiB, 1}));
  fetch("x", kMiB);
  const auto served = serve("t", {item("home", 4 * kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->evicted_bytes, kMiB);
  EXPECT_EQ(served->evicted_written_bytes, 0u);
  EXPECT_FALSE(replica("x"));
}

TEST_F(PoolReplicas, SetHomeMakesItDurableAndKeepsIt) {
  fetch("x", kMiB);
  ASSERT_TRUE(set_home("x", 1, true));
  EXPECT_EQ(placed(replica("x")), (ReplicaChange{"x", 1, kMiB, true, true, true}));
  open();
  EXPECT_EQ(placed(replica("x")), (ReplicaChange{"x", 1, kMiB, true, true, true})) << "remembered";
  flush_fast();
  expect_refused("big", ZeroFill{4 * kMiB}, ErrorCode::kExhausted, "must stay");
  ASSERT_TRUE(set_home("x", 1, false));
  ASSERT_TRUE(create("big", ZeroFill{4 * kMiB}));
  EXPECT_FALSE(replica("x"));
  const auto status = set_home("x", 1, true);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
}

TEST_F(PoolReplicas, DropRemovesOlderVersionsAndHomes) {
  ASSERT_TRUE(create("a", RandomFill{kKiB, 1}));
  ASSERT_TRUE(create("ab", RandomFill{kKiB, 1}));
  ASSERT_TRUE(serve("w", {write_item("a", kKiB)}));
  ASSERT_TRUE(finish("w"));
  ASSERT_TRUE(drop("a", 2)) << "version 1 is gone already";
  EXPECT_TRUE(replica("a", 2));
  ASSERT_TRUE(drop("a"));
  EXPECT_FALSE(replica("a", 2));
  EXPECT_TRUE(replica("ab"));
  EXPECT_TRUE(drop("unknown"));
  EXPECT_FALSE(drop("../a"));
  expect_consistent();
}

TEST_F(PoolReplicas, DroppedWhilePinnedGoesWithTheLastPin) {
  ASSERT_TRUE(create("a", RandomFill{kKiB, 1}));
  const auto t1 = serve("t1", {item("a", kKiB)});
  ASSERT_TRUE(t1);
  ASSERT_TRUE(serve("t2", {item("a", kKiB)}));
  ASSERT_TRUE(drop("a"));
  ASSERT_TRUE(finish("t1"));
  EXPECT_TRUE(std::filesystem::exists(t1->items[0].path));
  ASSERT_TRUE(finish("t2"));
  EXPECT_FALSE(replica("a"));
  EXPECT_FALSE(std::filesystem::exists(t1->items[0].path));
  std::lock_guard lock(changes_mutex);
  EXPECT_EQ(placed(changes).back(), (ReplicaChange{"a", 1, kKiB, false, false, true}));
}

TEST_F(PoolReplicas, ReadServesEitherTier) {
  write_file(fast_dir + ".source", content(kMiB, 'i'));
  ASSERT_TRUE(create("a", ImportFile{fast_dir + ".source"}));
  std::filesystem::remove(fast_dir + ".source");
  for (const bool promoted : {false, true}) {
    if (promoted) use(item("a", kMiB));
    std::string out(1000, '?');
    const auto into = std::as_writable_bytes(std::span(out));
    auto got = pool->read({"a", 1, digest("a", 1)}, kMiB - 600, into);
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, 600u);
    EXPECT_EQ(out.substr(0, 600), content(kMiB, 'i').substr(kMiB - 600));
    EXPECT_EQ(*pool->read({"a", 1, digest("a", 1)}, kMiB, into), 0u);
    EXPECT_EQ(*pool->read({"a", 1, digest("a", 1)}, UINT64_MAX, into), 0u);
    EXPECT_EQ(*pool->read({"a", 1, digest("a", 1)}, 0, {}), 0u);
  }
  std::byte byte;
  EXPECT_EQ(pool->read({"a", 2, digest("a", 2)}, 0, {&byte, 1}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(pool->read({"b", 1, digest("b", 1)}, 0, {&byte, 1}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(pool->read({"../b", 1, digest("../b", 1)}, 0, {&byte, 1}).error().code,
            ErrorCode::kInvalid);
}

// The coordinator tells all nodes of a removal, also those that have nothing: one that is busy must
// not take what is made of that name since.
TEST_F(PoolReplicas, ADropDoesNotTakeWhatIsMadeAfterIt) {
  open();
  ASSERT_TRUE(create("w", ZeroFill{1000}));
  const auto served = serve("writer", {write_item("w", 1000)});
  ASSERT_TRUE(served) << served.error().message;
  UniqueFd held(::open(served->items[0].path.c_str(), O_WRONLY | O_CLOEXEC));
  Waiting<std::vector<ReplicaChange>> finished;
  pool->finish("writer", true, finished.callback());  // waits for whoever has it open
  Waiting<void> dropped;
  pool->drop("x", UINT64_MAX, dropped.callback());
  ASSERT_TRUE(create("x", ZeroFill{1000}));
  held.reset();
  ASSERT_TRUE(finished.get());
  ASSERT_TRUE(dropped.get());
  EXPECT_TRUE(in_slow("x"));
  expect_consistent();
}

TEST_F(PoolReplicas, AHitDoesNotWaitForCopiesThatNobodyRunsOn) {
  open();
  ASSERT_TRUE(create("hit", ZeroFill{1000}));
  use(item("hit", 1000));
  std::promise<void> source_answers;
  const auto answer = source_answers.get_future().share();
  remote->hook = [&](std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    answer.wait();
    lock.lock();
  };
  std::vector<Waiting<ReplicaChange>> kept;
  for (int i = 0; i < options.workers + 2; ++i) {
    const auto name = "far-" + std::to_string(i);
    remote->put("far", name, 1, content(1000, 'x'));
    pool->keep(remote_item(name, 1000), kept.emplace_back().callback());
  }
  EXPECT_TRUE(serve("task", {item("hit", 1000)}));
  EXPECT_TRUE(finish("task"));
  source_answers.set_value();
  for (auto& copy : kept) EXPECT_TRUE(copy.get());
}

class PoolNuma : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    std::filesystem::remove_all(slow_dir);
    slow_dir = options.slow_dir = make_folder("/dev/shm");
    options.slow_kind = "numa";
    options.slow_budget_bytes = 8 * kMiB;
    open();
  }
};

TEST_F(PoolNuma, TiersAreExclusive) {
  ASSERT_TRUE(create("a", RandomFill{3 * kMiB, 1}));
  ASSERT_TRUE(create("b", RandomFill{3 * kMiB, 2}));
  use(item("a", 3 * kMiB));
  EXPECT_EQ(placed(replica("a")), (ReplicaChange{"a", 1, 3 * kMiB, true, false, true}));
  const auto served = serve("t", {item("b", 3 * kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kPromotion);
  EXPECT_EQ(served->evicted_written_bytes, 3 * kMiB) << "nothing is clean here";
  EXPECT_EQ(placed(replica("a")), (ReplicaChange{"a", 1, 3 * kMiB, false, true, true}));
  EXPECT_EQ(placed(replica("b")), (ReplicaChange{"b", 1, 3 * kMiB, true, false, true}));
  ASSERT_TRUE(finish("t"));
  expect_consistent();
  open();
  EXPECT_EQ(placed(replica("a")), (ReplicaChange{"a", 1, 3 * kMiB, false, true, true}));
  EXPECT_EQ(placed(replica("b")), (ReplicaChange{"b", 1, 3 * kMiB, true, false, true}));
}

TEST_F(PoolNuma, HomeReplicaThatCannotLeaveFailsTheRequestAndStays) {
  ASSERT_TRUE(create("a", RandomFill{3 * kMiB, 1}));
  use(item("a", 3 * kMiB));
  ASSERT_TRUE(create("b", RandomFill{3 * kMiB, 2}));
  ASSERT_TRUE(create("c", RandomFill{3 * kMiB, 2}));
  const auto served = serve("t", {item("b", 3 * kMiB)});
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kExhausted);
  EXPECT_NE(served.error().message.find(slow_dir), std::string::npos);
  for (const auto* name : {"a", "b", "c"}) EXPECT_TRUE(replica(name)) << name;
  expect_consistent();
}

// Whoever is told that it is kept counts on it.
TEST_F(PoolReplicas, WhatIsToGoOnceNobodyUsesItIsNotKept) {
  open();
  remote->put("far", "a", 1, content(1000, 'a'));
  const auto a = remote_item("a", 1000);
  ASSERT_TRUE(serve("task", {a}));
  Waiting<void> discarded;
  pool->discard(a.id(), discarded.callback());
  ASSERT_TRUE(discarded.get());
  Waiting<ReplicaChange> kept;
  pool->keep(a, kept.callback());
  const auto answer = kept.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(set_home("a", 1, true));
  ASSERT_TRUE(finish("task"));
  EXPECT_FALSE(replica("a"));
  expect_consistent();
}

}  // namespace
}  // namespace tierpilot
