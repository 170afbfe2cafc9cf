// Copies whose bytes have changed under the pool: they are found when they move or are looked at,
// told of, and served to nobody.
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/unique_fd.h"
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

// Nothing can be written to files.
class FullDisk {
 public:
  FullDisk() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

class PoolDamage : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    open();
    write_file(fast_dir + ".source", good);
    ASSERT_TRUE(create("d", ImportFile{fast_dir + ".source"}));
    std::filesystem::remove(fast_dir + ".source");
    file = file_name(*replica("d"));
  }
  // As a disk does that returns wrong bytes: size and name stay.
  void damage(const std::string& dir) {
    const auto path = dir + "/" + file;
    std::filesystem::permissions(path, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(kMiB / 2).put('!');
    ASSERT_TRUE(out.good());
  }
  bool damage_was_told() {
    std::lock_guard lock(changes_mutex);
    return std::any_of(changes.begin(), changes.end(),
                       [](const auto& change) { return change.name == "d" && change.damaged; });
  }
  Result<ReplicaCheck> verify() {
    Waiting<ReplicaCheck> waiting;
    pool->verify({"d", 1, digest_of(good)}, waiting.callback());
    return waiting.get();
  }
  ServeItem wanted(std::vector<std::string> sources = {}) {
    return {.name = "d",
            .version = 1,
            .bytes = kMiB,
            .sources = std::move(sources),
            .digest = digest_of(good)};
  }

  const std::string good = content(kMiB, 'g');
  std::string file;
};

TEST_F(PoolDamage, ADamagedCopyIsNotServedAndTheLastOneIsSetAside) {
  damage(slow_dir);
  const auto served = serve("t", {wanted()});
  ASSERT_FALSE(served);
  EXPECT_TRUE(damage_was_told());
  EXPECT_FALSE(replica("d"));
  EXPECT_TRUE(std::filesystem::exists(slow_dir + "/.damaged-" + file));
  EXPECT_EQ(pool->usage().slow_used_bytes, 0u);
  open();
  EXPECT_FALSE(replica("d")) << "it is not found again";
}

TEST_F(PoolDamage, AnotherNodesCopyTakesItsPlace) {
  damage(slow_dir);
  remote->put("far", "d", 1, good);
  const auto served = serve("t", {wanted({"far"})});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kFetch);
  EXPECT_EQ(read_file(served->items[0].path), good);
  EXPECT_TRUE(damage_was_told());
  ASSERT_TRUE(finish("t"));
}

TEST_F(PoolDamage, AnotherNodesCopyIsReadInPlaceOfOneThatCannotBe) {
  remote->put("far", "d", 1, good);
  std::filesystem::resize_file(slow_dir + "/" + file, kMiB / 2);
  auto served = serve("t", {wanted({"far"})});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kFetch);
  EXPECT_EQ(read_file(served->items[0].path), good);
  EXPECT_TRUE(std::filesystem::exists(slow_dir + "/" + file)) << "its disk may do better later";
  ASSERT_TRUE(finish("t"));
  expect_consistent();
}

TEST_F(PoolDamage, AWriterReadsWhateverTierCanBeAndThenAnotherNode) {
  use(wanted());
  std::filesystem::remove(fast_dir + "/" + file);
  auto writes = wanted({"far"});
  writes.write = true;
  auto served = serve("t", {writes});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kPromotion);
  ASSERT_TRUE(finish("t", false));
  std::filesystem::remove(slow_dir + "/" + file);
  served = serve("t2", {writes});
  ASSERT_FALSE(served);
  for (const auto* named : {fast_dir.c_str(), slow_dir.c_str(), "far"})
    EXPECT_NE(served.error().message.find(named), std::string::npos) << served.error().message;
  remote->put("far", "d", 1, good);
  served = serve("t3", {writes});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kFetch);
  EXPECT_EQ(read_file(served->items[0].path), good);
  ASSERT_TRUE(finish("t3", false));
}

TEST_F(PoolDamage, AWriterIsGivenGoodBytesToo) {
  use(wanted());
  damage(fast_dir);
  auto writes = wanted();
  writes.write = true;
  const auto served = serve("t", {writes});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->items[0].how, ServeHow::kPromotion) << "the slow copy was good";
  EXPECT_EQ(read_file(served->items[0].path), good);
  EXPECT_TRUE(damage_was_told());
  EXPECT_FALSE(in_fast("d"));
  ASSERT_TRUE(finish("t", false));
  expect_consistent();
}

// A reboot would take the last of it.
TEST_F(PoolDamage, AHomeIsWrittenToItsDiskAnewFromMemory) {
  use(wanted());
  damage(slow_dir);
  const auto check = verify();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->slow, CopyState::kDamaged);
  EXPECT_TRUE(damage_was_told());
  ASSERT_TRUE(replica("d"));
  EXPECT_TRUE(replica("d")->home && replica("d")->in_slow);
  EXPECT_EQ(read_file(slow_dir + "/" + file), good);
  EXPECT_EQ(verify()->slow, CopyState::kGood);
}

// Who reads it to its end would have other bytes.
TEST_F(PoolDamage, ACopyThatGoesOnBehindItsBytesIsDamaged) {
  use(wanted());
  const auto path = fast_dir + "/" + file;
  std::filesystem::permissions(path, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  std::ofstream(path, std::ios::binary | std::ios::app) << "more";
  const auto check = verify();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->fast, CopyState::kDamaged);
  EXPECT_EQ(check->slow, CopyState::kGood);
}

// The coordinator may not have heard of it, and has what is left written to the disk anew.
TEST_F(PoolDamage, AHomeThatIsInMemoryOnlyIsToldAsDamagedUntilItIsOnDisk) {
  use(wanted());
  const auto damaged = [&] {
    const auto all = pool->replicas();
    return std::any_of(all.begin(), all.end(), [](const auto& held) { return held.damaged; });
  };
  EXPECT_FALSE(damaged());
  damage(slow_dir);
  {
    const FullDisk full;
    ASSERT_TRUE(verify());
  }
  EXPECT_TRUE(damaged());
  open();
  EXPECT_TRUE(damaged());
  Waiting<void> waiting;
  pool->set_home({"d", 1, digest_of(good)}, true, waiting.callback());
  EXPECT_TRUE(waiting.get());
  EXPECT_FALSE(damaged());
}

TEST_F(PoolDamage, VerifyLooksAtEachTier) {
  use(wanted());
  auto check = verify();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->fast, CopyState::kGood);
  EXPECT_EQ(check->slow, CopyState::kGood);
  damage(fast_dir);
  check = verify();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->fast, CopyState::kDamaged);
  EXPECT_EQ(check->slow, CopyState::kGood);
  check = verify();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->fast, CopyState::kAbsent) << "it went";
  expect_consistent();
  std::filesystem::remove(slow_dir + "/" + file);
  check = verify();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->slow, CopyState::kDamaged) << "a file that is gone is as lost";
  check = verify();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code, ErrorCode::kNotFound);
}

TEST_F(PoolDamage, WhatIsWrittenBackIsWhatCameIn) {
  remote->put("far", "e", 1, good);
  auto e = wanted({"far"});
  e.name = "e";
  use(e);
  file = file_name(*replica("e"));
  damage(fast_dir);
  remote->put("far", "flush", 1, content(4 * kMiB, 'z'));
  use(remote_item("flush", 4 * kMiB));
  EXPECT_FALSE(replica("e")) << "it was neither kept nor written back";
  expect_consistent();
}

TEST_F(PoolDamage, KeepMakesAHomeCopyOfAnotherNodes) {
  remote->put("far", "k", 3, good);
  remote->put("bad", "k", 3, content(kMiB, 'x'));
  Waiting<ReplicaChange> kept;
  ServeItem item = wanted({"bad", "far"});
  item.name = "k";
  item.version = 3;
  pool->keep(item, kept.callback());
  const auto made = kept.get();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made, (ReplicaChange{"k", 3, kMiB, false, true, true, digest_of(good)}));
  EXPECT_EQ(read_file(slow_dir + "/" + file_name(*made)), good);
  EXPECT_EQ(remote->doubted, std::vector<std::string>{"bad"});
  Waiting<ReplicaChange> again;
  pool->keep(item, again.callback());
  EXPECT_TRUE(again.get()) << "it may be asked again";
  expect_consistent();
}

TEST_F(PoolDamage, WhatCannotBeLookedAtIsNotGivenUp) {
  use(wanted());
  rlimit all{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &all), 0);
  const rlimit few{64, all.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> taken;
  for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.emplace_back(fd);
  const auto check = verify();
  taken.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &all), 0);
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code, ErrorCode::kExhausted) << check.error().message;
  EXPECT_TRUE(in_fast("d") && in_slow("d"));
  EXPECT_TRUE(replica("d")->home);
}

}  // namespace
}  // namespace tierpilot
