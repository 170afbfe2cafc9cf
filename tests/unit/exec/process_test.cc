#include "daemon/exec/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "daemon/exec/process_tree.h"

namespace tierpilot {
namespace {

TEST(Process, BothWaysFindTheSameChildren) {
  std::vector<pid_t> forked;
  for (int count = 0; count < 20; ++count) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (count % 2) ::_exit(0);  // a zombie until it is waited for
      for (;;) ::pause();
    }
    forked.push_back(child);
  }
  std::sort(forked.begin(), forked.end());
  auto from_list = children_of_self(), from_stat = children_from_stat(::getpid());
  std::sort(from_list.begin(), from_list.end());
  std::sort(from_stat.begin(), from_stat.end());
  EXPECT_EQ(from_list, forked);
  EXPECT_EQ(from_stat, forked);
  for (const pid_t child : forked) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(children_of_self().empty());
}

}  // namespace
}  // namespace tierpilot
