#include "base/text/json_text.h"
#include "daemon/probe/active/probe_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "daemon/probe/active/json.h"
#include "tests/unit/probe/first_node.h"

namespace tierpilot {
namespace {

using namespace std::chrono_literals;

const ProbeOptions kQuick{
    .rounds = 2, .eviction = false, .timeout = 30s, .node_footprint_bytes = 8 << 20};

ProbeServer::Answer wait_for_answer(ProbeServer& server) {
  for (;;) {
    pollfd ready{.fd = server.fd(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 30'000) != 1) return {fail(ErrorCode::kTimeout, "no answer"), 0};
    if (auto answer = server.take()) return std::move(*answer);
  }
}

// Of this process, as /proc knows them.
pid_t only_child() {
  std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
  pid_t pid = 0, other = 0;
  return list >> pid && !(list >> other) ? pid : 0;
}

TEST(ProbeServer, AnswersAgainAndAgain) {
  auto server = ProbeServer::start();
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_FALSE((*server)->take()) << "nothing was asked";
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE((*server)->ask({kNode0}, kQuick));
    EXPECT_TRUE((*server)->busy());
    EXPECT_EQ((*server)->ask({kNode0}, kQuick).error().code, ErrorCode::kConflict);
    const auto answer = wait_for_answer(**server);
    ASSERT_TRUE(answer.tiers) << answer.tiers.error().message;
    ASSERT_EQ(answer.tiers->size(), 1U);
    const auto& tier = answer.tiers->front();
    EXPECT_EQ(tier.tier.name, "dram0");
    EXPECT_EQ(tier.rounds, 2);
    EXPECT_GT(tier.latency_p50_ns.value.value_or(0), 0) << tier.latency_p50_ns.unavailable;
    EXPECT_GT(answer.cpu_s, 0);
    EXPECT_FALSE((*server)->busy());
  }
}

TEST(ProbeServer, SaysWhyItCouldNotMeasure) {
  auto server = ProbeServer::start();
  ASSERT_TRUE(server);
  ASSERT_TRUE((*server)->ask({}, kQuick));
  const auto answer = wait_for_answer(**server);
  ASSERT_FALSE(answer.tiers);
  EXPECT_NE(answer.tiers.error().message.find("no tiers"), std::string::npos);
}

TEST(ProbeServer, ItsDeathIsAnAnswer) {
  auto server = ProbeServer::start();
  ASSERT_TRUE(server);
  const pid_t pid = only_child();
  if (pid == 0) GTEST_SKIP() << "this kernel does not list children";
  ASSERT_TRUE((*server)->ask({kNode0}, kQuick));
  kill(pid, SIGKILL);
  EXPECT_EQ(wait_for_answer(**server).tiers.error().code, ErrorCode::kIo);
  EXPECT_EQ((*server)->ask({kNode0}, kQuick).error().code, ErrorCode::kIo);
}

TEST(ProbeServer, EndsInTheMiddleOfMeasuring) {
  auto server = ProbeServer::start();
  ASSERT_TRUE(server);
  auto long_one = kQuick;
  long_one.rounds = 100'000;
  ASSERT_TRUE((*server)->ask({kNode0}, long_one));
  const auto start = std::chrono::steady_clock::now();
  server->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(ProbeServer, KeepsNoneOfTheParentsDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  auto server = ProbeServer::start();
  ASSERT_TRUE(server);
  ASSERT_TRUE((*server)->ask({kNode0}, kQuick));
  wait_for_answer(**server);
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "the last writer was this process";
  close(ends[0]);
}

TEST(MeasurementJson, SurvivesTheWay) {
  TierMeasurement tier{.tier = kNode0, .initiator_node = 1};
  tier.latency_counts = {{96, 7}, {2048, 1}};
  tier.latency_p50_ns.value = 97.5;
  tier.latency_p99_ns.unavailable = "because";
  tier.evidence["read_gb_per_s"] = {0.04, 3};
  tier.surroundings = {.cpus = 8, .load_1min = 1.5, .others_cpu_share = 0.25};
  tier.tier_class = 2;
  tier.rounds = 3;
  const auto text = measurement_to_json(tier).dump();
  const auto back = measurement_from_json(parse_json<nlohmann::json>(text));
  EXPECT_EQ(measurement_to_json(back).dump(), text);
  EXPECT_EQ(back.latency_ns.count(), 8U);
  EXPECT_EQ(back.latency_p99_ns.unavailable, "because");
  EXPECT_EQ(back.quality().grade, Grade::kGood);
}

TEST(MeasurementJson, GarbageThrowsItsOwnException) {
  for (const char* text : {"{}", "[]", "null", R"({"tier":1})"})
    EXPECT_THROW(measurement_from_json(parse_json<nlohmann::json>(text)),
                 nlohmann::json::exception);
}

}  // namespace
}  // namespace tierpilot
