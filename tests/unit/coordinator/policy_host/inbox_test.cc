#include "coordinator/policy_host/inbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace tierpilot::testing {
namespace {

TEST(Inbox, DeliversEverySendersMessagesInOrder) {
  Inbox<std::pair<int, int>> inbox;
  std::vector<std::thread> senders;
  for (int s = 0; s < 4; ++s)
    senders.emplace_back([&, s] {
      for (int i = 0; i < 1000; ++i) inbox.push({s, i});
    });
  std::vector<int> next(4, 0);
  for (int received = 0; received < 4000;) {
    inbox.wait();
    for (const auto& [sender, number] : inbox.take_all()) {
      EXPECT_EQ(number, next[static_cast<size_t>(sender)]++);
      ++received;
    }
  }
  for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace tierpilot::testing
