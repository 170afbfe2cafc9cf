#include "daemon/topology/watcher.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/topology/changes.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/topology/sysroots.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kSecond = 1'000'000'000;
using Sentences = std::vector<std::string>;

// A copy of a fake machine whose memory may be plugged in and out.
class WatcherTest : public testing::Test {
 protected:
  WatcherTest() {
    fs::copy(SYSROOTS "/two_nodes_hmat", path_,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

  Topology look() const {
    return discover_topology(Sysroot(path_), {.nvml_library = ""}).value_or(Topology{});
  }
  TopologyWatcher watcher() {
    return {{.sysroot = Sysroot(path_)}, look(), clock_, std::nullopt, "a test"};
  }
  void write(const std::string& file, const std::string& text) {
    const fs::path path = path_ + "/sys/devices/system/node/" + file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  void plug_in_node2(int mib = 8192) {
    write("online", "0-2");
    write("node2/cpulist", "");
    write("node2/meminfo",
          "Node 2 MemTotal: " + std::to_string(mib * 1024) + " kB\nNode 2 MemFree: 1024 kB");
    write("node2/distance", "40 40 10");
    write("node0/distance", "10 21 40");
    write("node1/distance", "21 10 40");
  }
  // A folder in its place is there, and cannot be read as a file.
  void make_unreadable(const std::string& file) {
    const fs::path path = path_ + "/sys" + file;
    if (fs::exists(path)) fs::rename(path, path.string() + ".kept");
    fs::create_directories(path);
  }
  void make_readable(const std::string& file) {
    const fs::path path = path_ + "/sys" + file;
    fs::remove(path);
    fs::rename(path.string() + ".kept", path);
  }
  void unplug_node2() {
    write("online", "0-1");
    fs::remove_all(path_ + "/sys/devices/system/node/node2");
  }

  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.path();
  ManualClock clock_;
};

TEST_F(WatcherTest, APluggedInNodeIsSeenAndThenGoneAgain) {
  auto watcher = this->watcher();
  plug_in_node2();
  EXPECT_FALSE(watcher.check()) << "not time yet";
  clock_.advance_ns(5 * kSecond);
  auto change = watcher.check();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, Sentences{"node 2 came online with 8.0 GiB"});
  ASSERT_TRUE(change->topology.node(2));
  clock_.advance_ns(5 * kSecond);
  EXPECT_FALSE(watcher.check()) << "told once";
  unplug_node2();
  clock_.advance_ns(5 * kSecond);
  change = watcher.check();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, Sentences{"node 2 went offline"});
  EXPECT_FALSE(change->topology.node(2));
}

TEST_F(WatcherTest, AnAnnouncementBringsTheLookForwardOnceItIsQuiet) {
  auto watcher = this->watcher();
  plug_in_node2();
  watcher.announced();
  clock_.advance_ns(kSecond / 5);
  watcher.announced();
  clock_.advance_ns(kSecond / 5);
  EXPECT_FALSE(watcher.check()) << "still being announced";
  clock_.advance_ns(kSecond / 5);
  EXPECT_TRUE(watcher.check());
}

TEST_F(WatcherTest, AnnouncementsWithoutEndDoNotPutItOffForEver) {
  auto watcher = this->watcher();
  plug_in_node2();
  bool seen = false;
  for (int i = 0; i < 40 && !seen; ++i) {
    watcher.announced();
    clock_.advance_ns(kSecond / 10);
    seen = watcher.check().has_value();
  }
  EXPECT_TRUE(seen);
}

TEST_F(WatcherTest, BlocksThatComeOneByOneAreTold) {
  plug_in_node2(1024);
  auto watcher = this->watcher();
  plug_in_node2(4096);
  clock_.advance_ns(5 * kSecond);
  const auto change = watcher.check();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, Sentences{"node 2 has 4.0 GiB, it had 1.0 GiB"});
}

TEST_F(WatcherTest, ABreathingBalloonIsNoChange) {
  plug_in_node2(8192);
  auto watcher = this->watcher();
  plug_in_node2(8191);
  clock_.advance_ns(5 * kSecond);
  EXPECT_FALSE(watcher.check());
}

TEST_F(WatcherTest, AMachineThatCannotBeReadIsTriedAgain) {
  auto watcher = this->watcher();
  fs::rename(path_ + "/sys", path_ + "/gone");
  clock_.advance_ns(5 * kSecond);
  EXPECT_FALSE(watcher.check());
  fs::rename(path_ + "/gone", path_ + "/sys");
  plug_in_node2();
  clock_.advance_ns(5 * kSecond);
  EXPECT_TRUE(watcher.check());
}

TEST_F(WatcherTest, WhatCannotBeReadForAMomentHasNotGone) {
  plug_in_node2();
  auto watcher = this->watcher();
  for (const char* file :
       {"/devices/system/node/online", "/devices/system/node/node1/meminfo",
        "/devices/system/node/node2/meminfo", "/devices/system/node/node1/cpulist"}) {
    make_unreadable(file);
    clock_.advance_ns(5 * kSecond);
    EXPECT_FALSE(watcher.check()) << file;
    make_readable(file);
    clock_.advance_ns(5 * kSecond);
    EXPECT_FALSE(watcher.check()) << file << " can be read again: nothing has changed";
  }
  make_unreadable("/devices/system/node/node1/meminfo");
  unplug_node2();
  clock_.advance_ns(5 * kSecond);
  EXPECT_FALSE(watcher.check());
  make_readable("/devices/system/node/node1/meminfo");
  clock_.advance_ns(5 * kSecond);
  const auto change = watcher.check();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, Sentences{"node 2 went offline"}) << "what did change is told then";
}

TEST_F(WatcherTest, DevicesThatCannotBeListedForAMomentHaveNotGone) {
  fs::create_directories(path_ + "/sys/bus/dax/devices/dax0.0");
  auto watcher = this->watcher();
  fs::rename(path_ + "/sys/bus/dax/devices", path_ + "/sys/bus/dax/kept");
  std::ofstream(path_ + "/sys/bus/dax/devices") << "no folder";
  clock_.advance_ns(5 * kSecond);
  EXPECT_FALSE(watcher.check());
  fs::remove(path_ + "/sys/bus/dax/devices");
  clock_.advance_ns(5 * kSecond);
  EXPECT_TRUE(watcher.check()) << "a folder that is not there lists none";
}

TEST_F(WatcherTest, WhatCouldNotBeReadToBeginWithHoldsNothingUp) {
  make_unreadable("/devices/system/node/node1/meminfo");
  auto watcher = this->watcher();
  plug_in_node2();
  clock_.advance_ns(5 * kSecond);
  EXPECT_TRUE(watcher.check());
}

TEST_F(WatcherTest, SaysHowItLearns) {
  EXPECT_EQ(watcher().source(), "looking every 5 s: a test");
  EXPECT_EQ(watcher().fd(), -1);
}

TEST(TopologyChanges, DaxDriversAndKernelTiers) {
  const auto before = discover_fake("dax_kmem");
  ASSERT_TRUE(before);
  EXPECT_TRUE(topology_changes(*before, *before).empty());
  auto after = *before;
  const auto name = after.dax_devices.at(0).name, had = after.dax_devices.at(0).driver;
  after.dax_devices[0].driver = "";
  after.kernel_tiers = {{.id = 7, .nodes = {0}}};
  after.dax_devices.push_back({.name = "dax9.0", .driver = "kmem"});
  EXPECT_EQ(topology_changes(*before, after),
            (Sentences{name + " has no driver, it had " + had, "dax9.0 appeared with kmem",
                       "the kernel now ranks tier 7: nodes 0"}));
  after = *before;
  after.dax_devices.clear();
  EXPECT_EQ(topology_changes(*before, after).size(), before->dax_devices.size());
}

std::string datagram(std::initializer_list<std::string_view> fields) {
  std::string text;
  for (const auto field : fields) text.append(field).push_back('\0');
  return text;
}

TEST(Uevent, SaysWhatHappenedToWhat) {
  const auto event = parse_uevent(datagram({"online@/devices/system/memory/memory32",
                                            "ACTION=online", "SUBSYSTEM=memory", "SEQNUM=1234"}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->action, "online");
  EXPECT_EQ(event->path, "/devices/system/memory/memory32");
  EXPECT_EQ(event->subsystem, "memory");
  EXPECT_TRUE(event->is_about_memory());
  EXPECT_FALSE(parse_uevent(datagram({"add@/devices/x", "SUBSYSTEM=net"}))->is_about_memory());
  EXPECT_FALSE(parse_uevent(datagram({"add@/devices/x"}))->is_about_memory());
}

TEST(Uevent, GarbageIsNone) {
  for (const auto& text :
       {std::string(), std::string("\0\0", 2), std::string("@/x"), std::string("add"),
        std::string("add@x"), datagram({"libudev", "SUBSYSTEM=memory"})})
    EXPECT_FALSE(parse_uevent(text)) << text;
  EXPECT_EQ(parse_uevent("add@/x\0SUBSYSTEM=dax")->subsystem, "") << "cut off at its NUL";
  EXPECT_EQ(parse_uevent(std::string("add@/x\0SUBSYSTEM=dax", 20))->subsystem, "dax");
}

TEST(Uevent, TheKernelsAnnouncementArrives) {
  auto socket = UeventSocket::open();
  if (!socket) GTEST_SKIP() << socket.error().message;
  // Asks the kernel to repeat an announcement; nothing changes by it.
  std::ofstream trigger("/sys/devices/system/node/node0/uevent");
  if (!(trigger << "change" << std::flush)) GTEST_SKIP() << "only root may ask for one";
  pollfd ready{.fd = socket->fd(), .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, 2000) != 1) GTEST_SKIP() << "this network namespace gets none";
  EXPECT_TRUE(socket->drain());
  EXPECT_FALSE(socket->drain()) << "all were read";
}

}  // namespace
}  // namespace tierpilot
