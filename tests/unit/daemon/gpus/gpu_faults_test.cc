// Which of what a driver tells counts as a failure of the device.
#include <gmock/gmock.h>

#include "daemon/agent/units/gpu_watch.h"
#include "daemon/agent/units/unit_health.h"

namespace tierpilot::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kSecond_ns = 1'000'000'000;

std::vector<std::string> kinds(const std::vector<GpuFault>& faults) {
  std::vector<std::string> kinds;
  for (const auto& fault : faults) kinds.push_back(fault.gpu + " " + fault.kind);
  return kinds;
}

TEST(GpuFaults, AnApplicationsXidIsNone) {
  GpuFaults faults;
  EXPECT_THAT(faults.xids({{"a", 13}, {"a", 31}, {"a", 43}, {"a", 12345}}, 0), IsEmpty());
  EXPECT_THAT(kinds(faults.xids({{"a", 13}, {"b", 95}}, 0)), ElementsAre("b Xid 95"));
}

TEST(GpuFaults, AStormOfOneKindIsOneFaultAndLaterItIsAnother) {
  GpuFaults faults;
  EXPECT_THAT(kinds(faults.xids({{"a", 63}, {"a", 63}, {"b", 63}, {"a", 94}}, 0)),
              ElementsAre("a Xid 63", "b Xid 63", "a Xid 94"));
  int64_t now_ns = 0;
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(faults.xids({{"a", 63}}, now_ns += kSecond_ns), IsEmpty()) << "it goes on";
  EXPECT_THAT(kinds(faults.xids({{"a", 63}}, now_ns + 11 * kSecond_ns)), ElementsAre("a Xid 63"));
}

TEST(GpuFaults, ALossIsOneFaultAndNoneMoreAfterAnXidThatSaidSo) {
  GpuFaults faults;
  EXPECT_THAT(kinds(faults.lost({"a"}, 0)), ElementsAre("a device lost"));
  EXPECT_THAT(faults.lost({"a"}, kSecond_ns), IsEmpty()) << "it is still lost";
  EXPECT_THAT(faults.lost({}, 2 * kSecond_ns), IsEmpty());
  EXPECT_THAT(kinds(faults.lost({"a"}, 3 * kSecond_ns)), ElementsAre("a device lost")) << "again";
  EXPECT_THAT(kinds(faults.xids({{"b", 79}}, 4 * kSecond_ns)), ElementsAre("b Xid 79"));
  EXPECT_THAT(faults.lost({"a", "b"}, 5 * kSecond_ns), IsEmpty());
}

TEST(UnitHealth, WhatTwoWatchersSayAlikeIsToldOnce) {
  UnitHealth health([] {});
  for (const auto* watcher : {"device", "shares"}) health.say("gpu/a", watcher, "lost");
  health.say("gpu/a", "check", "exit 1");
  EXPECT_THAT(health.troubles(), ElementsAre(Pair("gpu/a", "exit 1; lost")));
  health.say("gpu/a", "device", "");
  EXPECT_THAT(health.troubles(), ElementsAre(Pair("gpu/a", "exit 1; lost")));
}

TEST(UnitHealth, IsWellWhenNoWatcherComplains) {
  int changes = 0;
  UnitHealth health([&] { ++changes; });
  health.say("gpu/a", "device", "");
  EXPECT_EQ(changes, 0);
  EXPECT_TRUE(health.say("gpu/a", "device", "lost")) << "it breaks now";
  EXPECT_FALSE(health.say("gpu/a", "device", "lost"));
  EXPECT_EQ(changes, 1) << "nothing new was said";
  health.say("gpu/a", "check", "exit 1");
  EXPECT_THAT(health.troubles(), ElementsAre(Pair("gpu/a", "exit 1; lost")));
  health.say("gpu/a", "device", "");
  EXPECT_THAT(health.troubles(), ElementsAre(Pair("gpu/a", "exit 1")));
  health.say("gpu/a", "check", "");
  EXPECT_THAT(health.troubles(), IsEmpty());
  EXPECT_EQ(changes, 4);
}

}  // namespace
}  // namespace tierpilot::agent
