#include "daemon/exec/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
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
  auto listed = children_of_self(), read = children_from_stat(::getpid());
  ASSERT_TRUE(listed && read);
  auto &from_list = *listed, &from_stat = *read;
  std::sort(from_list.begin(), from_list.end());
  std::sort(from_stat.begin(), from_stat.end());
  EXPECT_EQ(from_list, forked);
  EXPECT_EQ(from_stat, forked);
  for (const pid_t child : forked) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(children_of_self()->empty());
}

TEST(Process, WhereNobodyCanLookNobodySaysThatThereAreNoChildren) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto listed = children_of_self(), read = children_from_stat(::getpid());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(listed);
  EXPECT_FALSE(read);
}

}  // namespace
}  // namespace tierpilot
