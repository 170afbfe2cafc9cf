// kill -9 at random moments: what was acknowledged is there afterwards, whole.
#include <signal.h>
#include <sys/wait.h>

#include <random>

#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

constexpr int kKills = 12;
constexpr uint64_t kBytes = 300 * kKiB;

std::string stamp(uint64_t version) {
  return std::string(kBytes, static_cast<char>(version));
}

class PoolCrash : public PoolTest {
 protected:
  // Writes version after version, tells each committed one, and never comes back.
  [[noreturn]] void write_forever(uint64_t version, int tell) {
    open();
    while (pool) {
      const auto served = serve("task", {write_item("w", kBytes, version)});
      if (!served) break;
      write_file(served->items[0].path, stamp(version + 1));
      const auto result = finish("task");
      if (!result) break;
      version = result->at(0).version;
      if (::write(tell, &version, sizeof version) != sizeof version) break;
      if (!drop("w", version)) break;  // the cluster has it on disk
    }
    ::_exit(1);
  }
};

TEST_F(PoolCrash, CommittedVersionsSurviveKill) {
  open();
  write_file(fast_dir + ".source", stamp(1));
  ASSERT_TRUE(create("w", ImportFile{fast_dir + ".source"}));
  std::filesystem::remove(fast_dir + ".source");
  uint64_t version = 1;
  std::mt19937 random(5);
  for (int kill = 0; kill < kKills; ++kill) {
    pool.reset();
    int tell[2];
    ASSERT_EQ(::pipe(tell), 0);
    const pid_t child = ::fork();
    if (child == 0) write_forever(version, tell[1]);
    ::close(tell[1]);
    // Commits come first, then the kill at some moment of the next one.
    uint64_t told = 0;
    for (int i = 0; i < 2 && ::read(tell[0], &told, sizeof told) == sizeof told;) {
      version = told;
      ++i;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    ::kill(child, SIGKILL);
    int state = 0;
    ::waitpid(child, &state, 0);
    ASSERT_TRUE(WIFSIGNALED(state)) << "the writer failed by itself";
    while (::read(tell[0], &told, sizeof told) == sizeof told) version = told;
    ::close(tell[0]);

    open();
    uint64_t newest = 0;
    for (const auto& one : pool->replicas()) newest = std::max(newest, one.version);
    ASSERT_GE(newest, version) << "a committed version is lost";
    ASSERT_LE(newest, version + 1);
    version = newest;
    const auto served = serve("reader", {item("w", kBytes, version)});
    ASSERT_TRUE(served) << served.error().message;
    ASSERT_EQ(read_file(served->items[0].path), stamp(version));
    ASSERT_TRUE(finish("reader"));
    ASSERT_TRUE(drop("w", version));
    expect_consistent();
  }
}

}  // namespace
}  // namespace tierpilot
