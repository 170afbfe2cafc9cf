#include "daemon/exec/process_tree.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

namespace tierpilot {
namespace {

void burn(int64_t ns) {
  timespec used{};
  do {
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (used.tv_sec * 1'000'000'000 + used.tv_nsec < ns);
}

class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    for (;;) ::pause();
  }
  ~Child() {
    for (const pid_t process : descendants(pid_)) ::kill(process, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    ::usleep(10'000);
  }
  return false;
}

size_t thread_count(pid_t process) {
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task");
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

TEST(ProcessTree, FindsChildrenOfChildren) {
  const Child child([] {
    if (::fork() == 0)
      for (;;) ::pause();
  });
  EXPECT_EQ(parent_of(child.pid()), ::getpid());
  ASSERT_TRUE(eventually([&] { return descendants(child.pid()).size() == 1; }));
  const auto all = descendants(::getpid());
  EXPECT_NE(std::find(all.begin(), all.end(), descendants(child.pid())[0]), all.end());
  EXPECT_EQ(children_from_stat(child.pid()), descendants(child.pid()));
}

TEST(ProcessTree, CountsWhatCameAndWent) {
  constexpr int64_t kEachNs = 30'000'000;
  const Child root([] {
    for (int i = 0; i < 5; ++i) {
      const pid_t short_lived = ::fork();
      if (short_lived == 0) {
        burn(kEachNs);
        ::_exit(0);
      }
      ::waitpid(short_lived, nullptr, 0);
    }
  });
  CpuMeter meter(root.pid());
  // The kernel tells it in hundredths of a second.
  EXPECT_TRUE(eventually([&] {
    meter.look();
    return meter.used_ns() >= 4 * kEachNs;
  })) << meter.used_ns();
  const int64_t before = meter.used_ns();
  meter.look();
  EXPECT_GE(meter.used_ns(), before);
}

TEST(ProcessTree, LooksAtOneWithManyThreadsAreSeldom) {
  const Child root([] {
    for (int i = 0; i < 1500; ++i) std::thread([] { ::pause(); }).detach();
  });
  ASSERT_TRUE(eventually([&] { return thread_count(root.pid()) > 1500; }));
  const auto thread_ns = [] {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * 1'000'000'000 + used.tv_nsec;
  };
  int64_t begin_ns = thread_ns();
  EXPECT_TRUE(descendants(root.pid()).empty());
  const int64_t look_ns = thread_ns() - begin_ns;
  CpuMeter meter(root.pid());
  begin_ns = thread_ns();
  for (int i = 0; i < 200; ++i) meter.look();
  // Without a pace 200 looks.
  EXPECT_LT(thread_ns() - begin_ns, 20 * look_ns);
}

TEST(ProcessTree, AnswersForProcessesThatAreGone) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  EXPECT_EQ(parent_of(gone), 0);
  EXPECT_FALSE(cpu_time_ns(gone));
  EXPECT_EQ(ended_children_ns(gone), 0);
  EXPECT_TRUE(descendants(gone).empty());
  EXPECT_TRUE(set_affinity(gone, {0}));
}

TEST(ProcessTree, SeesWhoStandsStill) {
  const Child child([] { burn(INT64_MAX); });
  EXPECT_FALSE(stands_still(child.pid()));
  ::kill(child.pid(), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return stands_still(child.pid()); }));
  ::kill(child.pid(), SIGCONT);
  EXPECT_TRUE(eventually([&] { return !stands_still(child.pid()); }));
  ::kill(child.pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return stands_still(child.pid()); })) << "it has ended";
}

TEST(ProcessTree, MovesAProcessToCpus) {
  const Child child([] {});
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &own)) ++cpu;
  ASSERT_TRUE(set_affinity(child.pid(), {cpu}));
  cpu_set_t now;
  ASSERT_EQ(::sched_getaffinity(child.pid(), sizeof now, &now), 0);
  EXPECT_EQ(CPU_COUNT(&now), 1);
  EXPECT_TRUE(CPU_ISSET(cpu, &now));
  EXPECT_FALSE(set_affinity(child.pid(), {1023}));
}

}  // namespace
}  // namespace tierpilot
