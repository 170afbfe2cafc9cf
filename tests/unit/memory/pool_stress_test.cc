// Seeded random use from several threads: budgets hold at every moment, the sums are right at the
// end, and every reader sees the version it asked for.
#include <random>
#include <thread>

#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

constexpr int kDatasets = 12;
constexpr int kClients = 4;
constexpr int kRounds = 60;

// Byte i of every version tells name and version.
std::string stamp(const std::string& name, uint64_t version, size_t bytes) {
  return std::string(bytes, static_cast<char>(name.back() * 7 + static_cast<char>(version)));
}

class PoolStress : public PoolTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // The coordinator's part: what the newest version is, and one writer at a time.
  struct Known {
    std::mutex mutex;
    uint64_t version = 1;
    uint64_t bytes = 0;
    bool written = false;
  };

  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    options.slow_kind = GetParam();
    if (options.slow_kind == "numa") {
      std::filesystem::remove_all(slow_dir);
      slow_dir = options.slow_dir = make_folder("/dev/shm");
    }
    options.fast_budget_bytes = 600 * kKiB;
    options.slow_budget_bytes = 2 * kMiB;
    options.workers = 3;
    open();
    for (int i = 0; i < kDatasets; ++i) {
      known[i].bytes = (20 + 13 * i) * kKiB;
      const auto data = stamp(name(i), 1, known[i].bytes);
      if (i % 3 == 0) {  // a third of them comes from elsewhere
        remote->put("far", name(i), 1, data);
      } else {
        write_file(slow_dir + ".source", data);
        ASSERT_TRUE(create(name(i), ImportFile{slow_dir + ".source"}));
      }
    }
    std::filesystem::remove(slow_dir + ".source");
  }

  static std::string name(int i) { return "set-" + std::string(1, static_cast<char>('a' + i)); }

  void read_some(std::mt19937& random, const std::string& owner) {
    std::vector<ServeItem> items;
    for (int i = 0; i < kDatasets; ++i) {
      if (random() % 6 != 0) continue;
      std::lock_guard lock(known[i].mutex);
      items.push_back(item(name(i), known[i].bytes, known[i].version));
      items.back().sources = {"far"};
    }
    auto waiting = start_serve(owner, items);
    if (random() % 5 == 0) pool->cancel(owner);
    const auto served = waiting.get();
    if (!served) return;
    ++reads;
    for (const auto& one : served->items) {
      const auto data = read_file(one.path);
      EXPECT_EQ(data, stamp(one.name, one.version, one.bytes)) << one.name << " " << one.version;
    }
    EXPECT_TRUE(finish(owner, random() % 2));
  }

  void write_one(std::mt19937& random, const std::string& owner) {
    Known& chosen = known[random() % kDatasets];
    const int index = static_cast<int>(&chosen - known);
    ServeItem wanted;
    {
      std::lock_guard lock(chosen.mutex);
      if (std::exchange(chosen.written, true)) return;
      wanted = write_item(name(index), chosen.bytes, chosen.version);
      wanted.sources = {"far"};
    }
    const auto served = serve(owner, {wanted});
    uint64_t bytes = (1 + random() % 200) * kKiB;
    if (served) {
      write_file(served->items[0].path, stamp(wanted.name, wanted.version + 1, bytes));
      const auto result = finish(owner, random() % 4 != 0);
      std::lock_guard lock(chosen.mutex);
      if (result && !result->empty()) {
        ++commits;
        chosen.version = result->at(0).version;
        chosen.bytes = bytes;
        EXPECT_TRUE(drop(name(index), chosen.version));
      }
    }
    std::lock_guard lock(chosen.mutex);
    chosen.written = false;
  }

  void watch() {
    while (!stop) {
      const auto usage = pool->usage();
      EXPECT_LE(usage.fast_used_bytes, options.fast_budget_bytes);
      EXPECT_LE(usage.fast_pinned_bytes, options.fast_budget_bytes);
      EXPECT_LE(usage.slow_used_bytes, options.slow_budget_bytes);
      std::byte buffer[4096];
      for (const auto& one : pool->replicas()) {
        const auto got = pool->read(one.id(), 0, buffer);
        if (!got || *got == 0) continue;
        EXPECT_EQ(static_cast<char>(buffer[0]), stamp(one.name, one.version, 1)[0]);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Known known[kDatasets];
  std::atomic<int> reads{0}, commits{0};
  std::atomic<bool> stop{false};
};

TEST_P(PoolStress, BudgetsAndContentsHold) {
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([this, c] {
      std::mt19937 random(1000 + c);
      for (int round = 0; round < kRounds; ++round) {
        const auto owner = "task-" + std::to_string(c) + "-" + std::to_string(round);
        if (random() % 3 == 0)
          write_one(random, owner);
        else
          read_some(random, owner);
      }
    });
  std::thread watcher([this] { watch(); });
  for (auto& client : clients) client.join();
  stop = true;
  watcher.join();
  EXPECT_GT(reads, kClients * kRounds / 8);
  EXPECT_GT(commits, 0);
  const auto totals = pool->totals();
  EXPECT_GT(totals.evictions, 0u);
  EXPECT_GT(totals.hits, 0u);
  Waiting<void> settled;  // behind every job that is still queued
  pool->drop("none", 1, settled.callback());
  ASSERT_TRUE(settled.get());
  expect_consistent();
  const auto before = pool->replicas();
  open();
  EXPECT_EQ(pool->replicas(), before);
}

INSTANTIATE_TEST_SUITE_P(SlowKinds, PoolStress, ::testing::Values("directory", "numa"));

}  // namespace
}  // namespace tierpilot
