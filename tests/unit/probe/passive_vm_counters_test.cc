#include "daemon/probe/passive/vm_counters.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/scratch_directory.h"

namespace tierpilot {
namespace {

class VmCounters : public testing::Test {
 protected:
  void write(const std::string& text) {
    std::filesystem::create_directories(root_.path() + "/proc");
    std::ofstream(root_.path() + "/proc/vmstat") << text;
  }

  ScratchDirectory root_;
};

TEST_F(VmCounters, EventsCountFromTheStart) {
  write("nr_free_pages 7\npgfault 100\npgmajfault 5\n");
  auto events = VmEvents::start({"pgfault", "pgmajfault"}, Sysroot(root_.path()));
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(events->read().at("pgfault"), 0u);
  write("pgfault 130\npgmajfault 5\n");
  EXPECT_EQ(events->read().at("pgfault"), 30u);
  EXPECT_EQ(events->read().at("pgmajfault"), 0u);
}

TEST_F(VmCounters, AFileThatVanishesOrTurnsBackKeepsTheLastCount) {
  write("pgfault 100\n");
  auto events = VmEvents::start({"pgfault"}, Sysroot(root_.path()));
  ASSERT_TRUE(events);
  write("pgfault 130\n");
  EXPECT_EQ(events->read().at("pgfault"), 30u);
  for (const char* text :
       {"pgfault 120\n", "pgfault 90\n", "pgfault\n", "pgfault -x\n\n  \n", "", "\x01\xff"}) {
    write(text);
    EXPECT_EQ(events->read().at("pgfault"), 30u) << text;
  }
  std::filesystem::remove_all(root_.path() + "/proc");
  EXPECT_EQ(events->read().at("pgfault"), 30u);
}

TEST_F(VmCounters, AnEventThatTheKernelDoesNotCountIsNamed) {
  write("pgfault 100\n");
  const auto events = VmEvents::start({"numa_hint_faults"}, Sysroot(root_.path()));
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().message,
            "unavailable: /proc/vmstat has no numa_hint_faults: not in this kernel's build");
}

}  // namespace
}  // namespace tierpilot
