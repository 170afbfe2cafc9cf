#include "daemon/exec/messages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "daemon/exec/message_socket.h"

namespace tierpilot {
namespace {

TaskLaunch sample() {
  return {.task_id = UINT64_MAX,
          .attempt = UINT32_MAX,
          .argv = {"a", "", "\xff\xfe"},
          .env = {{"K", "v"}, {"K2", ""}},
          .working_directory = "/w",
          .log_directory = "/l",
          .cpus = {0, 65535},
          .memory_nodes = {0, 1023},
          .interleave_memory = true,
          .memory_limit_bytes = 1ULL << 40,
          .swap_memory_bytes = 1ULL << 41,
          .time_limit_ms = INT64_MAX,
          .given_folders = {"/srv/slow/7-1"}};
}

TEST(ExecMessages, ComeBackAsTheyWere) {
  const auto message = decode(*encode(sample()));
  ASSERT_TRUE(message) << message.error().message;
  const auto& task = std::get<TaskLaunch>(*message);
  EXPECT_EQ(task.task_id, UINT64_MAX);
  EXPECT_EQ(task.attempt, UINT32_MAX);
  EXPECT_EQ(task.argv, sample().argv);
  EXPECT_EQ(task.env, sample().env);
  EXPECT_EQ(task.cpus, sample().cpus);
  EXPECT_EQ(task.memory_nodes, sample().memory_nodes);
  EXPECT_TRUE(task.interleave_memory);
  EXPECT_EQ(task.memory_limit_bytes, sample().memory_limit_bytes);
  EXPECT_EQ(task.swap_memory_bytes, sample().swap_memory_bytes);
  EXPECT_EQ(task.time_limit_ms, INT64_MAX);
  EXPECT_EQ(task.given_folders, sample().given_folders);
}

TEST(ExecMessages, KeepWhatIsAbsentAbsent) {
  ProcessExit exit{.task_id = 7, .how = TaskEnd::kMemoryLimit, .signal = 9, .cpu_user_ns = 0};
  const auto back = std::get<ProcessExit>(*decode(*encode(exit)));
  EXPECT_EQ(back.how, TaskEnd::kMemoryLimit);
  EXPECT_EQ(back.signal, 9);
  EXPECT_EQ(back.cpu_user_ns, 0);
  EXPECT_FALSE(back.exit_code || back.read_bytes || back.wall_ms);
}

TEST(ExecMessages, HostileBytesAreRefused) {
  const auto good = *encode(sample());
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(decode(std::span(good).first(length))) << length;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const uint8_t value : {0x00, 0x1b, 0x5f, 0x7f, 0x9b, 0xbf, 0xff}) {
      auto broken = good;
      broken[at] = value;
      (void)decode(broken);  // any answer, no crash
    }
  }
  EXPECT_FALSE(decode(std::vector<uint8_t>(kMaxMessageBytes, 0x81))) << "nested arrays";
  EXPECT_FALSE(decode(std::vector<uint8_t>(kMaxMessageBytes, 0xa1))) << "nested maps";
  EXPECT_FALSE(decode(std::vector<uint8_t>(kMaxMessageBytes + 1, 0)));
  EXPECT_FALSE(decode(std::vector<uint8_t>{0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
}

TEST(ExecMessages, UnknownKindsAndEndsAreRefused) {
  EXPECT_FALSE(decode(std::vector<uint8_t>{0x82, 0x18, 0x63, 0xa0}));  // [99, {}]
  EXPECT_FALSE(decode(std::vector<uint8_t>{0x82, 0x00, 0xa0}));        // a launch without fields
}

TEST(ExecMessages, TooLargeIsInvalid) {
  auto task = sample();
  task.argv.emplace_back(kMaxMessageBytes, 'x');
  const auto bytes = encode(task);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kInvalid);
}

TEST(MessageSocket, CarriesALargestMessageAndQueuesWhatDoesNotFit) {
  auto pair = MessageSocket::socket_pair();
  ASSERT_TRUE(pair) << pair.error().message;
  MessageSocket left(std::move(pair->first)), right(std::move(pair->second));
  auto task = sample();
  task.argv.emplace_back(kMaxMessageBytes - 1000, 'x');
  for (int count = 0; count < 20; ++count) ASSERT_TRUE(left.send(task));
  EXPECT_TRUE(left.backlog());
  int received = 0;
  while (received < 20) {
    ASSERT_TRUE(left.flush());
    const auto message = right.receive();
    ASSERT_TRUE(message) << message.error().message;
    if (*message) ++received;
  }
  EXPECT_FALSE(left.backlog());
  EXPECT_FALSE(*right.receive());
}

TEST(MessageSocket, UrgentOvertakesWhatWaits) {
  auto pair = MessageSocket::socket_pair();
  ASSERT_TRUE(pair);
  MessageSocket left(std::move(pair->first)), right(std::move(pair->second));
  auto task = sample();
  task.argv.emplace_back(kMaxMessageBytes - 1000, 'x');
  for (int count = 0; count < 40; ++count) ASSERT_TRUE(left.send(task));
  ASSERT_TRUE(left.send(LeaseExtension{5, 4}, true));
  int before = 0;
  for (;; ++before) {
    ASSERT_TRUE(left.flush());
    const auto message = right.receive();
    ASSERT_TRUE(message && *message);
    if (std::holds_alternative<LeaseExtension>(**message)) break;
  }
  EXPECT_LT(before, 40);
}

TEST(MessageSocket, ReadsEverythingBeforeTheEnd) {
  auto pair = MessageSocket::socket_pair();
  ASSERT_TRUE(pair);
  MessageSocket left(std::move(pair->first)), right(std::move(pair->second));
  ASSERT_TRUE(left.send(LeaseExtension{5, 4}));
  left.close();
  EXPECT_TRUE(*right.receive());
  EXPECT_EQ(right.receive().error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(right.send(LeaseExtension{5, 4}).error().code, ErrorCode::kUnreachable);
}

// A supervisor ends while orders are on their way to it: that its task has ended must be heard.
TEST(MessageSocket, ReadsEverythingBeforeTheEndOfWhoLeftSomethingUnread) {
  auto pair = MessageSocket::socket_pair();
  ASSERT_TRUE(pair);
  MessageSocket left(std::move(pair->first)), right(std::move(pair->second));
  ASSERT_TRUE(left.send(ProcessExit{.task_id = 7, .attempt = 1}));
  ASSERT_TRUE(right.send(StandStill{.task_id = 7, .attempt = 1, .still = true}));
  left.close();
  const auto last = right.receive();
  ASSERT_TRUE(last && *last);
  EXPECT_TRUE(std::holds_alternative<ProcessExit>(**last));
  EXPECT_EQ(right.receive().error().code, ErrorCode::kUnreachable);
}

// Also where that end comes while it is read: some of so many do.
TEST(MessageSocket, ReadsEverythingBeforeTheEndOfWhoLeavesWhileItIsRead) {
  std::atomic<MessageSocket*> to_close = nullptr;
  std::atomic<bool> closed = false, done = false;
  std::thread closer([&] {
    while (!done)
      if (auto* socket = to_close.exchange(nullptr)) {
        socket->close();
        closed = true;
      }
  });
  int lost = 0;
  for (int round = 0; round < 3'000; ++round) {
    auto pair = MessageSocket::socket_pair();
    ASSERT_TRUE(pair);
    MessageSocket left(std::move(pair->first)), right(std::move(pair->second));
    ASSERT_TRUE(left.send(ProcessExit{.task_id = 7, .attempt = 1}));
    ASSERT_TRUE(right.send(StandStill{.task_id = 7, .attempt = 1, .still = true}));
    closed = false;
    to_close = &left;
    const auto last = right.receive();
    if (!last || !*last) ++lost;
    while (!closed) std::this_thread::yield();
  }
  done = true;
  closer.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace tierpilot
